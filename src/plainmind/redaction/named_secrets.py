"""Secrets that their name gives away: `password = …`, `"api_key": "…"`, `密码：…`, `set the root password to …`.

Wherever a word for a secret stands, the text around it is looked at: how a value follows, and whether the value is one
that somebody made up. What stood around a word once often stands there again, so each such piece is judged once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from plainmind.base.lazy import pattern
from plainmind.redaction.findings import Found
from plainmind.redaction.names import (
    DOUBTFUL,
    FAR_NAMES,
    IS,
    KEY,
    KEY_OF,
    KEY_OF_NOTHING,
    LOGIN,
    NAMES,
    NOT_A_SECRET,
    PASSWORD,
    TO,
    Name,
)
from plainmind.redaction.page import Page
from plainmind.redaction.plausible import is_key, is_made_up, is_odd, is_password
from plainmind.redaction.tables import cells_under, is_heading

_BEFORE = 64  # characters before an anchor that are looked at
_AFTER = 192
_MOST_KEPT = 4096
_MOST_IN_FIELD = 2048


def assigned_secrets_in(page: Page) -> Iterator[Found]:
    """Report every value that is named as a secret and looks like one."""
    low = page.low
    for anchor, names in _names_by_anchor(is_far=False).items():
        if anchor in low:
            yield from _secrets_by(anchor, names, page)
    if not page.original.isascii():
        for anchor, names in _names_by_anchor(is_far=True).items():
            if anchor in low:
                yield from _secrets_by(anchor, names, page)


@cache
def _names_by_anchor(*, is_far: bool) -> Mapping[str, tuple[Name, ...]]:
    names: dict[str, tuple[Name, ...]] = {}
    for name in FAR_NAMES if is_far else NAMES:
        names[name.anchor] = (*names.get(name.anchor, ()), name)
    return names


def _secrets_by(anchor: str, names: tuple[Name, ...], page: Page) -> Iterator[Found]:
    low, text = page.low, page.text
    judged: dict[str, tuple[tuple[Found, ...], Name | None]] = {}
    at = low.find(anchor)
    while at >= 0:
        first = at - _BEFORE
        after = at + len(anchor)
        if first > 0:
            around = text[first : at + _AFTER]
            verdict = judged.get(around)
            if verdict is None:
                if len(judged) > _MOST_KEPT:
                    judged.clear()
                verdict = judged[around] = _judge(names, around, _BEFORE)
        else:
            first = 0
            verdict = _judge(names, text[: at + _AFTER], at)
        found, heading = verdict
        if heading is not None:
            yield from cells_under(text, at, heading.kind, _CELLS[heading.sort](anchor))
        for start, end, kind in found:
            end += first
            if end > at + _AFTER - _AT_THE_EDGE:  # it may go on where the piece ends
                end = _end_of(text, end)
            yield first + start, end, kind
            after = max(after, end)
        at = low.find(anchor, after)


_AT_THE_EDGE = 4
_REST = pattern(r"""[^\s"'`<>|,;\\]{0,16384}+""")


def _end_of(text: str, end: int) -> int:
    rest = _REST.match(text, end)
    assert rest is not None  # it matches anything
    return end + len(rest[0].rstrip(_ENDS))


# --- what stands around a name ---

