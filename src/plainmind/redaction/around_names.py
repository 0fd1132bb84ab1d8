"""What stands around a name of a secret: how a value follows it, and whether that is one that somebody made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found
from plainmind.redaction.names import (
    DOUBTFUL,
    FORM,
    IS,
    KEY,
    KEY_OF,
    KEY_OF_NOTHING,
    LOGIN,
    NOT_A_SECRET,
    PASSWORD,
    PHRASE,
    PIN,
    SURE_FORM,
    TO,
    Name,
)
from plainmind.redaction.plausible import (
    has_made_up,
    has_quotation,
    is_dashed_phrase,
    is_grouped,
    is_key,
    is_known_mix,
    is_made_up,
    is_odd,
    is_password,
    is_phrase,
)
from plainmind.redaction.tables import is_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


@value
class Verdict:
    """The secrets around a place, whether it is the heading of a column of them, and what it took to find out."""

    found: tuple[Found, ...] = ()
    heading: Name | None = None
    cost: int = 0


NO_VERDICT = Verdict()
AT_THE_EDGE = 4
_LONGEST_REST = 16_384
_REST = pattern(rf"""[^\s"'`<>|,;&\\]{{0,{_LONGEST_REST}}}+""")


def start_of(text: str, start: int) -> int:
    """Where a value begins of which the piece that was looked at has the end."""
    backwards = text[max(0, start - _LONGEST_BEFORE) : start][::-1]
    more = _REST.match(backwards)
    assert more is not None  # it matches anything
    return start - more.end()


_LONGEST_BEFORE = 1_000


def end_of(text: str, end: int, known: int) -> tuple[int, int]:
    """Where a value ends of which the piece that was looked at has the beginning, and where the word does it is in.

    Up to `known` it is known to go on.
    """
    rest = _REST.match(text, known, end + _LONGEST_REST)
    assert rest is not None  # it matches anything
    return end + len(text[end : rest.end()].rstrip(_ENDS)), rest.end()


