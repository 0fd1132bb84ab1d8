"""A hint about a missing part names the checkout or wheel that is installed, and a command that works as it stands."""

from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest

from plainmind.base.extras import install_hint


class Installed:
    """A distribution that was installed from somewhere."""

    def __init__(self, url, *, editable=False):
        self._facts = json.dumps({"url": url, "dir_info": {"editable": editable}}) if url else None

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._facts


@pytest.fixture
def installed(monkeypatch):
    def install(url, *, prefix="/opt/env", editable=False):
        monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Installed(url, editable=editable))
        monkeypatch.setattr(sys, "prefix", prefix)
        monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "pip" else None)

    return install


def test_a_wheel_is_named_with_the_extra(installed, tmp_path):
    wheel = tmp_path / "a wheel-0.2.0-py3-none-any.whl"
    wheel.touch()
    installed(wheel.as_uri())

    assert install_hint("mcp") == f"`/opt/env/bin/python -m pip install '{wheel}[mcp]'`"


def test_a_checkout_that_is_used_in_place_stays_so(installed, tmp_path):
    installed(tmp_path.as_uri(), editable=True)

    assert install_hint("onnx") == f"`/opt/env/bin/python -m pip install -e '{tmp_path}[onnx]'`"


def test_without_pip_it_is_uv_that_installs(installed, tmp_path, monkeypatch):
    installed(tmp_path.as_uri())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    assert install_hint("local") == f"`uv pip install --python /opt/env/bin/python '{tmp_path}[local]'`"


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/share/uv/tools/plainmind", "uv tool install"),
        ("/home/ada/.local/share/pipx/venvs/plainmind", "pipx install --force"),
    ],
)
def test_a_tool_is_installed_again_by_what_installed_it(installed, tmp_path, prefix, command):
    installed(tmp_path.as_uri(), prefix=prefix)

    assert install_hint("lancedb") == f"`{command} '{tmp_path}[lancedb]'`"


@pytest.mark.parametrize("url", [None, "file:///gone/plainmind.whl", "https://example.org/plainmind.whl"])
def test_where_the_origin_is_not_known_the_hint_says_what_stands_for_it(installed, url):
    installed(url)

    assert install_hint("postgres") == (
        "`/opt/env/bin/python -m pip install 'PATH[postgres]'`, where PATH is a checkout or a wheel of plainmind"
    )


def test_a_copy_that_was_never_installed_gets_a_hint_too(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)

    assert "'PATH[mcp]'" in install_hint("mcp")
