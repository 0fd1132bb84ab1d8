"""The cases: each kind of secret in each place that fits it, and lines of ordinary text, read from the data files."""

from __future__ import annotations

import functools
import hashlib
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

from tests.redaction.corpus import values
from tests.redaction.corpus.spellings import SPELLINGS, spell

from plainmind.base.value import value

FOLDER = Path(__file__).resolve().parent
HALVES = ("dev", "unseen")
SETS = (*HALVES, "fresh")  # the last one was written later, for one measurement
LANGUAGES = ("any", "en", "zh", "ja", "ko", "de", "es", "fr")
ONE_WORD = ("token", "password", "code")
GROUPS: Mapping[str, tuple[str, ...]] = {  # families that fit a place
    "one": ONE_WORD,
    "line": (*ONE_WORD, "url", "dsn", "phrase"),
}
# So many of a family stand in one place: otherwise the tokens, which are many, would outweigh all else.
MOST_OF_FAMILY = {"token": 6, "url": 3, "dsn": 2, "password": 5, "phrase": 2, "pin": 3, "code": 2, "block": 7}
SALT = 797  # chosen so that the halves are about equal in every language and family
MARK = re.compile(r"\{(?:secret(?:\|([a-z0-9-]+))?|another:([a-z0-9-]+))\}")
_HEADER = re.compile(r"=== ([\w/-]+)(?: \| (\w+) \| ([\w -]+))?$")
_WORD = re.compile(r"\w+")
_TRIES = 50
RECOGNISABLE = 8  # characters in a row
RECOGNISABLE_SHARE = 0.6
_LEAST = 4  # shorter rows stand in any text by chance


@value
class Kind:
    """A kind of secret: how it looks, and how variables and people call it."""

    name: str
    family: str
    templates: tuple[str, ...]
    variable: str
    labels: Mapping[str, str]
    is_marked: bool

    def label(self, language: str) -> str:
        """How people who write this language call it."""
        return self.labels.get(language, self.labels["en"])


@value
class Place:
    """A text with marks, and the kinds or families of secrets that can stand at the mark."""

    name: str
    language: str
    fits: tuple[str, ...]
    text: str


@value
class Case:
    """One kind in one place. `text` has marks: `{secret}`, `{secret|spelling}` and `{another:kind}`."""

    id: str
    kind: str
    place: str
    language: str
    text: str


@value
class Secret:
    """A secret that stands in a text: its kind, its value, and the rows of characters that give it away."""

    kind: str
    value: str
    rows: tuple[str, ...]

    def row_in(self, text: str) -> str | None:
        """The first row that can be read in this text."""
        return next((row for row in self.rows if row in text), None)


@value
class Filled:
    """The text of a case with values for its marks, its secrets, and the words around them."""

    text: str
    secrets: tuple[Secret, ...]
    words: tuple[str, ...]


@value
class Ordinary:
    """A line that holds no secret."""

    language: str
    topic: str
    text: str