# Between a name and its value: the end of a quotation or of bold type, then an equals sign in one of its many forms.
_CLOSE = r"""[\\"'`*_\])}]{0,8}+"""
_SIGN = (
    r"(?:[ \t]{0,24}+(?:=>|[?+]?={1,3}+|:(?:=|[ ]{0,2}[&a-z\[\]|.]{2,24}+(?:[ ]{1,2}=|=(?=[ ]?[\"']))|(?!:))|->|→|\|(?!-)|>(?!-)(?:<[a-z0-9:]{1,24}>)?|</[a-z0-9]{1,12}>\s{0,4}<[a-z0-9]{1,12}>|,(?=[ ]?[\"'])|\((?=[\"']))"  # noqa: E501
    r"|[ ]{0,4}\t[ \t]{0,8}+|[ ]?[._]{3,40}+(?=[ ])| \.(?= [\"'])|(?<=\])(?=[a-z0-9])| is \\verb\|)"
)
_WORD = r"[^\s:=|\"'`<>!?;,(){}](?:[^\s:=|\"`<>!?;,(){}]{0,27}[^\s:=|\"'`<>!?;,.(){}])?"
# What leads from a name to its value in a sentence: a sign, or a word such as `is`, or one such as `to`.
_LEADS = pattern(
    r"(?:[:=](?<![:=].)(?![:/=])| (?:[:=](?![:/=])|[=–—>-]{1,2}(?= )"
    rf"|({'|'.join(IS)})(?=[ :])|({'|'.join(TO)})(?=[ :])))(?: ?:)?"
    r"(?: (?:now|currently|still|jetzt|nun|maintenant|desormais|ahora|agora|adesso|ora)(?= ))?"
)
_MOST_LEADS = 8
# `<key>password</key><string>…`, `"name": "PASSWORD", "value": "…"`, and the same over two lines.
_FIELD = r"""(?:["'<>/a-z,;:\]]{0,12}[ \t]{0,2}\{?(?:\r?\n(?:[^\n]{0,60}\n){0,2}?[ \t]{0,24})?["'<]?(?:value|default|content|string|val|text)["']?[ ]{0,8}[:=>])"""  # noqa: E501
_BELOW = r"""(?:[ \t]?[:=]?["'*]{0,3}(?:[ \t]?[|>][-+]?)?[ \t]{0,2}[|]?(?:\r?\n[=~|: -]{2,80}+[ \t]{0,4})?(?:\r?\n[ \t>]{0,12}){1,2}(?:`{3}[a-z]{0,12}\r?\n)?(?:(?:[-*•:|]|[0-9]{1,2}[.)]) )?(?:send(?:line)?[ (]{1,2})?)"""  # noqa: E501
_OPENING = r"""[ \t]{0,8}+(?:!!?[a-z]{2,10} )?+(?:[*_]{0,2}+|==(?=[^=]))[ \t]{0,2}+(?:[(\[] ?(?=["']))?+(?:[bfrun$@]{1,2}(?=["']))?+"""  # noqa: E501
_QUOTED = r"""\\{1,7}["']([^"'\\\r\n]{4,}+)|"[ ]?((?:[^"\\\r\n]|\\.){4,}+)(?:"|$)|'((?:[^'\\\r\n]|\\.){4,}+)(?:'|$)|`([^`\r\n]{4,}+)"""  # noqa: E501
_BARE_GROUP = 5  # those before it are the four sorts of quotation
_SIGNS = r"!#$%()*+\-./0-9:=?@\[\]^_a-z{}~\u00a1-\u024f\u0370-\u052f"
# A comma or an ampersand belongs to a value unless white space or the next name follows.
_BARE = (
    rf"((?![(\[{{=:])[{_SIGNS}]++(?:[,;](?![a-z0-9_.\- ]{{0,40}}[=:]|\s|$)"
    rf"|&(?![a-z0-9_.-]{{0,40}}[=:])|<(?![/a-z!])|[{_SIGNS}]++)*+)"
)
_VALUE = rf"{_OPENING}(?:{_QUOTED}|{_BARE})"
_ASSIGNED = pattern(rf"{_CLOSE}(?:{_SIGN}| (?=[\"'`]))(?:[ ]?(?:value|default)[ ]?[:=])?{_VALUE}")
_VALUE_ALONE = pattern(_VALUE)
_IN_FIELD = pattern(rf"{_CLOSE}{_FIELD}{_VALUE}")
_FOUND_BELOW = pattern(rf"{_CLOSE}{_BELOW}{_VALUE}(?=[\"'`.,!]{{0,3}}[ \t]*+(?:[\r\n]|$))")
_FLAGGED = pattern(rf"[ \t]{{1,4}}(?!-){_VALUE}")
_FAR = pattern(
    rf"""{_CLOSE}[ ]{{0,2}}(?:\([^()\r\n]{{1,24}}+\))?[^\x00-\x7f。！？]{{0,18}}+[ ]{{0,2}}(?:[:=–—-]|->)?{_VALUE}"""
)
# Behind a flag of a command line, in a file for `netrc`, or behind a word of a file of settings, a space is enough.
_TAKES_A_SPACE = pattern(
    r"(?:^|[\s\"'])--?[a-z0-9_-]{0,32}$|login \S{1,64} $|^(?:env|setx|set -[a-z]{1,3}) [a-z0-9_]{0,32}$"
)
_BEFORE_SPACE = ("login ", "env ", "setx ")
_DIRECTIVES = ("pass ", "masterauth ", "rootpw ", "identified by ")
_ADJACENT = pattern(
    rf"{_CLOSE}[ \t,(]{{1,3}}(?:(?:still|now|again|new|old|currently|noch|jetzt|neu|alt|encore|toujours|todavia|ahora|aun)[: ])?{_VALUE}"  # noqa: E501
)
# When somebody has said it.
_STAMP = r"(?:\[?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[ap]m)?\]?[ ,-]{1,3})?"
# A question, and an answer that is nothing else; or a sentence, and what is new below it.
_ANSWERED = pattern(
    rf"""[^\r\n]{{0,60}}?[?.:？。][ \t"'*]{{0,3}}(?:\r?\n[ \t>]{{0,8}}){{1,2}}(?:[-*] )?{_STAMP}(?:[^\s:][^\r\n:]{{0,24}}: ?)?{_VALUE}(?=["'`.!]{{0,2}}[ \t]*+(?:[\r\n]|$))"""  # noqa: E501
)
# Somebody asks, and somebody answers.
_REPLIED = pattern(
    rf"""[^\r\n]{{0,60}}+\r?\n{_STAMP}[^\s:][^\r\n:]{{0,24}}: ?(?:(?:sure|yes|yep|ok|oh|its?|it's|it is|try|use|c'est|es|ist|oui|si|ja)[,: ]{{1,2}}){{0,3}}"""  # noqa: E501
    rf"""{_VALUE}(?=["'`.!]{{0,2}}[ \t]*+(?:[\r\n]|$))"""
)
_GROUPED = pattern(r"""[ \t]{0,4}[\\"'`*]{0,4}[ ]?([a-z0-9]{4,6}(?:[ -][a-z0-9]{4,6}){3,15})(?![a-z0-9])""")
_PHRASE_OF_WORDS = pattern(
    r"""[ \t]{0,4}[\\"'`*]{0,4}[ ]?([a-z]{3,12}(?: [a-z]{3,12}){3,23})(?=["'`*.,;:)|<\r\n\\\]}~=!>】]|$| [^a-z]| ?["'`])"""  # noqa: E501
)
_OF_DIGITS = pattern(r"""[ \t]{0,4}["'`*]{0,3}([0-9]{4,8})(?![0-9a-z]|[.:][0-9])""")
# Whoever says one of these gives a value: `set the root password to …`.
_SETS = pattern(
    r"set(?:zen|zt)?|chang|updat|reset|rotat|made|gean?dert|ander|andert|mis |defin|cambi|fij|alter|mud|impost|ingesteld|zmien"  # noqa: E501
)
_IS_TO = ("hasl", "slo", "mật khẩu", "mat khau")
# `bob / …`, `("bob", "…")`, `bob:…`.
_PAIR = pattern(
    rf"""{_CLOSE}(?:{_SIGN}|[ ](?:are|is|sind|sont|son|mit|with|as|als|-)|\(|(?= ))(?: (?:avec|con|mit|with|as|als|user))?"""  # noqa: E501
    rf"""[ ]{{0,2}}[(\[{{]?["'`]?(?:[a-z0-9_.@+-]{{1,64}})["'`]?"""
    rf"""[ ]{{0,2}}(?:[:/,|、](?: ?(?:key|pass|pw|schlussel) )?|\r?\n(?=[^\s]{{6,64}}(?:[\r\n]|$))|[ ](?:and|und|et|y|e|with|mit|avec|con)(?= )){_VALUE}"""  # noqa: E501
)
# `getConnection("…", "bob", "…")`: whatever is in quotation marks behind the first argument.
_CALLED = pattern(r"""[a-z_]{0,16}\([^(),\r\n]{1,96},([^()\r\n]{4,160}+)[)]""")
_QUOTED_ARGUMENT = pattern(r"""["']([^"'\r\n]{4,128}+)["']""")
_ANOTHER = pattern(
    rf"""["'`*]{{0,3}}[ ]?(?:(?:[,;/]|->|=>|→) ?(?:new|now|neue?s?|nouveau|nouvelle|nuev[ao])[ :]{{1,2}}|[,/;、]|->|=>|→|[ ](?:or|and|but|und|oder|sondern|et|ou|mais|y|o|sino|e|to|auf|a|en|zu|->)(?= )"""  # noqa: E501
    rf"""|\r?\n[ \t]{{0,8}}(?:[-*•]|[0-9]{{1,2}}[.)])[ ]){_VALUE}"""
)
# `password2`, `password_prod`, `secret.key.base`; and `tokenCount`, all in small letters.
_SUFFIX = pattern(r"(?:[0-9]{1,3}(?![a-z0-9]))?+(?:[_.-][a-z0-9]{1,16}(?![a-z0-9])){0,3}+")
_GLUED = pattern("[a-z]{2,12}")
_STATEMENT_ENDS = pattern(r"[.!。！\n](?:(?<![.!])|(?=\s|$))")
_SENTENCE_ENDS = pattern(r"[.!?。！？\n](?:(?<![.!?])|(?=\s|$))")
_A_SPACE = pattern(r"\s")
# `kettle613=Lantern` is a password; of other equals signs what stands before them is a name.
_TOKEN = pattern(
    r"[!#$%*+\-./0-9:?@A-Z^_a-z~](?=[^\s]{5})(?<![?&].)(?:(?<![\w].)(?:(?<=[A-Za-z])[A-Za-z]{2,15}[0-9]{2,4}=[A-Za-z]{3,16}"
    r"|(?<=[A-Z])[a-z]{2,15}=[a-z]{3,16}[0-9]{2,4})(?![\w=])|[!#$%&*+\-./0-9:?@A-Z^_a-z~]{5,}+={0,2}(?!=))"
)
_ENDS = ".:)]}*_,;"
_WITHIN = 96  # a value without an equals sign is not looked for farther away
_LEAST_KEY = 16
_LEAST_DIGITS = 8
_LEAST_NEAR_KEY = 12
_BELOW_WITHIN = 96  # a line that ends farther away has no value below it


