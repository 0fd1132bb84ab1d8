"""Secrets that their name gives away: `password = …`, `"api_key": "…"`, `密码：…`, `set the root password to …`.

Wherever a word for a secret stands, the text around it is looked at: how a value follows, and whether the value is one
that somebody made up. What stood around a word once often stands there again, so each such piece is judged once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plainmind.base.lazy import pattern
from plainmind.redaction.anchors import Part, is_name_of_something, parts_of
from plainmind.redaction.around_names import (
    AT_THE_EDGE,
    CELLS,
    NO_VERDICT,
    SORTS_OF_QUOTED,
    SORTS_OF_WORDS,
    end_of,
    judge,
    start_of,
)
from plainmind.redaction.findings import CROWD, Found
from plainmind.redaction.page import Page
from plainmind.redaction.pins import short_names_in
from plainmind.redaction.plausible import MADE_UP, QUOTATION, Stretches
from plainmind.redaction.tables import cells_under, lines_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.redaction.anchors import Anchor
    from plainmind.redaction.names import Name

_BEFORE = 64  # characters before an anchor that are looked at
_AFTER = 192
_MOST_KEPT = 4096
_MOST_IN_FIELD = 2048


def assigned_secrets_in(page: Page) -> Iterator[Found]:
    """Report every value that is named as a secret and looks like one."""
    yield from short_names_in(page)
    search = _Search(page)
    for part in parts_of(page):
        yield from search.secrets_in(part)


class _Search:
    """The search of a text for named secrets.

    Hundreds of places are looked at in every way, and more in a long text or where secrets are found: a page of nothing
    but passwords is searched to its end. No text that people write has more places that hold none; one that was made
    to keep us busy has, and what follows there is a crowd: the time stays in proportion to the length.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._stretches = Stretches(page)
        self._long_word = (0, 0)  # from where to where a word goes in which a value was cut off

    def secrets_in(self, part: Part) -> Iterator[Found]:
        """Report what the names in a part of the text are the names of, or from where on nothing was looked for."""
        page, stretches = self._page, self._stretches
        clear, until = stretches.clear
        inside = passed = 0  # from where to where the last secret goes that was found
        allowance = page.allowance
        if part.is_crowded:
            yield part.start, len(page.text), CROWD
            return
        for at, anchor in part.places:
            if allowance.looks <= 0 or allowance.headings <= 0:
                yield at, len(page.text), CROWD
                return
            if inside <= at < passed:
                continue
            if clear <= at - _BEFORE and at + _AFTER <= until and not anchor.is_of_words:
                continue
            for found in self._around(anchor, at):
                yield found
                inside, passed = found[:2]
            clear, until = stretches.clear

    def _around(self, anchor: Anchor, at: int) -> Iterator[Found]:
        """Look at all that stands around a place; of what stood there before, the verdict is known."""
        text, allowance = self._page.text, self._page.allowance
        first = max(0, at - _BEFORE)
        around = text[first : at + _AFTER]
        known = (around, anchor.word)
        verdict = allowance.judged.get(known) if first else None
        if verdict is None:
            names = self._names_with_value(anchor, first, first + len(around))
            verdict = judge(names, around, at - first) if names else NO_VERDICT
            allowance.looks += 1 if verdict.found else -verdict.cost
            if first and len(allowance.judged) < _MOST_KEPT:
                allowance.judged[known] = verdict
        heading = verdict.heading
        if heading is not None:
            allowance.headings -= 1
            for under in (cells_under, lines_under):
                for count, found in enumerate(under(self._page, at, CELLS[heading.sort], heading.kind)):
                    allowance.headings += not count
                    yield found
        for start, end, kind in verdict.found:
            end += first  # noqa: PLW2901
            if end > at + _AFTER - AT_THE_EDGE:  # it may go on where the piece ends
                end = self._end_in_word(end)  # noqa: PLW2901
            else:
                end = _end_with_signs(text, end)  # noqa: PLW2901
            yield start_of(text, first + start) if start == 0 < first else first + start, end, kind

    def _names_with_value(self, anchor: Anchor, start: int, end: int) -> Sequence[Name]:
        """Those of the names of an anchor for which something between two places may be a value."""
        what = self._stretches.what_is_in(start, end)
        if what == MADE_UP:
            return anchor.names
        sorts = SORTS_OF_QUOTED if what == QUOTATION else SORTS_OF_WORDS
        return [name for name in anchor.names if name.sort in sorts]

    def _end_in_word(self, end: int) -> int:
        """Where a value ends that was cut off; a long word with many of them is gone through once."""
        begins, until = self._long_word
        if not begins <= end <= until:
            begins = until = end
        value_ends, until = end_of(self._page.text, end, until)
        self._long_word = (begins, until)
        return value_ends


# Behind a value that a sign has cut: what belongs to it has digits and signs, and is no field of its own.
_CUT = pattern(r"(?![&;,][A-Za-z_.-]{1,32}[=:])[&)(,;=+*^%$#!~]")
_REST_WITH_SIGNS = pattern(r"""(?=[^\s"'`<>|\\]{0,24}?[0-9])[^\s"'`<>|\\]{8,256}+""")


def _end_with_signs(text: str, end: int) -> int:
    """Where a value ends that has signs in it which often end one."""
    if not _CUT.match(text, end):
        return end
    rest = _REST_WITH_SIGNS.match(text, end)
    if rest is None or sum(not sign.isalnum() for sign in rest[0]) < _LEAST_SIGNS or "://" in rest[0]:
        return end
    return rest.end()


_LEAST_SIGNS = 4


def kind_of_named(name: str, given: str) -> str | None:
    """Say which kind of secret `given` is as the field `name` of an object, if it is one."""
    if not given or "\n" in given or len(given) > _MOST_IN_FIELD or not is_name_of_something(name):
        return None
    quoted = given.replace("\\", "").replace('"', "")
    page = Page(f'"{name[:_MOST_IN_FIELD]}": "{quoted}"')
    last = len(page.text) - 1
    return next((kind for _, end, kind in assigned_secrets_in(page) if end == last or kind == CROWD), None)
