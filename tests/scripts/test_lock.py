"""The lock loses its hosts and nothing else."""

from __future__ import annotations

import re

import install
import lock

FROM_UV = """\
[[package]]
name = "json5"
version = "0.12.0"
source = { registry = "https://registry.example/simple" }
sdist = { url = "https://files.example/aa/bb/json5-0.12.0.tar.gz", hash = "sha256:0b33", size = 52907 }
wheels = [
    { url = "https://files.example/cc/dd/json5-0.12.0-py3-none-any.whl", hash = "sha256:6d37", size = 36079 },
]
"""


def test_names_versions_files_and_hashes_survive():
    neutral = lock.without_hosts(FROM_UV)

    assert "registry.example" not in neutral
    assert "files.example" not in neutral
    assert (
        'url = "https://index.invalid/files/json5-0.12.0-py3-none-any.whl", hash = "sha256:6d37"' in neutral
    )
    assert re.findall(r"hash = \"\S+\"", neutral) == re.findall(r"hash = \"\S+\"", FROM_UV)


def test_removing_hosts_twice_changes_nothing_more():
    once = lock.without_hosts(FROM_UV)

    assert lock.without_hosts(once) == once


def test_the_machines_own_index_is_put_back_before_uv_reads_its_lock():
    restored = lock.with_index(lock.without_hosts(FROM_UV), "https://mirror.example/simple")

    assert 'source = { registry = "https://mirror.example/simple" }' in restored


def test_the_installer_itself_is_pinned_with_hashes():
    assert re.fullmatch(r"uv==[\d.]+( --hash=sha256:[0-9a-f]{64})+\n", install.locked_uv())
