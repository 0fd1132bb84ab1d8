"""One request to `/v1` as what answers it sees it: who asks, for what, of which memory; and the reply."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence

from plainmind.base.errors import PlainmindError, ScopeDenied
from plainmind.base.value import value
from plainmind.guests.page.tokens import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from plainmind.guests.page.keeper import Keeper
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory
    from plainmind.notes.discovery import FoundFile

    T = TypeVar("T")


@value
class Reply:
    """What is answered."""

    body: Any  # a value of `shapes`, or a mapping that is JSON already; None: nothing
    status: int = 200
    etag: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@value
class Call:
    """A request that may be carried out."""

    caller: Caller
    memory: Memory
    keeper: Keeper
    parameters: Mapping[str, str]  # in the path
    query: Any
    body: Any
    headers: Mapping[str, str]  # names in small letters
    token: str

    @property
    def scoped(self) -> ScopedMemory:
        """The memory as the caller may see it."""
        return self.memory.within(self.caller.context)

    def header(self, name: str) -> str:
        """What a header says; "" when it is not there."""
        return self.headers.get(name, "")

    def require_owner(self, detail: str, hint: str = "use a token of the owner") -> None:
        """Raise ScopeDenied unless everything may be seen."""
        if not self.caller.is_owner or not self.scoped.access.sees_everything:
            raise ScopeDenied(detail, hint=hint)

    def files(self) -> Sequence[FoundFile]:
        """The files that the caller may see, by path."""
        found = self.memory.list() if self.caller.is_owner else self.scoped.list()
        return sorted(found, key=lambda one: one.path)


def page_of(
    rows: Sequence[T], limit: int, cursor: str, name_of: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """So many rows after those that were shown before, and the cursor for the next; None at the end.

    A cursor names the last row that was shown: rows that came or went before it shift nothing.
    """
    start = _after(rows, cursor, name_of) if cursor else 0
    shown = rows[start : start + limit]
    following = start + len(shown)
    if not shown or following >= len(rows):
        return shown, None
    said = f"{following} {name_of(shown[-1])}".encode("utf-8", "surrogatepass")
    return shown, base64.urlsafe_b64encode(said).decode().rstrip("=")


def _after(rows: Sequence[T], cursor: str, name_of: Callable[[T], str]) -> int:
    try:
        said = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("utf-8", "surrogatepass")
        number, _, name = said.partition(" ")
        place = int(number)
    except ValueError as error:
        raise PlainmindError("the cursor is not one of ours", hint="take `next` as it is") from error
    near = range(max(0, place - 1), len(rows))
    found = next(
        (at for at in (*near, *range(min(len(rows), max(0, place - 1)))) if name_of(rows[at]) == name), None
    )
    return min(place, len(rows)) if found is None else found + 1
