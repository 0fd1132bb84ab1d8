"""The way in: a text, and a copy of it without secrets.

    redactor = Redactor(secrets=[settings.api_key], key=key)
    redactor.redact("deploy with ghp_…").text        # "deploy with [redacted:github#3f9a]"

A whole message goes in at once: a secret that is cut into two chunks is found in neither. The copy has the line ends of
the original, so that line numbers stay true. The original stays what it is: a model that is shown marks instead of its
own words writes the marks into files.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Iterator

from plainmind.base.lazy import pattern
from plainmind.base.model import split_lines
from plainmind.redaction.anchors import look_through
from plainmind.redaction.credentials import (
    credentials_in_headers,
    is_full_of_flags,
    passwords_before_hosts,
    passwords_in_addresses,
    passwords_in_command_lines,
)
from plainmind.redaction.findings import CROWD, Finding, Found, Marks, Redacted, marks_in, settle
from plainmind.redaction.named_secrets import assigned_secrets_in, kind_of_named
from plainmind.redaction.page import LENGTH_OF_LOOK, Allowance, Page
from plainmind.redaction.pins import plain_words_in
from plainmind.redaction.plausible import forget_values, is_random, is_stand_in
from plainmind.redaction.tokens import private_keys_in, secrets_of_aws_in, shapes_in, tokens_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# What these rules hide is not what those of an earlier version hid: copies that are kept must be made anew.
RULES_VERSION = 14

_LEAST_SECRET_NAME = 16


# The id of a note of ours is random, and no secret of whatever key the note speaks of.
_BEFORE_ID, _AFTER_ID, _ID_CHARS = "<!-- m:", " -->", 26


def _outside_of_ids(text: str, found: Iterable[Found]) -> Iterator[Found]:
    for start, end, kind in found:
        own = text[start:end].strip()
        is_id = len(own) == _ID_CHARS and own.isalnum() and own.isupper() and own.isascii()
        if not (is_id and text.endswith(_BEFORE_ID, 0, start) and text.startswith(_AFTER_ID, end)):
            yield start, end, kind


class Redactor:
    """Replaces secrets by marks. One may be shared between threads and used for any number of texts.

    `secrets` are values that are known to be secret. `key` makes the marks: the same key and the same secret give the
    same mark, today and in a year; keep it where the secrets are kept.
    """

    def __init__(self, secrets: Iterable[str] = (), *, key: bytes) -> None:
        self._configured = ConfiguredSecrets(secrets)
        self._marks = Marks(key)

    def redact(self, text: str) -> Redacted:
        """Hide every secret of a text in a copy. Never raises, whatever the text is."""
        found = self._find_in(text)
        if not found:
            return Redacted(text)
        parts = self._parts(text, found)
        findings = (
            Finding(kind, start, end, shown.rstrip("\r\n"))
            for (start, end, kind), shown in zip(found, parts[1::2], strict=True)
        )
        return Redacted("".join(parts), tuple(findings))

    def without_secrets(self, text: str) -> str:
        """The same copy, quicker, without a list of what was hidden."""
        found = self._find_in(text)
        return "".join(self._parts(text, found)) if found else text

    def without_configured(self, text: str) -> str:
        """Hide known secrets alone in a piece of an old copy, also those that its edges have cut off."""
        configured = self._configured
        found = settle((configured.found_in(text), configured.cut_off_in(text)), marks_in(text))
        return "".join(self._parts(text, found)) if found else text

    def digests(self) -> list[str]:
        """Tell known secrets apart without saying them, in any order, to note which ones were known when."""
        return [self._marks.digest(secret) for secret in self._configured.secrets]

    def redact_value(self, value: Any) -> Any:
        """Copy what JSON may hold, with every secret in it hidden; a field's name tells as much as `name = …` does."""
        return self._value("", value)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            copy = self.without_secrets(value)
            kind = kind_of_named(name, value) if copy is value else None
            return self._marks.mark(kind, value) if kind else copy
        if isinstance(value, dict):
            return {self._name(key): self._value(str(key), inner) for key, inner in value.items()}
        return [self._value(name, inner) for inner in value] if isinstance(value, list) else value

    def _name(self, name: Any) -> Any:
        """Copy the name of a field, which hardly ever is a secret itself."""
        return (
            self.without_secrets(name) if isinstance(name, str) and len(name) >= _LEAST_SECRET_NAME else name
        )

    def _find_in(self, text: str) -> list[Found]:
        if len(text) > _ALWAYS_CLOSELY:
            return self._find_in_pieces(text)
        found = self._find_closely(Page(text), _ANY_NUMBER)
        return self._find_in_pieces(text) if found is None else found

    def _find_closely(self, page: Page, most: int, first: int = 0) -> list[Found] | None:
        """Find the secrets of a text one by one; None when there are more from a place on, or too many names."""
        is_bounded = most < _ANY_NUMBER
        if not look_through(page, is_bounded=is_bounded) or (is_bounded and is_full_of_flags(page)):
            return None
        # From what is certain to what is likely: where two overlap, the first one says what it is.
        scans: list[Iterable[Found]] = [
            self._configured.found_in(page.text),
            private_keys_in(page),
            tokens_in(page),
            shapes_in(page),
            secrets_of_aws_in(page),
            passwords_in_addresses(page),
            passwords_before_hosts(page),
            credentials_in_headers(page),
            passwords_in_command_lines(page),
            _outside_of_ids(page.text, assigned_secrets_in(page)),
            plain_words_in(page),
        ]
        reports, crowd = _reports(scans, most, first)
        if crowd is not None:
            page.crowded_from = page.place_of(crowd[0])
            if crowd[2] == CROWD:
                page.before_crowd = self._settled(page, reports)
            forget_values()
            return None
        found = self._settled(page, reports)
        forget_values()
        return found

    def _settled(self, page: Page, reports: Iterable[Iterable[Found]]) -> list[Found]:
        """Join the reports of all scans into what is hidden in the original."""
        found = _with_next_lines(page.text, settle(reports, ()))
        text = page.original
        if page.text == text:
            return found
        found = [(page.place_of(start), page.end_of(end), kind) for start, end, kind in found]
        # Of a secret that is known, a form may have what was taken out above, such as a backslash.
        known = list(self._configured.found_in(text))
        return settle((known, found), marks_in(text))

    def _find_in_pieces(self, text: str) -> list[Found]:
        """Read a long text closely, piece after piece, and hide as a whole what is a crowd of secrets."""
        length = len(text)
        reading = _Reading(text)
        found: list[Found] = []
        at, hidden, size = 0, _LEAST_HIDDEN, _PIECE
        while at < length:
            at, some, is_crowd = self._find_in_piece(reading, at, size)
            size = _PIECE
            if not is_crowd:
                found += some
            else:
                found += [
                    (start, min(end, at), kind) for start, end, kind in some
                ]  # the rest is in the crowd
                stop = _end_of_crowd(text, at + hidden)
                found.append((at, stop, CROWD))
                reading.passed(stop - at)
                at, hidden, size = stop, hidden * 2, _BEHIND_CROWD
        return settle((found,), ())

    def _find_in_piece(self, reading: _Reading, at: int, size: int) -> tuple[int, list[Found], bool]:
        """Say where a piece ends, with its secrets, and whether it does because a crowd begins there."""
        while True:
            end = _end_of_piece(reading.text, at + size)
            first, page = reading.page(at, end + _CONTEXT)
            most = reading.most(at, end)
            found = self._find_closely(page, most, at - first)
            if page.before_crowd is not None:
                until = _place_to_stop(reading.text, at, first + page.crowded_from - _CONTEXT)
                return until, _kept(page.before_crowd, first, at, until), True
            if found is None:
                known = max(first + page.crowded_from, at + 1) if page.crowded_from else at
                return *self._find_before_crowd(reading, at, end, known), True
            is_over = all(first + start >= end or first + last <= end for start, last, _ in found)
            if end == len(reading.text) or (is_over and first + page.open_from >= end):
                kept = _kept(found, first, at, end)
                reading.left = most - len(kept)
                reading.looks, reading.headings = reading.allowance.looks, reading.allowance.headings
                reading.allowance.excess = page.excess
                return end, kept, False
            size *= _LARGER

    def _find_before_crowd(
        self, reading: _Reading, at: int, limit: int, known: int
    ) -> tuple[int, list[Found]]:
        """Say where in a piece that ends at `limit` the secrets become too many, with those that stand before it.

        `known` is where that was found to be, the beginning of the piece when it is not known. As many are looked for
        as in the whole piece: with fewer there would be too many again, each time a little farther ahead.
        """
        kept: list[Found] = []
        until = at
        most = reading.most(at, limit)
        size = max(_FIRST_LOOK, known - at)
        again = _MOST_AGAIN
        while until < limit:
            end = min(at + size, limit)
            first, page = reading.page(at, end, limit)
            found = self._find_closely(page, most, at - first)
            if found is None:
                known = first + page.crowded_from
                if known - at <= 4 * (until - at) or not again:
                    break
                size = max(known - at, 2 * _CONTEXT)  # far behind what was read: up to there it is none
                again -= 1
                continue
            until = _place_to_stop(reading.text, at, end - _CONTEXT)
            kept = _kept(found, first, at, until)
            if known > at or end == limit:
                break
            # So much that there will be too many, if it goes on like this.
            size *= min(16, max(2, 2 * most // (len(kept) + 1)))
        return until, kept

    def _parts(self, text: str, found: list[Found]) -> list[str]:
        """The copy in pieces: what stays and what is shown in the place of a secret, in turns."""
        known: dict[tuple[str, str], str] = {}  # a text that has a secret often has it more than once
        parts: list[str] = []
        copied = 0
        for start, end, kind in found:
            secret = text[start:end]
            shown = known.get((kind, secret))
            if shown is None:
                shown = self._marks.mark(kind, self._configured.secret_behind(secret))
                if "\n" in secret or "\r" in secret:  # line ends stay, and so do the numbers of all lines
                    shown += _line_ends_of(secret)
                known[kind, secret] = shown
            parts += (text[copied:start], shown)
            copied = end
        parts.append(text[copied:])
        return parts


# A long secret that a terminal or a mail has cut goes on at the beginning of the next line.
_LEAST_CUT_LINE = 20
_NEXT_LINE = pattern(r"=?\r?\n([A-Za-z0-9_.+/-]{12,}+=?)(?=\s|$)")


def _with_next_lines(text: str, found: list[Found]) -> list[Found]:
    """Add to each secret that ends with its line what looks like the rest of it."""
    passed = 0
    for number, (start, end, kind) in enumerate(found):
        if passed <= start and text[end : end + 1] in _ENDS_OF_LINES and end - start >= _LEAST_CUT_LINE:
            rest = _NEXT_LINE.match(text, end)
            while rest is not None and is_random(rest[1]):
                end = rest.end()  # noqa: PLW2901
                rest = _NEXT_LINE.match(text, end - rest[0].endswith("="))
            found[number] = (start, end, kind)
            passed = end
    return settle((found,), ())


_ENDS_OF_LINES = ("\n", "\r", "=")


_LINE_ENDS = pattern(r"[\r\n]++")


def _line_ends_of(secret: str) -> str:
    r"""The line ends of a secret, as many as there were: a `\r` and a later `\n` must not become one."""
    if "\r" not in secret:
        return "\n" * secret.count("\n")
    ends = "".join(_LINE_ENDS.findall(secret))
    lines = len(split_lines(f"{secret}."))
    return ends if len(split_lines(f"{ends}.")) == lines else "\n" * (lines - 1)


# --- pieces of a long text, and crowds: nothing but secrets, each of which would take as long as a page of prose ---

_ALWAYS_CLOSELY = 16_384
_PIECE, _BEHIND_CROWD = 131_072, 16_384
# So many secrets are looked for one by one in a text, and more in a long one. A file of settings, a list of passwords
# or a long conversation has fewer; where there are more, all that follows is hidden up to an empty line.
_MOST_FOUND = 300
_LENGTH_OF_ONE = 10_000
# Behind a crowd, one for so much that was hidden: whether it goes on is seen at once.
_LENGTH_OF_CREDIT = 2_500
_LOOKS_BEHIND_CROWD = 50
_ANY_NUMBER = 1 << 60
_REPORTS_OF_ONE = 4  # several rules may report a secret, and several words in the heading of a table
_LEAST_HIDDEN = 65_536  # more than any secret is long, and twice as much each time
_FIRST_LOOK = 4_096
_MOST_AGAIN = 3
# So far a rule looks around a place; tables, lists and keys go on for longer, but not over an empty line.
_CONTEXT = 1_024
_EMPTY_LINE = pattern(r"\n\r?\n")
# What is not over at the end of a piece is read in a larger one.
_LARGER = 8
_NEAR_END = 4_096
# A key may have an empty line in it, and all that is between its borders is hidden.
_BORDER_OF_KEY, _BORDER, _NEAR_BORDER = "PRIVATE KEY", 48, 36_000


class _Reading:
    """A long text that is read in pieces, and how many more secrets are looked for one by one from a place on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left = _MOST_FOUND
        self.allowance = Allowance(0)
        self.looks, self.headings = self.allowance.looks, self.allowance.headings
        self._is_far = not text.isascii()

    def page(self, at: int, end: int, limit: int = 0) -> tuple[int, Page]:
        """Give a piece, or a part of the one up to `limit`, with what stands before it, and where that begins."""
        first = max(0, at - _CONTEXT)
        # It may be read for the second time: what the first has taken is given back.
        more = (limit or end) // LENGTH_OF_LOOK - at // LENGTH_OF_LOOK
        self.allowance.looks, self.allowance.headings = self.looks + more, self.headings + more
        return first, Page(self.text[first:end], self.allowance, is_far=self._is_far)

    def most(self, at: int, end: int) -> int:
        """Say how many are looked for in a piece."""
        return self.left + (end // _LENGTH_OF_ONE - at // _LENGTH_OF_ONE)

    def passed(self, crowd: int) -> None:
        """Go on behind a crowd of this length."""
        self.left = crowd // _LENGTH_OF_CREDIT
        self.looks = self.headings = _LOOKS_BEHIND_CROWD
        self.allowance.excess = self.allowance.excess * 3 // 4


def _kept(found: Iterable[Found], first: int, at: int, until: int) -> list[Found]:
    """Give what begins in a piece or reaches into it, of what was found in a page that begins at `first`.

    What seems to begin with the page itself begins before it, or is none.
    """
    return [
        (first + start, first + last, kind)
        for start, last, kind in found
        if first + last > at and first + start < until and (start or not first)
    ]


def _end_of_piece(text: str, least: int) -> int:
    """Find an empty line, or else the beginning of a line or of a word, that is not between the borders of a key."""
    while least < len(text) - _PIECE // 2:
        end = _break_in(text, least, least + _NEAR_END)
        before = text.rfind(_BORDER_OF_KEY, end - _NEAR_BORDER, end)
        behind = text.find(_BORDER_OF_KEY, end, end + _NEAR_BORDER)
        is_within = "BEGIN" in text[max(0, before - _BORDER) : max(0, before)]
        if not is_within and "END" not in text[behind - _BORDER : behind]:
            return end
        least = max(behind, end) + _BORDER
    return len(text)


def _break_in(text: str, first: int, last: int) -> int:
    empty = _EMPTY_LINE.search(text, first, last)
    if empty is not None:
        return empty.end()
    place = text.rfind("\n", first, last)
    place = place if place >= 0 else text.rfind(" ", first, last)
    return place + 1 if place >= 0 else last


def _reports(
    scans: Iterable[Iterable[Found]], most: int, first: int
) -> tuple[list[list[Found]], Found | None]:
    """List what each scan reports, and what a crowd begins with: what a scan says, or one more secret than that.

    Of a crowd that a scan has told of, all reports before it are there.
    """
    reports: list[list[Found]] = []
    starts: set[int] = set()
    left = most * _REPORTS_OF_ONE
    crowd = None
    for scan in scans:
        some: list[Found] = []
        for found in scan:
            if found[2] == CROWD:
                crowd = found
                break
            some.append(found)
            if found[0] >= first:
                starts.add(found[0])
                left -= 1
            if len(starts) > most or left < 0:
                return reports, found
        reports.append(some)
    return reports, crowd


def _place_to_stop(text: str, first: int, last: int) -> int:
    """Find the beginning of a line, or else of a word."""
    if last <= first:
        return first
    line = text.rfind("\n", max(first, last - _CONTEXT), last)
    place = line if line >= 0 else text.rfind(" ", first, last)
    return place + 1 if place >= 0 else first


def _end_of_crowd(text: str, least: int) -> int:
    found = _EMPTY_LINE.search(text, least)
    return found.end() if found else len(text)


# --- secrets that are known word by word, in every form that a program may have given them ---

_CONFIGURED = "configured"
# A shorter one would blot out half of every text: of three characters each is somewhere in a word.
_LEAST = 4
# One as short as a word counts only where it stands alone.
_LEAST_INSIDE_WORDS = 8
# Of one that is cut off at the edge of a text so much must be there to know it.
_LEAST_CUT = 6
_AROUND_CUT = "… \t\r\n"
# A header is configured as a whole; what follows the scheme is the secret.
_SCHEME = pattern(r"^(?:bearer|basic|token|apikey|key) {1,4}(?=[^ ]{8,}+$)", 2)  # re.IGNORECASE
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ConfiguredSecrets:
    """Looks for known secrets; values too short or too plain to be secrets (`none`, `ollama`) are passed over."""

    def __init__(self, secrets: Iterable[str]) -> None:
        stripped = (_SCHEME.sub("", given.strip()) for given in secrets)
        self.secrets = sorted({one for one in stripped if len(one) >= _LEAST and not is_stand_in(one)})
        self._secret_of: dict[str, str] = {}
        for secret in self.secrets:
            for form in forms_of(secret):
                self._secret_of.setdefault(form, secret)

    def found_in(self, text: str) -> Iterator[Found]:
        """Report every place where a form of a known secret stands."""
        for form in self._secret_of:
            at = text.find(form)
            while at >= 0:
                end = at + len(form)
                if len(form) >= _LEAST_INSIDE_WORDS or _stands_alone(text, at, end):
                    yield at, end, _CONFIGURED
                at = text.find(form, end)

    def cut_off_in(self, text: str) -> Iterator[Found]:
        """Report where a text begins with the end of a known secret, or ends with the beginning of one."""
        first = len(text) - len(text.lstrip(_AROUND_CUT))
        last = len(text.rstrip(_AROUND_CUT))
        if last - first < _LEAST_CUT:
            return
        for form in self._secret_of:
            at = form.rfind(text[first : first + _LEAST_CUT])
            if at > 0 and text.startswith(form[at:], first):
                yield first, first + len(form) - at, _CONFIGURED
            end = form.find(text[last - _LEAST_CUT : last]) + _LEAST_CUT
            if end >= _LEAST_CUT and text.endswith(form[:end], 0, last):
                yield last - end, last, _CONFIGURED

    def secret_behind(self, form: str) -> str:
        """Return the secret that a found text is a form of, or the text itself."""
        return self._secret_of.get(form, form)


def forms_of(secret: str) -> set[str]:
    """Return the secret as itself, in JSON, in an address, and as base64 at any place of a longer text."""
    data = secret.encode("utf-8", "surrogatepass")
    forms = {secret, *_in_json(secret), *_in_address(data), *_in_base64(data)}
    return {form for form in forms if len(form) >= _LEAST}


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


def _in_json(secret: str) -> Iterator[str]:
    readable = "".join(_SHORT_ESCAPES.get(sign, sign) for sign in secret)
    yield readable
    yield readable.replace("/", "\\/")
    yield "".join(_SHORT_ESCAPES.get(sign) or _in_ascii(sign) for sign in secret)


def _in_ascii(sign: str) -> str:
    if " " <= sign <= "~":
        return sign
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _in_address(data: bytes) -> Iterator[str]:
    for template in ("%{:02X}", "%{:02x}"):
        encoded = "".join(chr(byte) if byte in _UNRESERVED else template.format(byte) for byte in data)
        yield encoded
        yield encoded.replace("%20", "+")


def _in_base64(data: bytes) -> Iterator[str]:
    """Give the part of the encoded text that depends on the secret alone, for each way the bytes may fall."""
    for before, dependent in ((0, 0), (1, 2), (2, 3)):
        encoded = b2a_base64(b"\0" * before + data, newline=False).rstrip(b"=").decode()
        ends_between = (before + len(data)) % 3 != 0
        core = encoded[dependent : -1 if ends_between else None]
        if len(core) >= _LEAST_INSIDE_WORDS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
