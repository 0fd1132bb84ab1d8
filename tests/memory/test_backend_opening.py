"""Engines by name: ours, those of other packages, and a reason for every other name."""

from __future__ import annotations

import pytest

from plainmind.base.errors import ConfigError
from plainmind.memory.backend import open_backend


def test_a_module_and_a_factory_in_it_name_an_engine():
    assert open_backend("builtins:repr", 7) == "7"


@pytest.mark.parametrize("name", ["", "none-such", "builtin"])
def test_an_unknown_engine_is_refused_with_those_that_are_known(name):
    with pytest.raises(ConfigError, match="unknown back end") as refused:
        open_backend(name, None)

    assert refused.value.key == "backend"
    assert "qmd" in refused.value.hint


@pytest.mark.parametrize("name", ["no.such.module:factory", "builtins:no_such_factory", ":", "builtins:"])
def test_an_engine_that_cannot_be_loaded_is_refused_with_the_reason(name):
    with pytest.raises(ConfigError, match="cannot be loaded"):
        open_backend(name, None)
