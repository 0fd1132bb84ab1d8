"""From accepted proposals to new bytes: whether their lines still stand there, and what the files become.

A line is never changed unless it says, to the letter, what it said when the change was proposed. All other bytes stay.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence

from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_bytes, split_lines
from plainmind.base.value import replace
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import is_log
from plainmind.notes.workspace import as_written, byte_lines, decode, encoding_of
from plainmind.text.markdown import read_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Read: TypeAlias = Callable[[str], bytes | None]

_NOW = pattern(r"(?<=, now )(?P<path>[^\n]+?\.md)#L(?P<line>\d+)(?=\))")
_CITED = pattern(r"(?:(?<=, now )|(?<=\(from ))(?P<path>[^\n]+?\.md)#L(?P<line>\d+)(?=\))")
_TITLE = "# Memory"


def fit(proposal: Proposal, read: Read) -> tuple[Proposal | None, str]:
    """The proposal with its lines where they stand now; or None, and why it is void."""
    moved: dict[tuple[str, int], int] = {}
    for path in dict.fromkeys(cite.path for cite in proposal.cites):
        data = read(path)
        if data is None:
            return None, f"`{path}` is gone"
        cites = [cite for cite in proposal.cites if cite.path == path]
        places = _places(cites, split_lines(decode(data)))
        if places is None:
            return None, f"lines of `{path}` have changed"
        moved |= {(path, cite.line): place for cite, place in zip(cites, places, strict=True)}
    fitted = _moved(proposal, moved)
    for edit in fitted.edits:
        if is_log(edit.path):
            return None, f"`{edit.path}` is a log, and logs are never edited"
        if why := _obstacle(edit, read(edit.path)):
            return None, why
    return fitted, ""


def _places(cites: Sequence[Cite], lines: Sequence[str]) -> list[int] | None:
    """Where the lines stand now: all where they were, all moved by as much, or each where it stands alone."""

    def stand(by: int) -> bool:
        return all(
            0 < cite.line + by <= len(lines) and lines[cite.line + by - 1] == cite.text for cite in cites
        )

    first = cites[0]
    shifts = [number - first.line for number, line in enumerate(lines, 1) if line == first.text]
    for by in sorted(shifts, key=abs):
        if stand(by):
            return [cite.line + by for cite in cites]
    places = []
    for cite in cites:
        found = [number for number, line in enumerate(lines, 1) if line == cite.text]
        if len(found) != 1:
            return None
        places.append(found[0])
    return places


def _moved(proposal: Proposal, moved: dict[tuple[str, int], int]) -> Proposal:
    if all(place == line for (_, line), place in moved.items()):
        return proposal

    def renumber(found: re.Match[str]) -> str:
        line = int(found["line"])
        return f"{found['path']}#L{moved.get((found['path'], line), line)}"

    cites = tuple(replace(cite, line=moved[cite.path, cite.line]) for cite in proposal.cites)
    edits = tuple(
        replace(
            edit,
            line=moved.get((edit.path, edit.line), edit.line),
            new=tuple(_CITED.sub(renumber, line) for line in edit.new),
        )
        for edit in proposal.edits
    )
    return replace(proposal, cites=cites, edits=edits)


def _obstacle(edit: Edit, data: bytes | None) -> str:
    """Why an edit cannot be made, or has been made already."""
    if edit.old:
        lines = [] if data is None else split_lines(decode(data))
        stands = tuple(lines[edit.line - 1 : edit.line - 1 + len(edit.old)]) == edit.old
        return "" if stands else f"lines of `{edit.path}` have changed"
    if edit.section is None:
        return f"`{edit.path}` is there already" if data is not None else ""
    if data is not None and set(split_lines(decode(data))) & set(filter(None, edit.new)):
        return f"`{edit.path}` says it already"
    return ""


class Plan:
    """What some proposals make of the files, if they do not stand in each other's way."""

    def __init__(self, read: Read, paths: Callable[[], Iterable[str]]) -> None:
        self._read = read
        self._paths = paths
        self._edits: dict[str, list[Edit]] = {}
        self._edited: set[tuple[str, int]] = set()
        self._relied: set[tuple[str, int]] = set()
        self.done: list[Proposal] = []
        self.void: list[tuple[str, str]] = []
        self.paths: list[str] = []

    def add(self, proposal: Proposal) -> None:
        """Take a proposal in, or say why it is void."""
        fitted, why = fit(proposal, self._read)
        if fitted is None:
            self.void.append((proposal.id, why))
            return
        edited = {
            (edit.path, edit.line + at)
            for edit in fitted.edits
            for at in range(max(1, len(edit.old)))
            if edit.section is None
        }
        relied = {(cite.path, cite.line) for cite in fitted.cites} - edited
        if edited & (self._edited | self._relied) or relied & self._edited:
            self.void.append(
                (proposal.id, "another proposal that was accepted with it changes the same lines")
            )
            return
        for edit in fitted.edits:
            self._edits.setdefault(edit.path, []).append(edit)
        self._edited |= edited
        self._relied |= relied
        self.done.append(fitted)

    def changes(self) -> list[tuple[str, str | None, bytes]]:
        """Each file that changes: its path, the hash of what it is, what it becomes. What is added comes first."""
        made: dict[str, bytes] = {}
        shifts: dict[str, list[tuple[int, int]]] = {}
        for path, edits in self._edits.items():
            data = self._read(path)
            made[path], shifts[path] = _edit_bytes(data, edits)
        self._renumber(made, shifts)
        order = sorted(made, key=lambda path: len(made[path]) < len(self._read(path) or b""))
        self.paths = order
        result = []
        for path in order:
            data = self._read(path)
            if data != made[path]:
                result.append((path, None if data is None else sha256_bytes(data), made[path]))
        return result

    def _renumber(self, made: dict[str, bytes], shifts: dict[str, list[tuple[int, int]]]) -> None:
        """Let superseded lines go on naming the line that took their place, when its number has changed."""
        shifted = {path: moves for path, moves in shifts.items() if any(by for _, by in moves)}
        if not shifted:
            return

        def number(found: re.Match[str]) -> str:
            line = int(found["line"])
            by = sum(by for after, by in shifted.get(found["path"], ()) if line > after)
            return f"{found['path']}#L{line + by}"

        for path in {*self._paths(), *made}:
            data = made.get(path, self._read(path))
            if data is None or b", now " not in data or encoding_of(data) != "utf-8":
                continue
            pieces = [
                _NOW.sub(number, piece.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
                for piece in byte_lines(data)
            ]
            if (new := b"".join(pieces)) != data:
                made[path] = new


def _edit_bytes(data: bytes | None, edits: Sequence[Edit]) -> tuple[bytes, list[tuple[int, int]]]:
    """Make some edits in a file, all other bytes unchanged; and by how much lines move that stand after which."""
    if data is None:
        return _new_file(edits), []
    pieces, encoding = byte_lines(data), encoding_of(data)
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    ending = "\r\n" if b"\r\n" in data else "\n"
    moves: list[tuple[int, int]] = []
    placed = [*_placed(edits, split_lines(decode(data))), *(edit for edit in edits if edit.section is None)]
    for edit in sorted(
        placed, key=lambda each: -each.line
    ):  # from the end: what stands before keeps its number
        start, stop = edit.line - 1, edit.line - 1 + len(edit.old)
        new = [_encode(line, ending, encoding) for line in edit.new]
        if edit.old and new and stop == len(pieces) and not _is_ended(pieces[-1]):
            new[-1] = new[-1][: -len(_encode("", ending, encoding))]
        if not edit.old and start and not _is_ended(pieces[start - 1]):
            pieces[start - 1] += _encode("", ending, encoding)
        if start == 0 and bom:
            new = [bom + new[0], *new[1:]] if new else [bom]
        pieces[start:stop] = new
        moves.append((edit.line if edit.old else edit.line - 1, len(edit.new) - len(edit.old)))
    return as_written(b"".join(pieces), encoding), moves


def _placed(edits: Sequence[Edit], lines: Sequence[str]) -> list[Edit]:
    """What goes to the end of a section as one edit at its place; a section that is missing stands at the end."""
    by_section: dict[str, list[str]] = {}
    for edit in edits:
        if edit.section is not None:
            by_section.setdefault(edit.section, []).extend(edit.new)
    placed = []
    for section, added in by_section.items():
        new, at = added, _end_of_section(lines, section)
        if at is None:
            at = len(lines)
            while at and not lines[at - 1].strip():
                at -= 1
            new = ["" if at else _TITLE, *([] if at else [""]), f"## {section}", "", *added]
        placed.append(Edit(edits[0].path, at + 1, (), tuple(new)))
    return placed


def _end_of_section(lines: Sequence[str], title: str) -> int | None:
    """Behind which line a section's last words stand; None when there is no such section."""
    end: int | None = None
    for block in read_blocks(lines):
        if block.level and end is not None:
            break
        if block.level:
            end = block.last + 1 if block.title == title else None
        elif end is not None:
            end = block.last + 1
    return end


def _new_file(edits: Sequence[Edit]) -> bytes:
    lines: list[str] = []
    for edit in edits:
        if edit.section is not None and not lines:
            lines += [_TITLE, "", f"## {edit.section}", ""]
        lines += edit.new
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _encode(line: str, ending: str, encoding: str) -> bytes:
    return f"{line}{ending}".encode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")


def _is_ended(piece: bytes) -> bool:
    return piece.rstrip(b"\x00").endswith((b"\n", b"\r"))
