"""Who may see what: the rules, and the last look at what leaves the memory, which drops and reports the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from plainmind.agent.scope import Access, SearchContext, access_of
from plainmind.base.errors import PathNotAllowed, ScopeDenied
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, is_transcript
from plainmind.files.safe_open import check_relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from plainmind.memory.translation import PolicyValues

    class HasPath(Protocol):
        """Whatever says which file it is from."""

        @property
        def path(self) -> str:
            """As cited."""

    T = TypeVar("T", bound=HasPath)


_CITED_LINES = pattern(r"(?:#L|:)[0-9]{1,18}(?:-L?[0-9]{1,18})?\Z")


class Policy:
    """Who may use the memory where, and the last look at what leaves it."""

    def __init__(self, values: PolicyValues, checkpoint: Checkpoint) -> None:
        self.values = values
        self.checkpoint = checkpoint

    def access_of(self, context: SearchContext) -> Access:
        """What a context may see and write: nothing, where agents do not get the memory."""
        if not self.values.enabled:
            return Access(
                is_allowed=False, reason="the memory is switched off for agents: `enabled` is false"
            )
        return access_of(context, self.values.rules, self.values.default)

    def shows_citations(self, context: SearchContext) -> bool:
        """Whether answers name file and lines; `auto` means in direct chats."""
        wanted = self.values.citations
        return wanted == "on" or (wanted == "auto" and context.chat_type == "direct")


class Checkpoint:
    """Tells anew, from where a file lies and not from the index, who may see it."""

    def __init__(self, scope_of_file: Callable[[str], str], scope_of_session: Callable[[str], str]) -> None:
        self._scope_of_file = scope_of_file
        self._scope_of_session = scope_of_session
        self.withheld = 0  # what a filter before this let through; anything but 0 is a fault

    def scope_of(self, path: str) -> str:
        """Who may see a file with this cited path, whether it exists or not."""
        try:
            check_relative(path)
        except PathNotAllowed:
            return PRIVATE  # `memory/shared-with/everyone/../../../MEMORY.md`
        return self._scope_of_session(path) if is_transcript(path) else self._scope_of_file(path)

    def admits(self, access: Access, path: str) -> bool:
        """Whether a context may see a file."""
        return access.sees_everything or access.may_see(self.scope_of(path))

    def passed(self, access: Access, found: Iterable[T], what: str) -> tuple[T, ...]:
        """Let through what may be seen. The rest should never have come this far, which is said aloud."""
        found = tuple(found)
        passed = tuple(one for one in found if self.admits(access, one.path))
        if len(passed) < len(found):
            self._report(len(found) - len(passed), what)
        return passed

    def require(self, access: Access, path: str) -> None:
        """Raise ScopeDenied, in the same words whether the file exists or not."""
        if not access.is_allowed:
            raise denial(access)
        if not self.admits(access, path):
            raise ScopeDenied(
                "that file is not for this conversation",
                hint="only what was shared with it can be read here; search shows what there is",
            )

    def _report(self, count: int, what: str) -> None:
        import logging

        self.withheld += count
        logging.getLogger(__name__).error(
            "%d of what %s gave was not for this conversation, and was withheld; the index may be damaged",
            count,
            what,
        )


def file_of(citation: str) -> str:
    """The path in a citation: `MEMORY.md` of `./MEMORY.md#L3-L7`."""
    return _CITED_LINES.sub("", citation).removeprefix("./")


def denial(access: Access) -> ScopeDenied:
    """Say that a context may not use the memory at all, and why."""
    return ScopeDenied(
        access.reason or "nothing may be done here",
        hint="`scope.rules` in the settings decides where it may be used",
    )
