"""What is imported or made when it is first used: guests by name, and the parts of an object."""

from __future__ import annotations

from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    made_once = cached_property
else:

    class made_once(cached_property):  # noqa: N801 (a decorator)
        """A part that is made once, when it is first used, however many threads ask; its owner has a lock `making`."""

        def __get__(self, owner, kind=None):
            """Make it with all others kept waiting; later the part itself stands in the way of this."""
            if owner is None:
                return self
            with owner.making:
                return super().__get__(owner, kind)


def named(target: str) -> Any:
    """Import what `module:attribute` names: so guests are found, and the kernel imports none of them."""
    from importlib import import_module

    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
