"""Terms: the words under which a text is filed and a question looks, and the days that a question names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import add

import Stemmer

from plainmind.base.lazy import IGNORECASE, ThreadLocal, pattern
from plainmind.base.model import date, sha256_text, timedelta
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.text.spans import DatePattern, HintedPattern


# Part of the index fingerprint: change it whenever the same text would give other terms.
TERMS_VERSION = "5"

LONGEST_TERM = 64
# In front of a term that stands in a name; no word begins with it.
NAME_MARK = "="
LONGEST_NAME = 12  # terms: a longer one is a sentence
_LONGEST_DIVIDED = 256  # a longer word is data (base64, a minified script): its parts mean nothing
_LONGEST_KNOWN = 40
_MOST_KNOWN = 60_000  # words whose terms are remembered, about 15 MB

# Vowel signs and points, which `\w` leaves out, belong to the words of their scripts.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0df3\u0f71-\u0f84\u0f90-\u0fbc\u135d-\u135f"
)
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
# What NFKC makes of marks that stand in every Chinese sentence: without them most texts are normalized already, which
# is found out nine times as fast as it is done.
_FULL_WIDTH = {"，": ",", "：": ":", "（": "(", "）": ")", "！": "!", "？": "?", "；": ";", "…": "..."}
# Marks that stand around words, and at their ends belong to none.
_AROUND_WORDS = "?!.,;:¿¡\"'()„“”«»…"
_AROUND = ".,;:!?()[]{}<>*\"'`/\\|-=~^%&$“”‘’—–"
# A number with thousands separators, or letters joined by single marks. The repeat is bounded because the
# matcher's memory grows with it.
_WORD_RULE = (
    r"(?P<number>(?<!\w)\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?)"
    r"|[@#]?LETTER+(?:(?:://|::|[-./:@\\'’])LETTER+){0,40}(?:\+\+|(?<=\b\w)\#)?"
)
_PLAIN_WORD = pattern(_WORD_RULE.replace("LETTER", r"\w"))
_ANY_WORD = pattern(_WORD_RULE.replace("LETTER", rf"[\w{_MARKS}]"))
# A pattern of many ranges takes a millisecond to compile: a dash or an accent can do without.
_MAY_HAVE_MARKS = pattern(r"[\u0300-\u135f]")
_MAY_BE_SPACELESS = pattern(r"[^\0-\u0e00\u1e00-\u2fff\ufe00-\ufe0f\U0001f000-\U0001ffff]")
_JOINT = pattern(r"://|::|[-./:@\\#+]+")
_PATH_JOINT = pattern(r"://|[/\\]")
_CONTRACTED = pattern(r"'(?:ll|re|ve|d|m|s)$", IGNORECASE)
_CAMEL = pattern(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_CAMEL_PART = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")
_LETTERS = pattern(r"[^\W\d_]{3,}")
_CAPITALS = pattern(r"[A-Z]{2,}s?")
_ORDINAL = pattern(r"\d+(?:st|nd|rd|th|s|am|pm)")
_ALL_DIGITS = pattern(r"\d+")

# "may" is missing on purpose: a month. So are "won" and "don": what is left of a contraction is a word too.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are aren as at be because been before being between both
    but by can cannot could couldn did didn do does doesn doing done during each either etc for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in
    into is isn it its itself just let ll me might more most mustn my myself neither no nor not of off
    on once only or other our ours ourselves over own please re s same shall she should shouldn so some
    such t than that the their theirs them themselves then there these they this those through to too
    under until up upon us ve very via was wasn we were weren what when where whether which while who
    whom whose why will with would wouldn yet you your yours yourself yourselves
    ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't
    needn't shan't shouldn't wasn't weren't won't wouldn't let's y'all dont didnt doesnt isnt wasnt im
    ive whats thats e.g i.e
    """.split()  # noqa: SIM905
)