# Between a name and its value: the end of a quotation or of bold type, then an equals sign in one of its many forms.
_CLOSE = r"""[\\"'`*_\])}]{0,8}+"""
_SIGN = (
    r"(?:[ \t]{0,24}+(?:=>|={1,3}+|:(?:=|[ ]{0,2}[&a-z\[\]|.]{2,24}+[ ]{0,2}=|(?!:))|->|→|[|>](?!-)|,(?=[ ]?[\"'])|\((?=[\"']))"
    r"|[ ]{0,4}\t[ \t]{0,8}+)"
)
_WORD = r"[^\s:=|\"'`<>!?;,(){}]{0,27}[^\s:=|\"'`<>!?;,.(){}]"
# What leads from a name to its value in a sentence: a sign, or a word such as `is`, or one such as `to`.
_LEADS = pattern(
    rf"(?: ?[:=](?![:/=])| [=–—>-]{{1,2}}(?= )| ({'|'.join(IS)})(?=[ :])| ({'|'.join(TO)})(?=[ :]))(?: ?:)?"
    r"(?: (?:now|currently|still|jetzt|nun|maintenant|desormais|ahora|agora|adesso|ora)(?= ))?"
)
_MOST_LEADS = 8
# `<key>password</key><string>…`, `"name": "PASSWORD", "value": "…"`, and the same over two lines.
_FIELD = (
    r"""(?:["'<>/a-z,;:\]]{0,12}[ \t]{0,2}(?:\r?\n[ \t]{0,24})?["'<]?(?:value|default|content|string|val|text)["']?[ ]?[:=>])"""
)
_BELOW = r"""(?:[ \t]?[:=]?["'*]{0,3}(?:[ \t]?[|>][-+]?)?[ \t]{0,2}(?:\r?\n[ \t>]{0,12}){1,2}(?:- )?)"""
_OPENING = r"""[ \t]{0,8}+[*_]{0,2}+[ \t]{0,2}+(?:[(\[{][ ]?(?=["']))?+(?:[bfrun$@]{1,2}(?=["']))?+"""
_QUOTED = (
    r"""\\{1,7}["']([^"'\\\r\n]{4,}+)|"((?:[^"\\\r\n]|\\.){4,}+)(?:"|$)|'((?:[^'\\\r\n]|\\.){4,}+)(?:'|$)|`([^`\r\n]{4,}+)"""
)
_BARE_GROUP = 5  # those before it are the four sorts of quotation
_SIGNS = r"!#$%()*+\-./0-9:=?@\[\]^_a-z{}~\u00a1-\u024f\u0370-\u052f"
# A comma or an ampersand belongs to a value unless white space or the next name follows.
_BARE = (
    rf"((?![(\[{{=:])[{_SIGNS}](?:[{_SIGNS}]|[,;](?![a-z0-9_.\- ]{{0,40}}[=:]|\s|$)"
    r"|&(?![a-z0-9_.-]{0,40}[=:])|<(?![/a-z!]))*+)"
)
_VALUE = rf"{_OPENING}(?:{_QUOTED}|{_BARE})"
_ASSIGNED = pattern(rf"{_CLOSE}(?:{_SIGN}| (?=[\"'`]))(?:[ ]?(?:value|default)[ ]?[:=])?{_VALUE}")
_VALUE_ALONE = pattern(_VALUE)
_IN_FIELD = pattern(rf"{_CLOSE}{_FIELD}{_VALUE}")
_FOUND_BELOW = pattern(rf"{_CLOSE}{_BELOW}{_VALUE}")
_FLAGGED = pattern(rf"[ \t]{{1,4}}(?!-){_VALUE}")
_FAR = pattern(
    rf"""{_CLOSE}[ ]{{0,2}}(?:\([^()\r\n]{{1,24}}+\))?[^\x00-\x7f。！？]{{0,18}}+[ ]{{0,2}}(?:[:=–—-]|->)?{_VALUE}"""
)
# Behind a flag of a command line, in a file for `netrc`, or behind a word of a file of settings, a space is enough.
_TAKES_A_SPACE = pattern(r"(?:^|[\s\"'])--?[a-z0-9_-]{0,32}$|login \S{1,64} $|^(?:env|setx|set -[a-z]{1,3}) [a-z0-9_]{0,32}$")
_DIRECTIVES = ("pass ", "masterauth ", "rootpw ", "identified by ")
_ADJACENT = pattern(rf"{_CLOSE}[ \t,(]{{1,3}}{_VALUE}")
# Whoever says one of these gives a value: `set the root password to …`.
_SETS = pattern(r"set(?:zen|zt)?|chang|updat|reset|rotat|made|gean?dert|ander|andert|mis |defin|cambi|fij|alter|mud|impost|ingesteld|zmien")
_IS_TO = ("hasl", "slo", "mật khẩu", "mat khau")
# `bob / …`, `("bob", "…")`, `bob:…`.
_PAIR = pattern(
    rf"""{_CLOSE}(?:{_SIGN}|[ ](?:are|is|sind|sont|son|mit|with|as|als)|\()?[ ]{{0,2}}[(\[{{]?["'`]?(?:[a-z0-9_.@+-]{{1,64}})["'`]?"""
    rf"""[ ]{{0,2}}(?:[:/,|、]|[ ](?:and|und|et|y|e)(?= )){_VALUE}"""
)
_ANOTHER = pattern(
    rf"""["'`*]{{0,3}}[ ]?(?:[,/;、]|[ ](?:or|and|und|oder|et|ou|y|o|e)(?= )|\r?\n[ \t]{{0,8}}[-*]?){_VALUE}"""
)
# `password2`, `password_prod`, `secret.key.base`; and `tokenCount`, all in small letters.
_SUFFIX = pattern(r"(?:[0-9]{1,3}(?![a-z0-9]))?+(?:[_.-][a-z0-9]{1,16}(?![a-z0-9])){0,3}+")
_GLUED = pattern("[a-z]{2,12}")
_SENTENCE_ENDS = pattern(r"[.!?](?:\s|$)|[。！？\n]")
_TOKEN = pattern(r"[!#$%&*+\-./0-9:=?@A-Z^_a-z~]{6,}+")
_ENDS = ".:)]}*_,;"
_WITHIN = 96  # a value without an equals sign is not looked for farther away
_LEAST_KEY = 16


