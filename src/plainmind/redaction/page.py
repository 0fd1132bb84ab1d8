"""A text as the rules read it: odd signs made plain, what nobody sees taken out, every character with its old place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from itertools import accumulate

from plainmind.base.lazy import pattern
from plainmind.redaction.findings import Found, without_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from plainmind.redaction.anchors import Part
    from plainmind.redaction.around_names import Verdict
    from plainmind.redaction.tables import Rows

# What is left out of the text that the rules read. All such signs become this one first, which keeps every place.
_NOTHING = "\u200b"
_ASCII = bytes(range(128))
_FEW_CAPITALS = 8
_ODD_CAPITALS = frozenset("\u0130\u03a3")  # one becomes two letters, the other depends on where it stands
_AS_LOW_ASCII = _ASCII.lower().ljust(256, b"?")


class Page:
    """A text to be scanned, and what several scans need to know about it, each worked out when first asked for.

    `text` is what the rules read; places in it become those of the `original` by `place_of`. A long text is read in
    pieces, each a page of its own: they share an `allowance`, and `is_far` says whether any of them is not all ASCII.
    """

    __slots__ = (
        "_has_digits",
        "_in_bytes",
        "_long_words",
        "_low",
        "_marked",
        "_narrow",
        "_parts_until",
        "_stretches",
        "absent",
        "allowance",
        "before_crowd",
        "crowded_from",
        "excess",
        "is_far",
        "odd_signs",
        "open_from",
        "original",
        "parts",
        "rows_apart",
        "rows_read",
        "text",
    )

    def __init__(
        self, original: str, allowance: Allowance | None = None, *, is_far: bool | None = None
    ) -> None:
        self.original = original
        self.allowance = allowance or Allowance(len(original))
        self.is_far = not original.isascii() if is_far is None else is_far
        self.crowded_from = (
            0  # where there turned out to be too many secrets in the original; 0 if that is not known
        )
        self.before_crowd: list[Found] | None = None  # all that is secret before it, if that is known
        self.excess = self.allowance.excess  # at its end
        self.open_from = len(original)  # where something begins that may go on behind the text
        self.rows_read: dict[tuple[object, ...], int] = {}  # up to where, by what was looked for in them
        self.rows_apart: dict[tuple[int, str, int], Rows] = {}  # by where they begin and what their cells are
        self.odd_signs: frozenset[str] = frozenset() if original.isascii() else _odd_signs_of(original)
        self._marked = _as_plain_signs(original, self.odd_signs)
        plain = self._marked.replace(_NOTHING, "") if _NOTHING in self._marked else self._marked
        self.text = without_marks(plain)
        self._parts_until: list[int] | None = None
        self._low: str | None = None
        self._narrow: str | None = None
        self._in_bytes: bytes | None = None
        self._stretches: list[int] | None = None
        self._has_digits: bool | None = None
        self._long_words: str | None = None
        # When the text was looked through: its parts, and the words that are not in it for sure.
        self.parts: list[Part] | None = None
        self.absent: frozenset[str] | None = None

    def has(self, word: str) -> bool:
        """Whether one of the words with which rules begin is in the text in any case."""
        return not self.lacks(word) and word in self.narrow

    def lacks(self, word: str) -> bool:
        """Whether it is known that one of these words is nowhere in the text."""
        return self.absent is not None and word in self.absent

    def note_open(self, at: int, *, goes_on: bool) -> None:
        """Keep where a table or a list begins that is not over where the text is."""
        if goes_on:
            self.open_from = min(self.open_from, self.place_of(at))

    def place_of(self, at: int) -> int:
        """Say where a character of `text` stands in the original."""
        if self._parts_until is None:
            self._parts_until = list(accumulate(map(len, self._marked.split(_NOTHING))))
        return at + bisect_right(self._parts_until, at)

    def end_of(self, end: int) -> int:
        """Say where what ends here in `text` ends in the original: behind all that its last sign is written with."""
        last = self.place_of(end - 1)
        is_itself = self.original[last] == self.text[end - 1]
        return last + 1 if is_itself else min(self.place_of(end), len(self.original))

    @property
    def low(self) -> str:
        """The text in lower case, every character at its place."""
        if self._low is None:
            signs = "".join(self.odd_signs)
            capitals = set(signs).difference(signs.lower())
            if self.text.isascii() or len(capitals) > _FEW_CAPITALS or not _ODD_CAPITALS.isdisjoint(capitals):
                # This letter alone becomes two in lower case, and would move all that follow.
                self._low = self.text.replace("\u0130", "i").lower()
            else:  # in bytes, where only ASCII has capitals: half the time
                in_bytes = self.text.encode("utf-8", "surrogatepass")
                low = in_bytes.lower().decode("utf-8", "surrogatepass")
                for sign in capitals:
                    low = low.replace(sign, sign.lower())
                self._low = low
        return self._low

    @property
    def narrow(self) -> str:
        """The text in lower case, with `?` for all that is not ASCII: it is searched in half the time."""
        if self._narrow is None:
            low = self.low
            self._narrow = low if low.isascii() else self.in_bytes.translate(_AS_LOW_ASCII).decode("ascii")
        return self._narrow

    @property
    def has_digits(self) -> bool:
        """Whether there is a digit anywhere."""
        if self._has_digits is None:
            self._has_digits = any(digit in self.text for digit in "0123456789")
        return self._has_digits

    @property
    def in_bytes(self) -> bytes:
        """The text with one byte for each character, `?` for most that are not of the West."""
        if self._in_bytes is None:
            self._in_bytes = self.text.encode("latin-1", "replace")
        return self._in_bytes

    @property
    def stretches(self) -> list[int]:
        """Where letters, digits and `_.-` begin to follow each other, at least twenty in a row."""
        if self._stretches is None:
            self._stretches = _stretches_in(self.in_bytes)
        return self._stretches

    @property
    def long_words(self) -> str:
        """All that stands without a space or a letter of the East within it, at least 24 characters in a row."""
        if self._long_words is None:
            self._long_words = _long_words_of(self.text, self.in_bytes)
        return self._long_words


class Allowance:
    """What a text may still cost, and what is known of it from the pages that were read already.

    Around `looks` more names without a secret it is looked, and below `headings` more without one for a column or a
    list; what follows then is a crowd, in which nothing is shown. `excess` counts the words of rules beyond those that
    people write. Who reads a part again need not judge again: `judged` are the verdicts on what stood around names,
    `harmless` the cells of tables that are no secret of a sort, `calm_rows` the lengths of tables without a secret, by
    their rows and what was looked for in them.
    """

    __slots__ = ("calm_rows", "excess", "harmless", "headings", "judged", "looks")

    def __init__(self, length: int) -> None:
        self.looks = self.headings = _LOOKS + length // LENGTH_OF_LOOK
        self.excess = 0
        self.judged: dict[tuple[str, str], Verdict] = {}
        self.harmless: dict[Callable[[str], bool], set[str]] = {}
        self.calm_rows: dict[tuple[object, ...], int] = {}


# So often a text is searched in vain, and more often if it is long. In 160 MB of text and code it was 262 times in
# 47 kB, 458 times in 143 kB and 548 times in 380 kB; below headings, 255 times at most. The five files that are most
# like this, joined to one of 650 kB, are no crowd.
_LOOKS = 600
LENGTH_OF_LOOK = 500


# An id of ours, as `new_id` makes it: letters of chance, which may happen to spell `PWD` or `KEY`. Before an equals
# sign it is no id but base32.
_ID_CHARS = 26
_ID = pattern(rf"(?<![0-9A-Za-z_])[0-7][0-9A-HJKMNP-TV-Z]{{{_ID_CHARS - 1}}}(?![0-9A-Za-z_=])")
_LETTERS_OF_ID = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def is_within_id(text: str, at: int) -> bool:
    """Whether the word that begins here is none, but stands within an id of ours."""
    if text[at] not in _LETTERS_OF_ID or text[at - 1 : at] not in _LETTERS_OF_ID:  # no id begins with a word
        return False
    return _ID.search(text, max(0, at - _ID_CHARS + 1), at + _ID_CHARS + 1) is not None


# --- plain signs: nothing here moves a character ---


def _plain_signs() -> dict[str, str]:
    """Make the table of single signs that are read as another one."""
    plain: dict[str, str] = {}
    for instead, signs in (
        (" ", "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"),
        ('"', "“”„‟«»「」『』〝〞"),
        ("'", "‘’‚‛‹›′"),
        ("-", "‐‑‒−﹣"),
        (":", "︰﹕꞉∶"),
        ("=", "﹦"),
        ("|", "│┃║¦"),
        (".", "｡"),
        ("a", "áàâäãåā"), ("e", "éèêëēęě"), ("i", "íìîïīı"), ("o", "óòôöõøō"), ("u", "úùûüūůű"), ("n", "ñńň"),
        ("c", "çćč"), ("s", "śšş"), ("z", "źżž"), ("l", "ł"), ("y", "ýÿ"), ("r", "ř"), ("g", "ğ"), ("k", "\u212a"),
        ("α", "ά"), ("ε", "έ"), ("η", "ή"), ("ι", "ί"), ("ο", "ό"), ("υ", "ύ"), ("ω", "ώ"),
        ("A", "ÁÀÂÄÃÅĀ"), ("E", "ÉÈÊËĒĘĚ"), ("I", "ÍÌÎÏĪİ"), ("O", "ÓÒÔÖÕØŌ"), ("U", "ÚÙÛÜŪŮŰ"), ("N", "ÑŃŇ"),
        ("C", "ÇĆČ"), ("S", "ŚŠŞ"), ("Z", "ŹŻŽ"), ("L", "Ł"), ("Y", "Ý"), ("R", "Ř"), ("G", "Ğ"),
        (_NOTHING, "\u00ad\u034f\u061c\u180e\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"),
    ):  # fmt: skip
        plain |= dict.fromkeys(signs, instead)
    return plain


_PLAIN = _plain_signs()
_LETTERS_IN_ORDER = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@cache
def _read_otherwise() -> frozenset[str]:
    ranges = ((0xFF01, 0xFF5E), (0x1D400, 0x1D6A3), (0x1D7CE, 0x1D7FF), *_RANGES_OF_NOTHING)
    return frozenset(_PLAIN).union(*(map(chr, range(first, last + 1)) for first, last in ranges))


@cache
def _as_plain(sign: str) -> str:
    """Say what one of these signs is read as."""
    code = ord(sign)
    if 0xFF01 <= code < 0xFF5F:  # as wide as a Chinese one
        return chr(code - 0xFEE0)
    if 0x1D400 <= code < 0x1D6A4:  # letters of mathematics, in one style after the other
        return _LETTERS_IN_ORDER[(code - 0x1D400) % 52]
    if 0x1D7CE <= code < 0x1D800:  # and its digits
        return "0123456789"[(code - 0x1D7CE) % 10]
    for first, last in _RANGES_OF_NOTHING:
        if first <= code <= last:
            return _NOTHING
    return _PLAIN[sign]


# Marks of direction, marks that choose a variant, and accents that stand behind their letter.
_RANGES_OF_NOTHING = ((0x202A, 0x202E), (0x2066, 0x206F), (0xFE00, 0xFE0F), (0x0300, 0x036F))
# A backslash before one of these says that the sign means itself, in Markdown, JSON or a shell.
_ESCAPES = {f"\\{sign}": f"{_NOTHING}{sign}" for sign in "_-*.~+#!$&@=/:|<>()[]{}%^,;? "}
_ESCAPES |= {
    form: sign + _NOTHING * 5
    for code, sign in (
        ("22", '"'),
        ("26", "&"),
        ("27", "'"),
        ("3a", ":"),
        ("3c", "<"),
        ("3d", "="),
        ("3e", ">"),
    )
    for form in (f"\\u00{code}", f"\\u00{code.upper()}")
}
_ENTITIES = {
    "quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "nbsp": " ", "colon": ":", "equals": "=",
}  # fmt: skip


def _entity(found: re.Match[str]) -> str:
    """The sign that an entity of HTML stands for, at its place."""
    name = found[0][1:-1]
    if name[0] == "#":
        sign = chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))
    else:
        sign = _ENTITIES[name]
    return sign + _NOTHING * (len(name) + 1)


_IN_ADDRESSES = {
    form: sign + _NOTHING * 2
    for code, sign in (
        ("20", " "),
        ("22", '"'),
        ("26", "&"),
        ("27", "'"),
        ("3a", ":"),
        ("3d", "="),
        ("7b", "{"),
        ("7d", "}"),
    )
    for form in (f"%{code}", f"%{code.upper()}")
}
# By the sign with which all of them begin.
_WRITTEN_OTHERWISE: Mapping[str, tuple[re.Pattern[str], Mapping[str, str] | None]] = {
    "\\": (pattern(r"\\(?:[_\-*.~+#!$&@=/:|<>()\[\]{}%^,;? ]|u00(?:2[267]|3[acdeACDE]))"), _ESCAPES),
    "&": (
        pattern(
            r"&(?:quot|apos|amp|lt|gt|nbsp|colon|equals|#(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]|[xX](?:[2-6][0-9a-fA-F]|7[0-9a-eA-E])));"
        ),
        None,
    ),
    "%": (pattern(r"%(?:2[0267]|3[adAD]|7[bdBD])"), _IN_ADDRESSES),
}
_FEW = 64  # one in so many characters
_MANY_SIGNS = 80  # more different ones are quicker to replace all at once
# Cyrillic letters that look like others, in a word that has both.
_LOOK_ALIKE = "авеорсухіѕјАВЕОРСУХІЅЈ"
_AS_LATIN = str.maketrans(_LOOK_ALIKE, "abeopcyxisjABEOPCYXISJ")
_BESIDE_LATIN = pattern(
    rf"[{_LOOK_ALIKE}](?:(?<=[A-Za-z].)[{_LOOK_ALIKE}]{{0,16}}+|[{_LOOK_ALIKE}]{{0,16}}+(?=[A-Za-z]))"
)


def _as_plain_signs(text: str, odd: frozenset[str]) -> str:
    """Write the text in signs that the rules know, each at its place; what is to be left out becomes one sign."""
    text = _with_known_signs(text, odd) if odd else text
    for opening, (expression, meanings) in _WRITTEN_OTHERWISE.items():
        count = text.count(opening)
        if not count or not expression.search(text):
            continue
        if meanings is None:
            text = expression.sub(_entity, text)
        elif count * _FEW < len(text):
            text = expression.sub(lambda found, known=meanings: known[found[0]], text)  # type: ignore[misc]
        else:  # so many that it is quicker to look for each in turn
            for written, meant in meanings.items():
                text = text.replace(written, meant)
    if " + " in text:  # a text that a program puts together
        text = text.replace('" + "', _NOTHING * 5).replace("' + '", _NOTHING * 5)
    return text


def _with_known_signs(text: str, odd: frozenset[str]) -> str:
    plain = {sign: _as_plain(sign) for sign in odd & _read_otherwise()}
    if len(plain) > _MANY_SIGNS:
        text = text.translate({ord(sign): meant for sign, meant in plain.items()})
    else:
        for sign, meant in plain.items():
            text = text.replace(sign, meant)
    if not odd.isdisjoint(_LOOK_ALIKE):
        text = _BESIDE_LATIN.sub(lambda some: some[0].translate(_AS_LATIN), text)
    return text


def _odd_signs_of(text: str) -> frozenset[str]:
    """The signs that are not ASCII. Most texts have few, and taking all others out first is the quicker way."""
    data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return frozenset(data.decode("utf-8", "surrogatepass"))


def forms_of(sign: str) -> set[str]:
    """Every sign that is read as this one, in lower case; of those that are not ASCII themselves."""
    return {sign, sign.upper(), *_OTHER_FORMS.get(sign, ())}


_OTHER_FORMS: dict[str, list[str]] = {}
for _form, _plain in _PLAIN.items():
    if not _plain.isascii():
        _OTHER_FORMS.setdefault(_plain.lower(), []).append(_form)


# --- stretches ---

_LONG = b"a" * 20
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_AS_LETTER_OR_BREAK = bytes(
    ord("a") if byte in _LETTERS + b"0123456789_.-" else ord(" ") for byte in range(256)
)


def _stretches_in(text: bytes) -> list[int]:
    """Find long stretches. When all that may be in one looks alike, the search steps over twenty characters at once."""
    alike = text.translate(_AS_LETTER_OR_BREAK)
    found: list[int] = []
    at = alike.find(_LONG)
    while at >= 0:
        found.append(at)
        at = alike.find(b" ", at + len(_LONG))
        if at >= 0:
            at = alike.find(_LONG, at)
    return found


_LONG_WORD = b"a" * 24
# What is not of the West has become a question mark.
_AS_BLACK_OR_WHITE = bytes(
    ord("a") if 32 < byte < 127 and byte != ord("?") else ord(" ") for byte in range(256)
)


def _long_words_of(text: str, in_bytes: bytes) -> str:
    alike = in_bytes.translate(_AS_BLACK_OR_WHITE)
    found: list[str] = []
    at = alike.find(_LONG_WORD)
    while at >= 0:
        end = alike.find(b" ", at)
        if end < 0:
            end = len(text)
        found.append(text[at:end])
        at = alike.find(_LONG_WORD, end)
    return " ".join(found)