# Words that a text may be about, but that tell nothing in a question.
_WEAK_WORDS = frozenset(
    """
    actually already although anybody anyone anything anyway current currently else ever everyone everything
    exactly find get gets give got happen happened happening happens however hows kind kinds know latest lot lots
    many maybe much must need needs note notes now ones quite rather really show since somebody someone something
    sort still take takes taken tell thing things though want wants whats wheres whos within without
    """.split()  # noqa: SIM905
)

# In capitals these are names, not function words.
ACRONYMS = frozenset({"IT", "US", "WHO"})


@value
class QueryTerms:
    """What a query looks up. `exact` are the identifiers among the terms: rare, and matched as written."""

    terms: tuple[str, ...]  # distinct, in the order of the query
    exact: frozenset[str]
    only_stop_words: bool = False  # then `terms` are those words, which no document is filed under


class _Found:
    """What the words of a text gave so far."""

    __slots__ = ("exact", "question", "stop_words", "terms")

    def __init__(self) -> None:
        self.question = ""  # where it is one: then what carries nothing is left out
        self.terms: list[str] = []
        self.exact: list[str] = []
        self.stop_words: list[str] = []


_known: dict[str, tuple[str, ...]] = {}


def document_terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeats included."""
    terms: list[str] = []
    for word in words_of(text):
        found = _known.get(word)
        terms.extend(_learn(word) if found is None else found)
    return terms


def words_of(text: str) -> list[str]:
    """Return what stands between spaces, normalized."""
    return normalize(text).split()


def stands_in(text: str, word: str) -> bool:
    """Whether a run of letters and digits stands in a text, with none of either beside it."""
    at, size = text.find(word), len(word)
    while at >= 0:
        after = at + size
        if not (at and text[at - 1].isalnum()) and not text[after : after + 1].isalnum():
            return True
        at = text.find(word, after)
    return False


def word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one word of `words_of`: those of a text are the terms of its words."""
    found = _known.get(word)
    return _learn(word) if found is None else found


@lru_cache(maxsize=256)
def clues(term: str) -> tuple[str, ...]:
    """Return what to look for: every ASCII word with this term has one of these in it, in lower case.

    A word begins with its stem, except that the stemmer may have put the last letter (cry → cri, using → use), or
    after a single letter the last two (dying → die).
    """
    if not term.isascii():
        return ()
    if term.isalpha():
        if len(term) == 3 and term.endswith("ie"):
            return (term[0],)
        return (term[:-1] if term[-1] in "eily" and len(term) > 1 else term,)
    if len(term) == LONGEST_TERM:
        return (term[0],)  # perhaps it was cut
    number, point, decimals = term.partition(".")
    if number.isdigit() and len(number) > 3:
        head = len(number) % 3 or 3
        groups = [number[:head], *(number[at : at + 3] for at in range(head, len(number), 3))]
        return (term, f"{','.join(groups)}{point}{decimals}")
    return (term,)


def query_terms(text: str) -> QueryTerms:
    """Return the distinct terms of a query; a query of stop words alone keeps them and says so."""
    text = normalize(text)
    words = text.split()
    if len(words) > 3 and text.isupper():  # a shouted sentence is not a row of acronyms
        words = [word.lower() if word.isascii() else word for word in words]
    found = _Found()
    found.question = text
    for word in _telling_words(words):
        _read(word, found)
    if not found.terms:
        found = _Found()
        for word in words:
            _read(word, found)
    only_stop_words = bool(found.stop_words) and not found.terms
    terms = found.stop_words if only_stop_words else found.terms
    return QueryTerms(tuple(dict.fromkeys(terms)), frozenset(found.exact), only_stop_words)