# Without a digit, something in quotation marks, a sign within a word or words joined by dashes nothing here is a secret.
_MAY_HOLD = pattern(
    r"""[0-9]|["'`][^\s"'`]{4,64}+["'`\\]|[!@#$%^&*~][a-z]|[a-z][-._][a-z]{3,12}[-._][a-z]|[a-z+/_-]{20}"""
)


def _judge(names: tuple[Name, ...], around: str, at: int) -> tuple[tuple[Found, ...], Name | None]:
    """Find the secrets around an anchor, and whether it is the heading of a column of them."""
    low = around.lower()
    heading = None
    if not _MAY_HOLD.search(low):
        return (), None
    for name in names:
        called = name.expression.match(low, at)
        if called is not None:
            found = _of_name(name, around, low, called)
            if found:
                return found, None
            if heading is None and name.sort is not LOGIN and is_heading(low, *called.span()):
                heading = name
    return (), heading


def _of_name(name: Name, around: str, low: str, called: re.Match[str]) -> tuple[Found, ...]:
    start, end = called.span()
    if name.sort is LOGIN:
        pair = _PAIR.match(low, end)
        span = _span(pair, around) if pair else None
        if span and is_made_up(around[span[0] : span[1]]):
            return ((*span, name.kind),)
        return ()
    suffix = _SUFFIX.match(low, end)
    assert suffix is not None  # it matches anything
    glued = _GLUED.match(low, end)
    parts = (glued[0],) if glued else suffix[0].replace("-", "_").replace(".", "_").split("_")
    if not NOT_A_SECRET.isdisjoint(parts) or (
        name.kind == "key" and name.anchor.isascii() and not _opens_something(around, low, start)
    ):
        return ()
    end = suffix.end()
    first = _value_of(name, around, low, start, end)
    if first is None:
        return ()
    return ((*first, name.kind), *_others(name, around, low, first[1]))


def _value_of(name: Name, around: str, low: str, start: int, end: int) -> tuple[int, int] | None:
    ways = [_ASSIGNED, _IN_FIELD]
    if _TAKES_A_SPACE.search(low[:start]) or low[start:].startswith(_DIRECTIVES):
        ways.append(_FLAGGED)
    if not low[start].isascii():
        ways.append(_FAR)
    for way in ways:
        span = _span(way.match(low, end), around)
        if span and _is_secret(name, around, span, has_sign=way is _ASSIGNED):
            return span
    span = _led_to(name, around, low, end)
    if span:
        return span
    for way in (_ADJACENT, _FOUND_BELOW):
        span = _span(way.match(low, end), around)
        if span and _is_made_up(name, around, span):
            return span
    return _near(name, around, low, end) or _ahead(name, around, low, start)


