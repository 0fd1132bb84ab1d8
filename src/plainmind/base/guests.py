"""Guests are found by name: `module:attribute` instead of an import, so that the kernel knows none of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def named(target: str) -> Any:
    """Import what `module:attribute` names."""
    from importlib import import_module

    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