_OF_WORDS = (PHRASE, PIN)
# In quotation marks a plain word may be a password; without them only words, or the few digits of a PIN, are left.
SORTS_OF_WORDS = frozenset(_OF_WORDS)
SORTS_OF_QUOTED = SORTS_OF_WORDS | {PASSWORD, SURE_FORM}


def _may_follow(name: Name, around: str, low: str, end: int) -> bool:
    """Whether a value may stand behind a name: near it, or in one of the next lines if there are any."""
    if name.sort in _OF_WORDS or low.find("\n", end, end + _BELOW_WITHIN) >= 0:
        return True
    limit = end + _WITHIN + _LONG_VALUE
    return has_made_up(around, low, end, limit) or has_quotation(low, end, limit) or _has_parts(low)


_LONG_VALUE = 64


_NO_NAMES = (LOGIN, FORM, SURE_FORM)


def judge(names: Iterable[Name], around: str, at: int) -> Verdict:
    """Find the secrets around an anchor, and whether it is the heading of a column of them."""
    low = around.lower()
    heading = None
    cost = 0
    for name in names:
        called = name.expression.match(low, at)
        if called is not None:
            is_name = name.sort not in _NO_NAMES
            cost += is_name
            if heading is None and is_name and is_heading(low, *called.span()):
                heading = name
            found = _of_name(name, around, low, called)
            if found:
                return Verdict(found, heading, cost)
    return Verdict((), heading, cost)