# Of a cell in a column of secrets; a cell that names one again is the heading of another table.
_CELLS: dict[str, Callable[[str], Callable[[str], bool]]] = {
    PASSWORD: lambda anchor: lambda cell: anchor not in cell.lower() and is_password(cell, is_quoted=False),
    DOUBTFUL: lambda anchor: lambda cell: anchor not in cell.lower() and is_made_up(cell),
    KEY: lambda anchor: lambda cell: anchor not in cell.lower() and is_key(cell),
}


def _span(found: re.Match[str] | None, around: str) -> tuple[int, int] | None:
    """Where the value stands that one of the expressions has found."""
    if found is None or found.lastindex is None:
        return None
    start, end = found.span(found.lastindex)
    if found.lastindex == _BARE_GROUP:
        end = start + len(around[start:end].rstrip(_ENDS))
    return start, end


def _is_secret(name: Name, around: str, span: tuple[int, int], *, has_sign: bool = False) -> bool:
    given = around[span[0] : span[1]]
    is_quoted = around[span[0] - 1] in "\"'`"
    if name.sort is PASSWORD:
        return is_password(given, is_quoted=is_quoted)
    if name.sort is DOUBTFUL:
        return is_made_up(given)
    return is_key(given) or is_odd(given) or (has_sign and name.kind == "secret" and is_made_up(given))


def _is_made_up(name: Name, around: str, span: tuple[int, int]) -> bool:
    given = around[span[0] : span[1]]
    if name.sort is KEY:
        return (is_key(given) and len(given) >= _LEAST_KEY) or (name.kind == "secret" and is_odd(given))
    return is_made_up(given)


def _is_secret_without_sign(name: Name, given: str) -> bool:
    return is_key(given) and len(given) >= _LEAST_KEY if name.sort is KEY else is_odd(given)


def _led_to(name: Name, around: str, low: str, end: int) -> tuple[int, int] | None:
    """A value to which the sentence leads: `the password for the wifi is …`, `Passwort für den Server: …`."""
    over = _SENTENCE_ENDS.search(low, end, end + _WITHIN)
    limit = over.start() if over else min(len(low), end + _WITHIN)
    for _, lead in zip(range(_MOST_LEADS), _LEADS.finditer(low, end, limit), strict=False):
        span = _span(_VALUE_ALONE.match(low, lead.end()), around)
        if span is None:
            continue
        is_sure = not lead[2] or name.anchor in _IS_TO or _SETS.search(low[: lead.end()])
        if (_is_secret if is_sure else _is_made_up)(name, around, span):
            return span
    return None


def _near(name: Name, around: str, low: str, end: int) -> tuple[int, int] | None:
    """Something that nobody would say, in the same sentence behind the name."""
    over = _SENTENCE_ENDS.search(low, end, end + _WITHIN)
    limit = over.start() if over else min(len(low), end + _WITHIN)
    for token in _TOKEN.finditer(around, end, limit):
        start = token.start()
        given = token[0].rstrip(_ENDS)
        if _is_secret_without_sign(name, given):
            return start, start + len(given)
    return None


_SAID_AHEAD = pattern(
    rf"""([^\s"'`(),;:=]{{6,64}})["'`*]{{0,3}}[ ]?(?: (?:{"|".join((*IS, "as", "als", "comme", "como", "come", "for"))})(?: {_WORD}){{0,3}} ["'`*]{{0,2}}"""
    r"|[是为為がをは이가을를][^\x00-\x7f]{0,8})$"
)


def _ahead(name: Name, around: str, low: str, start: int) -> tuple[int, int] | None:
    """Something that nobody would say, called a secret afterwards: `use … as the password`."""
    line = low.rfind("\n", 0, start) + 1
    words_before = low.rfind(" ", 0, max(line, start - 1))
    if words_before < 0:
        return None
    said = _SAID_AHEAD.search(low[line:start])
    if said is None:
        return None
    first, last = said.span(1)
    return (line + first, line + last) if _is_made_up(name, around, (line + first, line + last)) else None