def half_of(name: str) -> str:
    """Tell which half a place or a line of ordinary text belongs to."""
    return HALVES[_digest(f"{SALT} {name}")[0] % 2]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name."""
    found: dict[str, Kind] = {}
    for family, table in tomllib.loads((FOLDER / "kinds.toml").read_text("utf-8")).items():
        for name, given in table.items():
            templates = tuple(given["template"])
            labels = {language: given[language] for language in LANGUAGES if language in given}
            found[name] = Kind(
                name=name,
                family=family,
                templates=templates,
                variable=given["env"],
                labels={"en": given["label"], **labels},
                is_marked=family == "token" and given.get("bare", True) and all(map(_is_marked, templates)),
            )
    return found


def _is_marked(template: str) -> bool:
    """Whether a value can be told from other texts by its beginning, without a name beside it."""
    beginning = values.literal_beginning(template)
    return len(beginning) > 3 or (len(beginning) == 3 and not beginning.isalnum())


@functools.cache
def places(half: str) -> tuple[Place, ...]:
    """The places of a half."""
    found = []
    for header, lines in _sections(FOLDER / half / "places.txt"):
        name, language, fits = header[1], header[2], header[3]
        full_name = name if language == "any" else f"{language}/{name}"
        found.append(
            Place(name=full_name, language=language, fits=tuple(fits.split()), text="\n".join(lines))
        )
    return tuple(found)


@functools.cache
def cases(half: str, *, every: bool = False) -> tuple[Case, ...]:
    """Kinds of secrets in each place of this half: some of each family that fits it, or every one."""
    found: list[Case] = []
    stood: Counter[str] = Counter()
    for place in places(half):
        for kind in _kinds_in(place, stood, every=every):
            stood[kind.name] += 1
            found.append(
                Case(
                    id=f"{kind.name}@{place.name}",
                    kind=kind.name,
                    place=place.name,
                    language=place.language,
                    text=_with_names(place, kind),
                )
            )
    return tuple(found)


@functools.cache
def ordinary(half: str) -> tuple[Ordinary, ...]:
    """The ordinary lines of a half, with their `{hex:40}` still to be filled."""
    found: list[Ordinary] = []
    for header, lines in _sections(FOLDER / half / "ordinary.txt"):
        language, topic = header[1].split("/")
        found.extend(Ordinary(language=language, topic=topic, text=line) for line in lines if line)
    return tuple(found)


def fill(case: Case, seed: int) -> Filled:
    """Put values that this seed makes in the place of the marks."""
    chance = Random(f"{seed} {case.id}")
    around = MARK.sub(" ", case.text)
    secrets: list[Secret] = []
    spelled: dict[str, str] = {}

    def write(mark: re.Match[str]) -> str:
        if mark[0] in spelled and not mark[2]:
            return spelled[mark[0]]  # the same secret twice
        secret, text = _secret(mark[2] or case.kind, mark[1] or "", around, chance)
        secrets.append(secret)
        spelled[mark[0]] = text
        return text

    text = MARK.sub(write, case.text)
    words = dict.fromkeys(word for word in _WORD.findall(around) if len(word) > 2 or not word.isascii())
    return Filled(text=text, secrets=tuple(secrets), words=tuple(words))


def rows_of(pieces: tuple[str, ...]) -> tuple[str, ...]:
    """Every row of pieces that is long enough to recognise the secret: 8, or 60 % of a short one."""
    length = min(RECOGNISABLE, max(_LEAST, math.ceil(len(pieces) * RECOGNISABLE_SHARE)))
    return tuple("".join(pieces[at : at + length]) for at in range(max(1, len(pieces) - length + 1)))


def _secret(kind: str, spelling: str, around: str, chance: Random) -> tuple[Secret, str]:
    for _ in range(_TRIES):
        made = values.make(chance.choice(kinds()[kind].templates), chance)
        spelled = spell(made, spelling)
        plain = rows_of(tuple(made.secret))
        rows = tuple(dict.fromkeys((*plain, *rows_of(spelled.pieces)))) if spelling else plain
        if not any(row in around for row in rows):
            return Secret(kind=kind, value=made.text, rows=rows), spelled.text
    raise AssertionError(f"no value of {kind} differs from the text around it: {around!r}")


def _kinds_in(place: Place, stood: Mapping[str, int], *, every: bool) -> list[Kind]:
    """The kinds that stand in a place: those it names, and of each family those that stood in the fewest places."""
    found = [kind for kind in kinds().values() if kind.name in place.fits]
    by_family: dict[str, list[Kind]] = {}
    for kind in kinds().values():
        if kind.name not in place.fits and _fits(kind, place):
            by_family.setdefault(kind.family, []).append(kind)
    for family, some in by_family.items():
        some.sort(key=lambda kind: (stood[kind.name], _digest(f"{kind.name} {place.name}")))
        found.extend(some if every else some[: MOST_OF_FAMILY[family]])
    return found


def _fits(kind: Kind, place: Place) -> bool:
    return any(
        kind.family == fit or kind.family in GROUPS.get(fit, ()) or (fit == "marked" and kind.is_marked)
        for fit in place.fits
    )


def _with_names(place: Place, kind: Kind) -> str:
    key = kind.variable.lower()
    first, *rest = key.split("_")
    names = {
        "{ENV}": kind.variable,
        "{key}": key,
        "{kebab}": key.replace("_", "-"),
        "{camel}": first + "".join(part.title() for part in rest),
        "{label}": kind.label(place.language),
        "{cr}": "\r",
    }
    text = place.text
    for name, meant in names.items():
        text = text.replace(name, meant)
    return text


def _sections(path: Path) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield each `=== …` line with the lines below it."""
    header: re.Match[str] | None = None
    lines: list[str] = []
    for line in path.read_text("utf-8").split("\n"):
        found = _HEADER.match(line)
        if not found:
            lines.append(line)
            continue
        if header:
            yield header, lines
        header, lines = found, []
    if header:
        yield header, lines[:-1] if lines[-1:] == [""] else lines


def unknown_marks(case: Case) -> list[str]:
    """What looks like a mark in this case and is none: a spelling or a kind that does not exist."""
    return [
        mark[0]
        for mark in MARK.finditer(case.text)
        if (mark[1] or "") not in SPELLINGS or (mark[2] or case.kind) not in kinds()
    ]