def _of_name(name: Name, around: str, low: str, called: re.Match[str]) -> tuple[Found, ...]:
    start, end = called.span()
    if name.sort is LOGIN:
        return _of_login(name, around, low, end)
    if name.sort in (FORM, SURE_FORM):
        return _of_form(name, around, called)
    suffix = _SUFFIX.match(low, end)
    assert suffix is not None  # it matches anything
    glued = _GLUED.match(low, end)
    parts = (glued[0],) if glued else suffix[0].replace("-", "_").replace(".", "_").split("_")
    if not NOT_A_SECRET.isdisjoint(parts) or (
        name.anchor == "key" and not _opens_something(around, low, start)
    ):
        return ()
    end = suffix.end()
    if low[end : end + 1] in ("_", "@", "&") and low[end + 1 : end + 2].isalnum():
        return ()
    if not _may_follow(name, around, low, end):
        stood = _ahead(name, around, low, start) or _beside(name, around, low, start, end)
        return ((*stood, name.kind),) if stood else ()
    return _of_name_before(name, around, low, (start, end))


def _of_name_before(name: Name, around: str, low: str, called: tuple[int, int]) -> tuple[Found, ...]:
    """Find the value behind a name, what it was before, and others like it."""
    end = called[1]
    has_parts = name.sort in _OF_WORDS or _has_parts(low)
    if not has_parts and low.startswith(_LINE_ENDS, end):
        below = _around_end_of_line(name, around, low, called)
        return ((*below, name.kind), *_others(name, around, low, below[1])) if below else ()
    if not has_parts:
        assigned = _span(_ASSIGNED.match(low, end), around)
        if assigned and _is_secret(name, around, assigned, has_sign=True):
            return ((*assigned, name.kind), *_others(name, around, low, assigned[1]))
    over = _SENTENCE_ENDS.search(low, end, end + _WITHIN)
    leads = list(_LEADS.finditer(low, end, over.start() if over else end + _WITHIN))
    first = _in_parts(name, around, low, end, leads) if has_parts else None
    first = first or _directly_behind(name, around, low, called, is_tried=not has_parts)
    led_to = _led_to(name, around, low, leads, end)
    first = first or led_to or _farther_away(name, around, low, called)
    if first is None:
        return ()
    before = [(*led_to, name.kind)] if led_to and led_to[1] <= first[0] else []  # `changed from … to …`
    return (*before, (*first, name.kind), *_others(name, around, low, first[1]))


def _of_form(name: Name, around: str, called: re.Match[str]) -> tuple[Found, ...]:
    assert called.lastindex is not None
    begin, last = called.span(called.lastindex)
    given = around[begin:last].rstrip(_ENDS)
    is_one = is_password(given, is_quoted=True) if name.sort is SURE_FORM else is_made_up(given)
    return ((begin, begin + len(given), name.kind),) if is_one and not is_known_mix(given) else ()


def _of_login(name: Name, around: str, low: str, end: int) -> tuple[Found, ...]:
    span = _span(_PAIR.match(low, end), around)
    if span and is_made_up(around[span[0] : span[1]]):
        return ((*span, name.kind),)
    call = _CALLED.match(low, end)
    for given in _QUOTED_ARGUMENT.finditer(around, call.start(1), call.end(1)) if call else ():
        if is_made_up(given[1]):
            return ((*given.span(1), name.kind),)
    return _led_to_by_login(name, around, low, end)


# `our shared login (…) uses …`, `für den Zugang nimmst du …`: what nobody would say, and no name of somebody.
_LOGIN_LEADS = pattern(
    r"(?:[^\r\n.!?;]|\.(?=[a-z])){0,64}?"
    r"(?: (?:is|was|uses|ist|lautet|est|c'est|es|era|nimmst du|brauchst du|use)(?: now| jetzt)?[ :]|: ?)"
    + _VALUE
)
_OPENS = ("login", "log in", "sign in", "zugang", "acces")
_SIGN_OF_PASSWORD = pattern(r"[!?#$%&*]")


def _led_to_by_login(name: Name, around: str, low: str, end: int) -> tuple[Found, ...]:
    if name.anchor not in _OPENS:
        return ()
    span = _span(_LOGIN_LEADS.match(low, end), around)
    given = around[span[0] : span[1]] if span else ""
    is_one = is_odd(given) or (is_made_up(given) and _SIGN_OF_PASSWORD.search(given) is not None)
    return ((*span, name.kind),) if span and is_one and not is_known_mix(given) else ()


_TO_PARTS = tuple(
    pattern(rf"{_CLOSE}{way}")
    for way in (
        rf"(?:{_SIGN}| (?=[\"'`]))",
        _FIELD,
        _BELOW,
        r"[^\x00-\x7f。！？]{0,18}+[ ]?[:=]?",
        # any signs and marks, a line break
        r"(?:'s)?[ ]?(?:</?[a-z]{1,8}>|[^\w\s<]|<!?){1,8}+(?:cdata\[)?[ ]?(?:</?[a-z]{1,8}>|[^\w\s<]|<){0,6}+",
        r"[ ]?\\{1,2}[a-z]{2,8}[{+|]",
        r"[^\r\n]{0,24}\r?\n",
    )
)
_GROUPS_OF_FOUR = pattern(r"(?<![a-z0-9-])[a-z0-9]{4}(?: [a-z0-9]{4}){3,15}+(?![a-z0-9-])")