def _others(name: Name, around: str, low: str, end: int) -> Iterator[Found]:
    """Further secrets behind the first one: `passwords: …, … and …`."""
    while True:
        span = _span(_ANOTHER.match(low, end), around)
        if span is None or not _is_secret_without_sign(name, around[span[0] : span[1]]):
            return
        yield *span, name.kind
        end = span[1]


def _opens_something(around: str, low: str, at: int) -> bool:
    """Whether a key is one that opens something: an `api_key`, a `STRIPE_KEY`, no primary key."""
    before = low[:at].rstrip("_-. ")
    if before.endswith(KEY_OF) or low[:at].endswith(("?", "&")):
        return True
    if around[at].isupper() and low[at - 1 : at] == "_":
        return True
    word = _LAST_WORD.search(before)
    return word is not None and low[at - 1] == " " and word[0] not in KEY_OF_NOTHING


_LAST_WORD = pattern(r"[a-z]{2,24}$")


def _may_name_a_secret(name: str) -> bool:
    low = name.lower()
    return not low.isascii() or any(anchor in low for anchor in _names_by_anchor(is_far=False))


def kind_of_named(name: str, given: str) -> str | None:
    """Say which kind of secret `given` is as the field `name` of an object, if it is one."""
    if not given or "\n" in given or len(given) > _MOST_IN_FIELD or not _may_name_a_secret(name):
        return None
    quoted = given.replace("\\", "").replace('"', "")
    page = Page(f'"{name[:_MOST_IN_FIELD]}": "{quoted}"')
    return next((kind for _, end, kind in assigned_secrets_in(page) if end == len(page.text) - 1), None)


# --- plain words that are secrets because the text says so ---

# In lower case.
_STATED = pattern(
    r"pass(?:(?<=my pass)|(?<=our pass)|(?<=wifi pass)|(?<=wi-fi pass))(?:word|code|phrase)"
    r" (?:is|was)(?: now)? ([a-z]{6,24})(?=[.!,;]?(?:\s|$))"
)
# What people say about a password in one word.
_REMARK = pattern(
    r".{0,24}(?:ed|ing|ly|able|ible|ful|less)$"
    r"|(?:wrong|correct|strong|simple|unique|random|longer|shorter|broken|stolen|secure|insecure|public|unsafe|written"
    r"|forgotten|different|incorrect|complex|something|nothing|always|never|being|about|still|almost|either|neither"
    r"|another|because|whatever|rather|pretty|perhaps|maybe|obvious|unique|typical|generic|important)$"
)
# Capitals are how variables of an environment are written.
_VARIABLE = pattern(r"PASS(?:WORD|WD|PHRASE|)=([A-Za-z]{6,64})(?![A-Za-z0-9_({\[]|\.[A-Za-z])")
# Twelve to twenty-four short words open a wallet.
_SEED = pattern(
    r"(?:phrase(?:(?<=seed phrase)|(?<=recovery phrase)|(?<=mnemonic phrase))|mnemonic)"
    r"""["'`*]{0,3}(?: is)?[ ]?[:=]?[ ]{0,2}["'`*]{0,2}((?:[a-z]{3,8} ){11,23}+[a-z]{3,8})(?![a-z])"""
)


def plain_words_in(page: Page) -> Iterator[Found]:
    """Report plain words that are called a secret beyond doubt."""
    low = page.low
    if "mnemonic" in low or ("phrase" in low and ("seed phrase" in low or "recovery phrase" in low)):
        for found in _SEED.finditer(low):
            yield *found.span(1), "seed-phrase"
    if "pass" in low:
        yield from _passwords(page)


def _passwords(page: Page) -> Iterator[Found]:
    if any(words in page.low for words in ("my pass", "our pass", "fi pass")):
        for found in _STATED.finditer(page.low):
            if not _REMARK.match(found[1]) and is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"
    if "PASS" in page.text:
        for found in _VARIABLE.finditer(page.text):
            if is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"