def _telling_words(words: Sequence[str]) -> list[str]:
    """The words of a question without those that tell nothing in its language."""
    folded = [fold(word.strip(_AROUND_WORDS)) for word in words]
    english = len(STOP_WORDS.intersection(folded))
    if len(folded) > 1 and 2 * english < len(folded):  # or else it is English
        from plainmind.text.function_words import of_another_language, parted

        empty = of_another_language({part for bare in folded for part in parted(bare)}, than=english)
        if empty:
            left = [(word, bare) for word, bare in zip(words, folded, strict=True) if bare not in empty]
            return [part for word, bare in left for part in _without_elided(word, bare, empty)]
    return [word for word, bare in zip(words, folded, strict=True) if bare not in _WEAK_WORDS]


def _without_elided(word: str, bare: str, empty: frozenset[str]) -> list[str]:
    """A word without the one that is written together with it: "l'imprimante", "dell'algoritmo"; "est-ce" is none."""
    from plainmind.text.function_words import ELIDED, parted

    if empty.issuperset(parted(bare)):
        return []
    elided = ELIDED.match(word)
    return [word[elided.end() :]] if elided and fold(elided[1]) in empty else [word]


def query_names(terms: Iterable[str]) -> tuple[str, ...]:
    """The terms under which names are filed that have these terms."""
    return tuple([NAME_MARK + term for term in terms])