# Without one of these there are neither groups nor a phrase in quotation marks.
_GROUPS_OR_PHRASE = (
    pattern("[ -](?<=[a-z0-9]{4}.)[a-z0-9]{4,6}[ -][a-z0-9]{4,6}[ -][a-z0-9]{4}"),
    pattern(r"""["'`][ ]?[a-z]{3,12} [a-z]{3,12} [a-z]{3,12} [a-z]{3}"""),
)


def _has_parts(low: str) -> bool:
    groups, phrase = _GROUPS_OR_PHRASE
    if groups.search(low):
        return True
    return ('"' in low or "'" in low or "`" in low) and phrase.search(low) is not None


_OF_A_ROW = pattern("[,;|]")  # what stands below is a row of a table


def _in_parts(
    name: Name, around: str, low: str, end: int, leads: list[re.Match[str]]
) -> tuple[int, int] | None:
    """A value with spaces in it: groups of letters and digits, the words of a phrase; or the digits of a PIN."""
    directly = [led for led in (way.match(low, end) for way in _TO_PARTS) if led]
    for led in (*directly, *leads):
        at = led.end()
        if name.sort is PIN:
            digits = _OF_DIGITS.match(low, at)
            if digits is not None:
                return digits.span(1)
            continue
        grouped = _GROUPED.match(low, at)
        if grouped is not None and is_grouped(around[grouped.start(1) : grouped.end(1)]):
            return grouped.span(1)
        words = _PHRASE_OF_WORDS.match(low, at)
        if words is not None and is_phrase(words[1]):
            is_quoted = around[words.start(1) - 1] in "\"'`"
            if name.sort is PHRASE or (name.sort is PASSWORD and is_quoted):
                return words.span(1)
    if name.sort is not PIN:
        for grouped in _GROUPS_OF_FOUR.finditer(low, low.rfind("\n", 0, end) + 1, end + _WITHIN):
            if is_grouped(around[grouped.start() : grouped.end()]):
                return grouped.span()
    return None


def _directly_behind(
    name: Name, around: str, low: str, called: tuple[int, int], *, is_tried: bool
) -> tuple[int, int] | None:
    """A value that a field or a flag gives to the name, or a sign if that was not tried."""
    start, end = called
    ways = [_IN_FIELD] if is_tried else [_ASSIGNED, _IN_FIELD]
    before = low[:start]
    if low.startswith(_DIRECTIVES, start) or (
        ("-" in before or any(map(before.__contains__, _BEFORE_SPACE))) and _TAKES_A_SPACE.search(before)
    ):
        ways.append(_FLAGGED)
    if not low[start].isascii():
        ways.append(_FAR)
    for way in ways:
        span = _span(way.match(low, end), around)
        if span and _is_secret(name, around, span, has_sign=way is _ASSIGNED):
            return span
    return None


# As headings of columns and lists do: nothing on the line is a value then, and no lead to one.
_LINE_ENDS = ("\n", ":\n")


def _around_end_of_line(name: Name, around: str, low: str, called: tuple[int, int]) -> tuple[int, int] | None:
    """A value of a name with which its line ends: in a field, below it, in an answer, or before it."""
    start, end = called
    field = _span(_IN_FIELD.match(low, end), around)
    if field and _is_secret(name, around, field):
        return field
    below = _below(name, around, low, end)
    if below is not None or not _may_be_made_up(low):
        return below
    return _ahead(name, around, low, start) or _beside(name, around, low, start, end)


def _below(name: Name, around: str, low: str, end: int) -> tuple[int, int] | None:
    """A value in one of the next lines, or in an answer."""
    for way in (_FOUND_BELOW, _ANSWERED, _REPLIED):
        span = _span(way.match(low, end), around)
        if span and not _OF_A_ROW.search(around, *span) and _is_made_up(name, around, span):
            return span
    return None


def _farther_away(name: Name, around: str, low: str, called: tuple[int, int]) -> tuple[int, int] | None:
    """A value beside the name, below it, in an answer, or before it."""
    start, end = called
    beside = _span(_ADJACENT.match(low, end), around)
    if beside and (_is_made_up(name, around, beside) or _is_number(name, around, beside)):
        return beside
    below = _below(name, around, low, end) if low.find("\n", end, end + _BELOW_WITHIN) >= 0 else None
    if below is not None or not _may_be_made_up(low):
        return below
    return (
        _near(name, around, low, end)
        or _ahead(name, around, low, start)
        or _beside(name, around, low, start, end)
        or _said_next(name, around, low, end)
    )


