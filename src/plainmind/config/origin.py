"""Where a value comes from."""

from __future__ import annotations

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

OriginKind: TypeAlias = "Literal['default', 'openclaw', 'user', 'project', 'environment', 'flag', 'found']"


@value
class Origin:
    """The layer that a value comes from, and the file, variable or flag within it."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.where})" if self.where else self.kind


DEFAULT = Origin("default")
