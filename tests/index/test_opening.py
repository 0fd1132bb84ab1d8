"""Stores are opened by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plainmind.base.errors import ConfigError
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.store import open_store


def test_built_in_stores_have_short_names(tmp_path):
    store = open_store("sqlite", folder=str(tmp_path))
    assert isinstance(store, SqliteStore)
    assert isinstance(open_store("memory"), MemoryStore)


def test_a_store_elsewhere_is_named_by_module_and_factory():
    assert isinstance(open_store("plainmind.index.drivers.memory:MemoryStore"), MemoryStore)


@pytest.mark.parametrize("driver", ["oracle", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(driver):
    with pytest.raises(ConfigError, match="unknown store") as caught:
        open_store(driver)
    assert caught.value.key == "store.driver"
    assert "sqlite" in (caught.value.hint or "")


@pytest.mark.parametrize("driver", ["no.such.module:thing", "plainmind.index.drivers.memory:nothing", ":x"])
def test_a_store_that_cannot_be_loaded_says_why(driver):
    with pytest.raises(ConfigError, match="cannot be loaded"):
        open_store(driver)


def test_a_packages_entry_point_adds_a_store(tmp_path, monkeypatch):
    package = tmp_path / "shelf-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[plainmind.stores]\nshelf = plainmind.index.drivers.memory:MemoryStore\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert isinstance(open_store("shelf"), MemoryStore)


def test_searching_a_small_index_never_imports_numpy(tmp_path):
    program = f"""
import sys
from tests.support.index_contents import *
from plainmind.index.store import open_store
store = open_store("sqlite", folder={str(tmp_path)!r})
with store.rebuild(fingerprint(), reason="a test") as fresh:
    put(fresh, "a.md", "the gateway")
assert found_texts(store, "gateway") == near_texts(store, "gateway") == ["the gateway"]
sys.exit("numpy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