# Long numbers, such as those that are printed on a router.
_LEAST_NUMBER = {PASSWORD: 8, DOUBTFUL: 12}


def _is_number(name: Name, around: str, span: tuple[int, int]) -> bool:
    least = _LEAST_NUMBER.get(name.sort)
    return least is not None and span[1] - span[0] >= least and around[span[0] : span[1]].isdecimal()


# In the next sentence: `We changed the password. The new one is …`, `昨日変えました。今は…です`.
_SAYS_NOW = pattern(
    r"[adjmn新现現今지이새](?:(?<![a-z].)(?:(?<=n)(?:ew one|ow|eu(?:es)?|un|ouveau|ouvelle|uev[ao])|(?<=j)etzt"
    r"|(?<=m)aintenant|(?<=d)esormais|(?<=a)hora)(?![a-z])"
    r"|(?<=新)的?|(?<=[现現])在|(?<=今)|(?<=新)しい|(?<=지)금|(?<=이)제|(?<=새))[^\x00-\x7f]{0,6}"
    rf"(?:[ ](?:is|it's|ist|heisst|lautet|est|c'est|es)(?=[ :]))?[ ]?[:=]?{_VALUE}"
)


def _said_next(name: Name, around: str, low: str, end: int) -> tuple[int, int] | None:
    """Something that nobody would say, behind a word for what is new, also in the next sentence on the same line."""
    line = low.find("\n", end, end + _WITHIN)
    said = _SAYS_NOW.search(low, end, line if line >= 0 else end + _WITHIN)
    span = _span(said, around)
    if span and (_is_made_up(name, around, span) or _is_number(name, around, span)):
        return span
    return None


# Without a word of six characters, one of them a digit or a sign or some of them side by side in no word, nothing is
# made up; nor does a phrase stand before its name without one of these words.
_NO_WORD = r"(?=[^\s]{6})[a-z_.,/@:=+-]{0,40}+[^a-z_.,/@:=+\s-]"
_BEGINS_WITH_NO_WORD = pattern(_NO_WORD)
_IN_NO_WORD = (pattern(rf"[\s\"'`(]{_NO_WORD}"), pattern("[bcdfghjklmnpqrstvwxyz]{4}"))
_BEFORE_PHRASE = ("use ", "take ", "nimm ", "utilise ", "usa ")


def _may_be_made_up(low: str) -> bool:
    if _BEGINS_WITH_NO_WORD.match(low):
        return True
    for sign in _IN_NO_WORD:
        if sign.search(low):
            return True
    return any(map(low.__contains__, _BEFORE_PHRASE))


# Of a cell in a column of secrets.
CELLS: dict[str, Callable[[str], bool]] = {
    PASSWORD: lambda cell: is_password(cell, is_quoted=False),
    DOUBTFUL: is_made_up,
    KEY: lambda cell: is_key(cell) or is_grouped(cell),
    PHRASE: lambda cell: is_phrase(cell) or is_password(cell, is_quoted=False),
    PIN: str.isdecimal,
}
# `--from-literal=password=…`: the name of what follows is no part of it.
_INNER_NAME = pattern(
    r"(?:[a-z0-9]{1,16}[_.-]){0,4}(?:pass[a-z]{0,6}|secret|token|key|pwd?|code|seed|pin)=(?=.{4})", 2
)


def _span(found: re.Match[str] | None, around: str) -> tuple[int, int] | None:
    """Where the value stands that one of the expressions has found."""
    if found is None or found.lastindex is None:
        return None
    start, end = found.span(found.lastindex)
    if found.lastindex != _BARE_GROUP:
        return start, start + len(around[start:end].rstrip(" "))
    given = around[start:end].rstrip(_ENDS)
    inner = _INNER_NAME.match(given)
    if inner is not None:
        start, given = start + inner.end(), given[inner.end() :]
    if given.endswith("(") and not around[end : end + 1].isascii():
        given = given[:-1]
    return start, start + len(given)


def _is_secret(name: Name, around: str, span: tuple[int, int], *, has_sign: bool = False) -> bool:
    given = around[span[0] : span[1]]
    is_quoted = around[span[0] - 1] in "\"'`"
    if not is_quoted and _is_short_word(given):
        return False
    if name.sort in (PASSWORD, PHRASE):
        return is_password(given, is_quoted=is_quoted)
    if name.sort is DOUBTFUL:
        return is_made_up(given) or (has_sign and given.isdecimal() and len(given) >= _LEAST_DIGITS)
    return is_key(given) or is_odd(given) or is_grouped(given) or (has_sign and _may_be_chosen(name, given))


def _may_be_chosen(name: Name, given: str) -> bool:
    """Whether a person has chosen this in the place of what a machine makes."""
    if name.kind == "secret":
        return is_made_up(given)
    return is_made_up(given) and sum(map(str.isdecimal, given)) > 1 and not is_known_mix(given)


def _is_short_word(given: str) -> bool:
    """Whether this is nothing but letters, and so few that nobody can tell whether they are a word."""
    return len(given) < _LEAST_DIGITS and given.isalpha()


