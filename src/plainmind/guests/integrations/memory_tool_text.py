"""Text as Claude's memory tool shows it: numbered lines, sizes, places; pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_LINES = 999_999
_NUMBER_WIDTH = len(str(MOST_LINES))
_MOST_PLACES_NAMED = 100
# Some show these as line breaks, and the numbers of lines do not count them.
_BREAKS = pattern("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r(?!\\Z)")


def viewed_range(wanted: Any, count: int) -> tuple[int, int]:
    """The first and last line to view; a range that is no pair of numbers means all of them."""
    if not isinstance(wanted, list | tuple) or len(wanted) != 2:
        return 1, count
    if not all(isinstance(one, int) for one in wanted):
        return 1, count
    first, last = max(1, wanted[0]), count if wanted[1] == -1 else wanted[1]
    return first, max(last, 0)


def in_ends_of(text: str, added: str) -> str:
    """Write a text with the line ends of the file that it goes into."""
    return added.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else added


def lines_with(text: str, wanted: str) -> list[str]:
    """The numbers of the lines where a text begins."""
    numbers: list[str] = []
    at, line, counted = text.find(wanted), 1, 0
    while at >= 0 and len(numbers) < _MOST_PLACES_NAMED:
        line, counted = line + text.count("\n", counted, at), at
        numbers.append(str(line))
        at = text.find(wanted, at + 1)
    return [*numbers, "…"] if at >= 0 else numbers


def numbered(lines: Sequence[str], first: int) -> str:
    """Lines as the tool shows them, with their numbers; nothing within a line can look like the next one."""
    shown = (_BREAKS.sub(" ", line) for line in lines)
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(shown, first))


def size_in_words(count: int) -> str:
    """A number of bytes in a few characters: `0B`, `1.5K`, `4K`."""
    unit = 0
    while unit < 3 and count >= 1 << 10 * (unit + 1):
        unit += 1
    scaled = count / (1 << 10 * unit)
    return (f"{scaled:.0f}" if scaled == int(scaled) else f"{scaled:.1f}") + "BKMG"[unit]