def whole_names(text: str, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """The terms under which is filed what is called like this, in whatever order: as it is written, and as it is asked.

    Of what is asked, what carries nothing is left out: "qué es la velocidad" asks for *Velocidad*, "velocity" for
    *Velocity* rather than for *Note Velocity*. None for what is longer than a name. `asked` are the terms of the text
    as a question, where they are known; in capitals they may be others.
    """
    if len(asked) > LONGEST_NAME:
        return ()
    folded = text.lower()
    if not asked or folded[1:] != text[1:]:
        asked = query_terms(folded).terms
    return tuple(
        [
            _bound(mark + NAME_MARK.join(sorted(set(terms))))
            for mark, terms in ((NAME_MARK * 2, document_terms(folded)), (NAME_MARK * 3, asked))
            if 0 < len(terms) <= LONGEST_NAME
        ]
    )


def spaceless_stretches(word: str) -> list[str]:
    """Divide a word: at odd positions stands what is written without spaces, at even ones everything else."""
    return SPACELESS_RUN.split(word) if may_be_spaceless(word) else [word]


def may_be_spaceless(text: str) -> bool:
    """Whether a text may hold letters of scripts without spaces; never False when it does."""
    return not text.isascii() and _MAY_BE_SPACELESS.search(text) is not None


def normalize(text: str) -> str:
    """Give a text the form in which equal words are equal strings."""
    if text.isascii():
        return text
    for character in _INVISIBLE:
        text = text.replace(character, "")
    for character, mark in _FULL_WIDTH.items():
        text = text.replace(character, mark)
    import unicodedata  # half a millisecond, which plain English saves

    return unicodedata.normalize("NFKC", text)


def _learn(word: str) -> tuple[str, ...]:
    found = _Found()
    _read(word, found)
    terms = tuple(found.terms)
    if len(word) <= _LONGEST_KNOWN:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[word] = terms
    return terms


def _read(word: str, found: _Found) -> None:
    """Read what stands between two spaces."""
    bare = word.strip(_AROUND)
    plain = bare.isalpha() and bare.isascii() and (bare.islower() or bare[1:].islower())
    if plain and len(bare) <= _LONGEST_DIVIDED:
        _add_plain(bare.lower(), found)  # as most words are: nothing to divide
    elif word.isascii():
        _read_spaced(word, found)
    else:
        _read_stretches(word, found)


def _add_plain(word: str, found: _Found) -> None:
    if word in STOP_WORDS:
        found.stop_words.append(word)
    else:
        _append(stem(word), found)


def _read_stretches(word: str, found: _Found) -> None:
    for number, stretch in enumerate(spaceless_stretches(word)):
        if number % 2:
            found.terms.extend(_pairs_to_look_for(stretch, found) if found.question else bigrams(stretch))
        else:
            _read_spaced(stretch, found)


def _pairs_to_look_for(stretch: str, found: _Found) -> list[str]:
    from plainmind.text.function_words import pairs_of_question

    return pairs_of_question(stretch, of=found.question)


def _read_spaced(stretch: str, found: _Found) -> None:
    words = _ANY_WORD if _MAY_HAVE_MARKS.search(stretch) else _PLAIN_WORD
    for match in words.finditer(stretch):
        token = match[0].replace("’", "'")
        if match["number"]:
            token = token.replace(",", "")
        if "'" in token:
            _add_with_apostrophe(token, found)
        else:
            _add_token(token, found)


def _add_with_apostrophe(token: str, found: _Found) -> None:
    """Read Anna's as Anna, they'll as they, O'Brien as O and Brien."""
    if fold(token) in STOP_WORDS:
        found.stop_words.append(fold(token))
        return
    for part in _CONTRACTED.sub("", token).split("'"):
        _add_token(part, found)


def _add_token(token: str, found: _Found) -> None:
    identifier = _add(token, found)
    if identifier:
        found.exact.append(identifier)


def _add(token: str, found: _Found) -> str:
    """Add the terms of one token; return its whole form when it is an identifier."""
    joints = _PATH_JOINT if _PATH_JOINT.search(token) else _JOINT
    parts = [part for part in joints.split(token) if part]
    if parts == [token]:
        return _add_joined(token, found)
    whole = _bound(fold(token))
    if whole in STOP_WORDS:
        found.stop_words.append(whole)
        return ""
    found.terms.append(whole)
    for part in parts:
        _add(part, found)
    return whole


def _add_joined(word: str, found: _Found) -> str:
    """Add a word without punctuation inside: it may still be snake_case, camelCase or letters and digits."""
    if not (word.startswith("__") and word.endswith("__") and word.strip("_")):
        word = word.strip("_")  # Markdown's emphasis and rules; only Python's double ones name something
    folded = fold(word)
    if folded in STOP_WORDS and word not in ACRONYMS:
        found.stop_words.append(folded)
        return ""
    parts = _parts(word)
    if parts is None:
        _append(stem(folded), found)
        return folded if len(folded) > 4 and _ALL_DIGITS.fullmatch(folded) else ""
    whole = _append(folded, found)
    for part in parts:
        _add_part(part, whole, found)
    return "" if _ORDINAL.fullmatch(folded) else whole


def _parts(word: str) -> list[str] | None:
    """Divide an identifier; None when the word is an ordinary one."""
    if len(word) > _LONGEST_DIVIDED:
        return []
    if "_" in word:
        return [part for part in word.split("_") if part]
    if _CAPITALS.fullmatch(word):
        return [word.lower()]
    if _CAMEL.search(word):
        return _CAMEL_PART.findall(word)
    if word.isalpha() or not word.isalnum() or word.isdigit():
        return None
    # Numerals of other scripts (፩) are neither letters nor `\d`: a word of them is its own only part.
    return [part for part in _LETTERS.findall(word) if part != word]


def _add_part(part: str, whole: str, found: _Found) -> None:
    before = len(found.terms)
    _add_joined(part, found)
    if found.terms[before:] == [whole]:
        del found.terms[before:]  # an acronym that is its own stem counts once


def _append(term: str, found: _Found) -> str:
    term = _bound(term)
    if term:
        found.terms.append(term)
    return term


def _bound(term: str) -> str:
    if len(term) <= LONGEST_TERM:
        return term
    digest = sha256_text(term)[:16]
    return f"{term[: LONGEST_TERM - len(digest) - 1]}~{digest}"


# --- word forms: what is found by each other ---

_ACCENTS = pattern(r"[\u0300-\u036f]+")
_UNDECOMPOSED = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h"}
_WITHOUT_STROKES = str.maketrans(_UNDECOMPOSED)
_NO_LETTERS = bytes(range(256)).translate(None, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class _ThreadStemmer(ThreadLocal):
    """One Snowball stemmer a thread: they keep state while they work. Its own cache would double ours."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english", 0).stemWord


_thread = _ThreadStemmer()


def fold(word: str) -> str:
    """Drop case and accents: Café → cafe. Marks that are letters in other scripts stay (が is not か)."""
    word = word.casefold()
    if word.isascii():
        return word
    import unicodedata

    bare = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))
    # `translate` looks every letter of a text up: to look for these eight takes a twentieth of that.
    return bare.translate(_WITHOUT_STROKES) if any(map(bare.__contains__, _UNDECOMPOSED)) else bare


_SPEAKER = pattern(r"[\s>*_-]*(\w+)[*_]*\s?[:：]")


def speaker_of(unit: str) -> str | None:
    """Who says a line of a conversation: `Anna: …`, `**Anna:** …`, `- Anna: …`."""
    match = _SPEAKER.match(unit) if ":" in unit or "：" in unit else None
    return match[1].casefold() if match else None


# The best lines of a search are looked at several times over.
@lru_cache(maxsize=256)
def letters_of(line: str) -> str:
    """The letters of a line, folded: lines that say the same have the same ones."""
    if line.isascii():
        return line.encode().translate(None, _NO_LETTERS).decode().lower()
    return "".join(filter(str.isalpha, line)).casefold()


def stem(folded: str) -> str:
    """Reduce a folded English word to its stem: memories → memori. Other words stay as they are."""
    if folded.isascii() and folded.isalpha():
        stemmed: str = _thread.stem(folded)
        return stemmed
    return folded


# --- scripts without spaces: how much room they take, and how they are searched ---

_HAN = r"\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = (
    r"\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3105-\u312f\u31a0-\u31bf"
)
_HANGUL = r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
_THAI_LAO = r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
_KHMER_BURMESE = r"\u1780-\u17d3\u17dc\u17dd\u1000-\u103f\u1050-\u109d\uaa60-\uaa7b"

WIDE_WEIGHT = 4


# A run of letters of scripts without spaces, as one group.
SPACELESS_RUN = pattern(f"([{_HAN}{_KANA}{_HANGUL}{_THAI_LAO}{_KHMER_BURMESE}]+)")
# East Asian letters, punctuation and full-width forms: about one token each for a model.
WIDE_RUN = pattern(
    r"[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    r"\U00020000-\U0003ffff]+"
)


def weight(text: str) -> int:
    """Measure text in characters of English: four to a token, so that a CJK character counts four."""
    if text.isascii():
        return len(text)
    return len(text) + (WIDE_WEIGHT - 1) * sum(map(len, WIDE_RUN.findall(text)))


def letters_without_spaces(text: str) -> int:
    """Count the letters of scripts that are written without spaces."""
    return sum(map(len, SPACELESS_RUN.findall(text)))


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run: 東京都 → 東京, 京都; a character alone stays as it is."""
    return list(map(add, run, run[1:])) if len(run) > 1 else [run]


def count_overlapping(text: str, part: str) -> int:
    """How often a part stands in a text, counting those that share a letter."""
    count = 0
    at = text.find(part)
    while at >= 0:
        count += 1
        at = text.find(part, at + 1)
    return count


_LONGEST_QUERY = 4000
# Every English way to name a day contains a digit or one of these: most queries need none of the patterns.
_HINTS = (  # noqa: SIM905 (a line each would be two pages)
    "hour|day|week|month|quarter|year|tomorrow|christmas|night|morning|afternoon|evening|mon|tue|wed|thu|fri|sat|"
    "sun|spring|summer|autumn|fall|winter|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
).split("|")
# The same for German, French, Spanish, Italian, Portuguese, Dutch and Russian.
_OTHER_HINTS = (  # noqa: SIM905 (a line each would be two pages)
    "heute|gestern|bermorgen|vor |letzte|vergangen|diese|chste|montag|dienstag|mittwoch|donnerstag|"
    "freitag|samstag|sonnabend|sonntag|wochenende|im |anfang|weihnachten|silvester|märz|maerz|oktober|dezember|0. |"
    "hier|aujourd|ce matin|ce soir|demain|il y a|dernier|dernièr|semaine|cette|prochain|week-end|lundi|mardi|"
    "mercredi|jeudi|vendredi|samedi|dimanche|printemps|été|automne|hiver|noël|janvier|vrier|mars|avril|juin|"
    "juillet|août|embre|octobre|en mai|ce mois|ayer|anoche|hoy|hace |ltim|pasad|este |esta |semana|que viene|lunes|"
    "martes|rcoles|jueves|viernes|bado|domingo|finde|primavera|verano|otoño|invierno|navidad|nochevieja|enero|"
    "febrero|marzo|abril|mayo|agosto|octubre|ieri|stamattina|stasera|questo |domani|settiman| giorni fa| giorno fa|"
    " mesi fa|mese fa|anni fa|anno fa|ore fa|ora fa|scors|prossim|quest'|quest’|luned|marted|mercoled|gioved|"
    "venerd|sabato|domenica|autunno|inverno|capodanno|silvestro|gennaio|febbraio|aprile|maggio|giugno|luglio|"
    "ottobre|ontem|hoje|amanh|há |faz |atrás|atras|-feira|segunda|terça|na quarta|na quinta|na sexta|verão|outono|"
    "natal|veillon|mês|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|gisteren|"
    "vandaag|vanmorgen|vanochtend|vanmiddag|vanavond|overmorgen|geleden|afgelopen|voorbije|laatste|vorig|deze |"
    "volgende|komende|elke |maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|lente|voorjaar|zomer|herfst|"
    "najaar|kerst|oudjaar|oud en nieuw|januari|februari|maart|juni|juli|augustus|вчера|сегодня|завтра|назад|"
    "последни|прошл|следующ|выходны|понедельник|вторник|четверг|пятниц|суббот|воскресень|весной|летом|осенью|зимой|"
    "рождество|новый год|январ|феврал|март|апрел|июн|июл|август|сентябр|октябр|ноябр|декабр| oggi|in estate|"
    "'estate|’estate|ultimi |ultime |dit jaar|het weekend|dit weekend| mei | mei?| эт| мая| мае| сред|в май|каждый|"
    "каждую|каждое"
).split("|")
# Longer spans are looked up by month, and then by year.
MOST_DAYS = 31
MOST_MONTHS = 24
# What stands before or after the name of a day makes more of it: all since then, or the weeks before.
_SINCE = pattern(
    r"\b(?:since|seit|depuis|desde|after|nach|apr[èe]s|despu[ée]s de|da|dal|dallo|dalla|dopo|depois d[eoa]|ap[óo]s"
    r"|sinds|vanaf|с|после)\s+(?:the\s+|d(?:em|er)\s+|el\s+|l[eao]\s+|il\s+|a\s+|o\s+)?$",
    IGNORECASE,
)
_BEFORE = pattern(
    r"\b(?:before|prior to|until|till|by|vor|bis|avant|jusqu'(?:à|en)|antes d[eoa]|hasta"
    r"|prima d(?:i|el|ella)|fino a(?:l|lla)?|entro|at[ée]|voor|tot|до)\s+"
    r"(?:(?:my|our|the|his|her|their|your|meine[mnr]?|unsere[mnr]?|de[mnr]|mon|ma|mes|le|la|notre|mi|el|nuestr[oa])\s+"
    r"(?:\w+\s+){0,2})?$",
    IGNORECASE,
)
_SINCE_EAST_ASIAN = pattern(r"\s?(?:以来|以來|以后|以後|之后|之後|から|부터|이후)")
_BEFORE_EAST_ASIAN = pattern(r"\s?(?:以前|之前|前に|前の|まで|이전|전에|까지)")
_TOLD_FROM = pattern(r"\s+(?:before|prior to|after|following)\s+(?:the\s+)?", IGNORECASE)
_NEXT_TO = pattern(r"[\s,(（]*(?:(?:the|den|le|el|il)\s+)?", IGNORECASE)
_UP_TO = pattern(
    r"\s*(?:to|until|till|through|bis|jusqu'(?:à|au)|au|à|hasta|al?|at[ée]|tot|t/m|до|по|[-–—~〜]|到|至|から|부터)"
    r"\s*(?:(?:the|zum|den|le|el|il)\s+)?",
    IGNORECASE,
)
_AND = pattern(r"\s*(?:and|und|et|y|e|en|и|和|と)\s*(?:(?:the|le|el|dem)\s+)?", IGNORECASE)
_BETWEEN = pattern(
    r"\b(?:between|zwischen|entre|tra|fra|tussen|между)\s+(?:(?:the|dem|le|el|il)\s+)?$", IGNORECASE
)
_WEEKS_BEFORE = 13
_WEEKS_BEFORE_A_DAY = 2


# How the names of months and weekdays begin, in English, German, Spanish and French.
_OF_THE_CALENDAR = tuple(
    """
    jan ene feb fév marc marz märz mars apr abr avr may mai jun juin jul juil aug agosto août sep oct okt nov dec
    dez dic déc spring summer autumn winter mon tue wed thu fri sat sun dienstag mittwoch donnerstag samstag sonntag
    sonnabend lun mart mard mié mier merc jue jeu vie vend sáb sab sam dom dim
    """.split()  # noqa: SIM905
)


@value
class DayRange:
    """Days from `first` to `last`, both included, and the words that named them."""

    first: date
    last: date
    text: str


def mentioned_days(query: str, today: date) -> tuple[DayRange, ...]:
    """Return the days that a query names, in its order.

    Without a year the past is meant: the latest such day or month that has begun. Dates that no calendar
    has, like 30 February, name nothing.
    """
    query = _normalize(query[:_LONGEST_QUERY])
    taken = bytearray(len(query))
    found: dict[int, DayRange] = {}
    besides: dict[int, DayRange] = {}
    for words, resolve in _patterns(query):
        for match in words.finditer(query):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            taken[start:end] = b"\x01" * (end - start)
            try:
                span = resolve(match, today)
            except (ValueError, OverflowError):  # a day outside the calendar is no day
                continue
            if span is not None:
                found[start] = DayRange(*span[:2], match[0].strip())
                if len(span) > 2:
                    besides[start] = DayRange(*span[2:], found[start].text)
    return tuple(_put_together(sorted(found.items()), besides, query, today))


def _stretch(span: DayRange, before: str, after: str, today: date) -> DayRange:
    """The days that are meant, given what stands before and after their name."""
    first, last = span.first, span.last
    if (before[-1:].isspace() and _SINCE.search(before)) or (
        not after.isascii() and _SINCE_EAST_ASIAN.match(after)
    ):
        return DayRange(first, max(last, today), span.text)
    if (before[-1:].isspace() and _BEFORE.search(before)) or (
        not after.isascii() and _BEFORE_EAST_ASIAN.match(after)
    ):
        # What was before a day is written down on that day or earlier, and which day of a month it was is not said.
        weeks = _WEEKS_BEFORE_A_DAY if first == last else _WEEKS_BEFORE
        earliest = max(first.toordinal() - 7 * weeks, 1)
        return DayRange(date.fromordinal(earliest), last, span.text)
    return span


def _put_together(
    found: Sequence[tuple[int, DayRange]], besides: Mapping[int, DayRange], query: str, today: date
) -> Iterator[DayRange]:
    """Make one of days that belong together: "Monday to Friday", "Monday 19 October", "the Sunday before 25 October".

    A Sunday or a Monday that another day tells is not the last one.
    What may be meant besides is meant only by a name that stands alone.
    """
    together: list[tuple[int, DayRange]] = []
    joined: set[int] = set()
    for start, span in found:
        if together:
            begun, other = together[-1]
            between = query[begun + len(other.text) : start]
            is_next = _NEXT_TO.fullmatch(between) and has_digit(other.text) != has_digit(span.text)
            if _TOLD_FROM.fullmatch(between) or (is_next and has_digit(span.text)):
                together.pop()
            elif is_next:
                continue
            elif _UP_TO.fullmatch(between) or (_AND.fullmatch(between) and _BETWEEN.search(query[:begun])):
                together[-1] = begun, _from_to(other, span, query[begun : start + len(span.text)])
                joined.add(begun)
                continue
        together.append((start, span))
    for start, span in together:
        after = query[start + len(span.text) :]
        stretched = span if start in joined else _stretch(span, query[:start], after, today)
        yield stretched
        if start in besides and start not in joined and stretched is span:
            yield besides[start]


def _from_to(one: DayRange, other: DayRange, text: str) -> DayRange:
    """The days from one to another; of two weekdays the first is the one before the second."""
    if 0 < (one.first - other.last).days < 7 and one.first.toordinal() > 7:
        return DayRange(one.first - timedelta(weeks=1), other.last, text)
    return DayRange(min(one.first, other.first), max(one.last, other.last), text)


def without_days(text: str, days: Sequence[DayRange]) -> str:
    """A question without the words that name its days from today; dates, months and weekdays may stand in a text."""
    left = text
    for span in days:
        if not any(map(str.isdecimal, span.text)):
            kept = [word for word in span.text.split() if word.casefold().startswith(_OF_THE_CALENDAR)]
            left = left.replace(span.text, f" {' '.join(kept)} ")
    return left if left.strip() else text


def has_digit(text: str) -> bool:
    """Whether a text has a digit of any script."""
    return any(map(str.isdecimal, text))


def _normalize(query: str) -> str:
    if query.isascii():
        return query
    import unicodedata

    return unicodedata.normalize("NFKC", query)


def _patterns(query: str) -> Iterator[DatePattern]:
    """Yield what may match, the more specific first; compiling all of it would slow a cold search."""
    lowered = f" {query.lower()} "
    if any(map(str.isdecimal, query)) or any(hint in lowered for hint in _HINTS):
        from plainmind.text.dates_english import ENGLISH_DATES

        yield from _possible(ENGLISH_DATES, lowered)
    if any(hint in lowered for hint in _OTHER_HINTS):
        from plainmind.text.dates_western import other_western_dates

        yield from _possible(other_western_dates(), lowered)
    if not query.isascii():
        from plainmind.text.dates_east_asian import EAST_ASIAN_DATES

        yield from _possible(EAST_ASIAN_DATES, lowered)


def _possible(patterns: Iterable[HintedPattern], lowered: str) -> Iterator[DatePattern]:
    shape = "".join(["0" if letter.isdecimal() else letter for letter in lowered])
    for hints, words, resolve in patterns:
        if all(any(hint in shape for hint in alternatives) for alternatives in hints):
            yield words, resolve


def terms_of_day(day: str | None) -> tuple[str, ...]:
    """The terms of a dated text: its day, month and year, in a form that no word has."""
    return () if day is None else (f"day:{day}", f"month:{day[:7]}", f"year:{day[:4]}")


def terms_of_span(span: DayRange) -> tuple[str, ...]:
    """The fewest terms that together name every day of a span, and hardly any other."""
    count = (span.last - span.first).days + 1
    if count <= MOST_DAYS:
        return tuple(f"day:{(span.first + timedelta(days=number)).isoformat()}" for number in range(count))
    months = _months(span.first, span.last)
    if len(months) <= MOST_MONTHS:
        return tuple(f"month:{month}" for month in months)
    return tuple(f"year:{year}" for year in range(span.first.year, span.last.year + 1))[:MOST_MONTHS]


def _months(first: date, last: date) -> list[str]:
    start, end = first.year * 12 + first.month - 1, last.year * 12 + last.month - 1
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(start, end + 1)]