def _is_made_up(name: Name, around: str, span: tuple[int, int]) -> bool:
    given = around[span[0] : span[1]]
    if _is_short_word(given):
        return False
    if name.sort is KEY:
        return (is_key(given) and len(given) >= _LEAST_KEY) or _is_odd_secret(name, given)
    return is_made_up(given) or (name.sort is PHRASE and is_dashed_phrase(given))


def _is_odd_secret(name: Name, given: str) -> bool:
    if name.kind != "secret":
        return False
    is_code = name.anchor in _OF_CODES and is_grouped(given) and not _YEARS.match(given)
    return is_odd(given) or is_code


_OF_CODES = ("recovery", "backup code", "wiederherstellungs", "recupera")
_YEARS = pattern("(?:19|20)[0-9]{2}-")


def _is_secret_without_sign(name: Name, given: str) -> bool:
    if _is_short_word(given):
        return False
    if name.sort is KEY:
        return (is_key(given) and len(given) >= _LEAST_NEAR_KEY) or _is_odd_secret(name, given)
    return is_made_up(given) or (name.sort is PHRASE and is_dashed_phrase(given))


def _led_to(
    name: Name, around: str, low: str, leads: list[re.Match[str]], end: int
) -> tuple[int, int] | None:
    """A value to which the sentence leads: `the password for the wifi is …`, `Passwort für den Server: …`."""
    for lead in leads[:_MOST_LEADS]:
        span = _span(_VALUE_ALONE.match(low, lead.end()), around)
        if span is None:
            continue
        given = around[span[0] : span[1]]
        is_one = _is_secret(name, around, span) or bool(
            lead[1]
            and name.sort is KEY
            and name.anchor != "cred"
            and _may_be_chosen(name, given)
            and not is_known_mix(given)
        )
        if is_one and (
            not lead[2]
            or name.anchor in _IS_TO
            or _is_made_up(name, around, span)
            or _SETS.search(low[: lead.end()])
        ):
            return _with_equals_sign(around, span[0], end), span[1]
    return None


# `Maple=rocket17`, which has a sign in it that leads to values; `host=…` and `DB_HOST=…` are no part of one.
_BEFORE_EQUALS = pattern(r"""(?<![^\s"'`(>])[A-Za-z0-9!#$%*+?-]{3,15}=$""")


def _with_equals_sign(around: str, start: int, end: int) -> int:
    """Where a value begins that has an equals sign in it, behind a name that ends here."""
    before = _BEFORE_EQUALS.search(around, max(end, start - _LONGEST_PART), start)
    is_part = before is not None and not before[0].islower() and not before[0].isupper()
    return before.start() if before is not None and is_part else start


_LONGEST_PART = 16


def _near(name: Name, around: str, low: str, end: int) -> tuple[int, int] | None:
    """Something that nobody would say, in the same sentence behind the name, or in the answer to a question."""
    over = _STATEMENT_ENDS.search(low, end, end + _WITHIN)
    limit = over.start() if over else min(len(low), end + _WITHIN)
    space = _A_SPACE.search(around, limit)
    for token in _TOKEN.finditer(around, end, space.start() if space else len(around)):
        start = token.start()
        if start >= limit:
            break
        given = token[0].rstrip(_ENDS)
        if _is_secret_without_sign(name, given):
            return start, start + len(given)
    return None


def _beside(name: Name, around: str, low: str, start: int, end: int) -> tuple[int, int] | None:
    """Something that cannot be said at all, before the name on its line, or alone on one of the next lines."""
    line = low.rfind("\n", 0, start) + 1
    above = _ABOVE.search(around, 0, line) if line and _IS_BELOW.fullmatch(low, line, start) else None
    if above is not None and (
        _is_beyond_doubt(name, above[1])
        or (name.sort is PASSWORD and low[line] in "^↑(" and is_made_up(above[1]))
    ):
        return above.span(1)
    for token in _TOKEN.finditer(around, line, start):
        given = token[0].rstrip(_ENDS)
        if ":" not in given and _is_beyond_doubt(name, given) and token.end() < start - 1:
            return token.start(), token.start() + len(given)
    alone = _ALONE_BELOW.match(around, end)
    if alone is not None:
        is_close = name.sort is PASSWORD and alone.start(1) - end <= _CLOSE_BELOW
        if _is_beyond_doubt(name, alone[1]) or (is_close and is_made_up(alone[1])):
            return alone.span(1)
    return None


# Something alone on a line, and on the next one what it is.
_ABOVE = pattern(r"""(?:^|\n)[ \t>*•-]{0,6}["'`]{0,3}([^\s"'`]{6,}+)["'`]{0,3}[ \t]{0,4}\r?\n$""")
_IS_BELOW = pattern(rf"[ \t^↑(\[*_>-]{{0,8}}(?:{_WORD} ){{0,4}}")
_CLOSE_BELOW = 24
_ALONE_BELOW = pattern(
    r"""[^\r\n]{0,64}+(?:\r?\n[A-Za-z][A-Za-z ,.!:']{1,20}+(?=\r?\n))?(?:\r?\n[ \t>]*+(?:`{3}[a-z]{0,12}|[=~-]{2,80}+)?){1,4}+(?:[-*•] )?["'`*]{0,3}([^\s"'`,;|]{8,}+)["'`*]{0,3}[ \t]*+(?=[\r\n]|$)"""  # noqa: E501
)


def _is_beyond_doubt(name: Name, given: str) -> bool:
    if name.sort is KEY:
        return is_key(given) and len(given) >= _LEAST_KEY
    return is_odd(given)


# Words, each with a space before it, of which the first may do without.
_WORDS = rf"(?: ?{_WORD}(?: {_WORD}){{0,3}})?"
_SAID_AHEAD = pattern(
    rf"""(?:^|use |using |take |with |set |tried |type |enter |nimm |mit |utilise |mets |usa |pon )["'`]?((?:[a-z]{{3,12}} ){{3,23}}[a-z]{{3,12}})["'`]?"""  # noqa: E501
    rf"""[ ]?(?: (?:is|as|als|comme|como|for|at|when|est|ist|es)|[=:#(–—-]|//|<-|←){_WORDS}[ (]{{0,2}}$|"""
    rf"""^[ >*•-]{{0,6}}([^\s"'`(),;:]{{6,64}})["'`*]{{0,3}}(?:[ ]?[=–—~→|>;]|[ ]?[=-]>|:|[ ][:-]|\t)[ ]?(?:{_WORD} ){{0,3}}$|"""  # noqa: E501
    rf"""(?<![^\s"'`(),;:])([^\s"'`(),;:]{{6,64}})["'`*]{{0,3}} \((?:{_WORD} ){{0,3}}$"""
    rf"""|(?<![^\s"'`(),;])([^\s"'`(),;]{{6,64}})["'`*]{{0,3}}[ ]{{0,3}}(?:<-{{1,3}}|←|<=|#|//|--|/){_WORDS}[ ]?["'`*]{{0,2}}$"""  # noqa: E501
    rf"""|(?:type|enter|use|try|tippe|gib|nimm|nutze|saisis|tape|utilise|usa|escribe|pon) ["'`]?([^\s"'`(),;]{{6,64}})["'`*]{{0,3}}(?: {_WORD}){{1,8}} $"""  # noqa: E501
    rf"""|(?<![^\s"'`(),;:])([^\s"'`(),;:]{{6,64}})["'`*]{{0,3}}[ ]?(?: (?:{"|".join((*IS, "as", "als", "en", "still", "comme", "como", "come", "for", "pour", "de"))})(?: {_WORD}){{0,3}} ["'`*]{{0,2}}"""  # noqa: E501
    r"|[^\x00-\x7f]{0,2}[是为為がをは이가을를][^\x00-\x7f]{0,8}[ ]?)$"
)


def _ahead(name: Name, around: str, low: str, start: int) -> tuple[int, int] | None:
    """Something that nobody would say, called a secret afterwards: `use … as the password`."""
    line = low.rfind("\n", 0, start) + 1
    if low[start].isascii() and low.rfind(" ", 0, max(line, start - 1)) < 0:
        return None
    before = low[line:start].removesuffix("pass").removesuffix("mot de ")
    if name.sort is not PHRASE and not has_made_up(around, low, line, line + len(before)):
        return None
    said = _SAID_AHEAD.search(before)
    if said is None:
        return None
    assert said.lastindex is not None
    first, last = said.span(said.lastindex)
    span = line + first, line + last
    is_one = _is_secret(name, around, span) if name.sort is PHRASE else _is_made_up(name, around, span)
    return span if is_one or (name.sort is PHRASE and is_phrase(low[span[0] : span[1]])) else None


def _others(name: Name, around: str, low: str, end: int) -> Iterator[Found]:
    """Further secrets behind the first one: `passwords: …, … and …`."""
    while True:
        span = _span(_ANOTHER.match(low, end), around)
        if span is None or not _is_made_up(name, around, span):
            return
        yield *span, name.kind
        end = span[1]


def _opens_something(around: str, low: str, at: int) -> bool:
    """Whether a key is one that opens something: an `api_key`, a `STRIPE_KEY`, no primary key."""
    before = low[:at].rstrip("_-. ")
    if before.endswith(KEY_OF) or low[:at].endswith(("?", "&")):
        return True
    is_camel = around[at].isupper() and around[at - 1 : at].islower()
    before = around[:at] if is_camel else before
    word = _LAST_WORD.search(before, max(0, len(before) - _LONGEST_LAST_WORD))
    is_joined = is_camel or low[at - 1 : at] in (" ", "_", "-", ".")
    return word is not None and is_joined and word[0].lower() not in KEY_OF_NOTHING


_LAST_WORD = pattern(r"[A-Z]?[a-z]{2,24}$")
_LONGEST_LAST_WORD = 26  # with a line break behind it
