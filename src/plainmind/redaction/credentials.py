"""Credentials in addresses, in headers of requests, on command lines and in files of programs."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from plainmind.base.lazy import MULTILINE, pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found
from plainmind.redaction.page import Page
from plainmind.redaction.plausible import is_known_mix, is_made_up, is_password, is_random, is_stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# --- addresses: `postgres://user:password@host` ---

# Greedy up to the last `@`: people forget to encode one in a password. A port is a number, all else is none.
_WITH_PASSWORD = pattern(
    r"""://[^\s/:@"'`<>?#\\]{0,128}+:(?![0-9]{1,5}[/?#])"""
    r"""((?:[^\s"'`<>\\@/]{1,256}+|/(?!/)|@(?=[^\s"'`<>\\@/]{1,128}+@)){1,16}+)@(?=[A-Za-z0-9_.%{$(\[\-])"""
)
_DATABASES = (
    "postgres", "postgresql", "mysql", "mysql2", "mariadb", "mongodb", "mongodb+srv", "redis", "rediss", "amqp",
    "amqps", "mssql", "sqlserver", "clickhouse", "cockroachdb", "psycopg", "psycopg2", "asyncpg", "pymysql",
    "aiomysql", "pyodbc", "neo4j", "bolt", "cassandra", "couchbase", "nats", "ldap", "ldaps",
)  # fmt: skip
_LONGEST_SCHEME = 16


def passwords_in_addresses(page: Page) -> Iterator[Found]:
    """Report every password that an address carries; the rest of the address stays readable."""
    text = page.text
    if "://" not in text:
        return
    for found in _WITH_PASSWORD.finditer(text):
        if is_stand_in(found[1]):
            continue
        scheme = text[max(0, found.start() - _LONGEST_SCHEME) : found.start()].lower()
        if scheme.endswith(_DATABASES):
            yield found.start(1), found.end(1), "database-password"
        elif text[found.start() + 3] != ":":  # only a database takes a password without a name
            yield found.start(1), found.end(1), "url-password"


# --- requests: `Authorization`, `Bearer`, `Basic`, cookies ---

_AUTHORIZATION = pattern(
    r"""auth(?:orization)?["'\\\])]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}[bfru]?["'\\]{0,3}(?:[a-z0-9-]{2,20}[ \t]{1,2})?+"""
    r"""(?!auth)([^\s"'<>\\,;]{8,8192})"""
)
_BEARER = pattern(r"bearer[ \t]{1,3}([a-z0-9._~+/=%:-]{16,8192})")
_BASIC = pattern(r"basic[ \t]{1,2}([a-z0-9+/_-]{8,1024}={0,2})")
_PAIR = r"""[a-z0-9_.!#$%&*+^|~-]{1,128}+=[^\s;,"'\\]{0,4096}+"""
_COOKIE = pattern(
    rf"""cookie["'\\\]]{{0,3}}(?:[ \t]{{0,2}}[:=]|[ \t](?=["']))[ \t]{{0,3}}["']?({_PAIR}(?:;[ ]?{_PAIR})*+)"""
)
_DIGIT = pattern("[0-9]")
_LEAST_COOKIE = 12


def credentials_in_headers(page: Page) -> Iterator[Found]:
    """Report the credentials of requests, written as headers."""
    for kind, keyword, expression, is_one in _SCHEMES:
        if page.has(keyword):
            for found in expression.finditer(page.low):
                start, end = found.span(1)
                if is_one(page.text[start:end]):
                    yield start, end, kind
    if page.has("cookie"):
        yield from _cookies(page)


def _cookies(page: Page) -> Iterator[Found]:
    low = page.low
    for found in _COOKIE.finditer(low):
        start, end = found.span(1)
        if end - start < _LEAST_COOKIE:
            continue
        if low.startswith("set-", max(0, found.start() - 4)):
            # What follows the first pair says for whom and how long.
            start = low.index("=", start) + 1
            end = min(end, low.find(";", start, end) % (len(low) + 1))
        if end - start >= _LEAST_COOKIE and _DIGIT.search(low, start, end):
            yield start, end, "cookie"


def _is_credential(text: str) -> bool:
    if "(" in text or (text.isalpha() and (text.islower() or text.istitle())):
        return False
    return (is_random(text) and not is_stand_in(text)) or _is_pair_in_base64(text)


def _is_pair_in_base64(text: str) -> bool:
    """Whether it is `user:password`, as basic authentication writes it."""
    try:
        pair = a2b_base64(text + "=" * (-len(text) % 4)).decode()
    except ValueError:  # neither base64 nor text
        return False
    user, colon, password = pair.partition(":")
    return bool(user and colon and password) and pair.isprintable() and not is_stand_in(password)


_SCHEMES = (
    ("authorization", "auth", _AUTHORIZATION, _is_credential),
    ("bearer", "bearer", _BEARER, _is_credential),
    ("basic-auth", "basic ", _BASIC, _is_pair_in_base64),
)


# --- command lines, files of programs, codes for a wireless network ---

_LOOK_BACK = 400
_MANY_FLAGS = 1_000
_LONGEST_PROGRAM = 24
_SHORT = 64
_ARGUMENT = r"""(?:"([^"\r\n]{4,256}+)"|'([^'\r\n]{4,256}+)'|([^\s"'`|;<>&-][^\s"'`|;<>]{3,256}+))"""


@value
class _Flag:
    """A flag with a password behind it; only if one of the programs stands before it on its line."""

    signs: tuple[str, ...]  # how it begins
    expression: re.Pattern[str]
    programs: re.Pattern[str]
    is_sure: bool = True  # otherwise it must be made up


_SLASH_P = pattern(" /p:")
# Whoever says who he is may say his password too.
_USER_FLAG = pattern(r" --?(?:u|U|user|username|login)[ =]?[A-Za-z'\"]")
_FLAGS = (
    _Flag(
        (" -u", " -a", " -U", " --"),
        pattern(r""" -(?:u|a|U|-user|-auth|-proxy-user|-login)[ =]{0,2}(?:"[^\s:%"]{1,128}[:%]([^"\r\n]{4,256}+)"""
                r"""|'[^\s:%']{1,128}[:%]([^'\r\n]{4,256}+)|[^\s:%"'=-]{1,128}[:%]([^\s"']{4,256}+))"""),
        pattern("curl|https? |wget|smbclient|rpcclient"),
    ),
    _Flag((" -p",), pattern(f" -p{_ARGUMENT}"), pattern("mysql|mariadb|sshpass|7za? |rar ")),
    _Flag(
        (" -p",),
        pattern(f" -p {_ARGUMENT}"),
        pattern("(?:docker|podman|az|helm registry|oc|skopeo|nerdctl) login|sshpass|mongo|cqlsh|influx|rabbitmqadmin"),
    ),
    _Flag((" -P",), pattern(f" -P {_ARGUMENT}"), pattern("zip |ipmitool|sqlcmd|bcp |isql|tsql|lftp|svn")),
    _Flag((" -w",), pattern(f" -w {_ARGUMENT}"), pattern("ldap")),
    _Flag((" -p",), pattern(f" -pw {_ARGUMENT}"), pattern("plink|pscp|putty|psftp")),
    _Flag((" -a",), pattern(f" -a {_ARGUMENT}"), pattern("redis-cli|valkey-cli")),
    _Flag((" -p",), pattern(f" -p {_ARGUMENT}"), _USER_FLAG, is_sure=False),
    _Flag((" -P",), pattern(f" -P {_ARGUMENT}"), _USER_FLAG, is_sure=False),
    _Flag((" -w",), pattern(f" -w {_ARGUMENT}"), _USER_FLAG, is_sure=False),
    _Flag((" -A",), pattern(f" -A {_ARGUMENT}"), pattern("snmp"), is_sure=False),
    _Flag((" -X",), pattern(f" -X {_ARGUMENT}"), pattern("snmp"), is_sure=False),
    _Flag((" -c",), pattern(f" -c {_ARGUMENT}"), pattern("snmp"), is_sure=False),
    _Flag((" -k",), pattern(f" -k {_ARGUMENT}"), pattern("openssl"), is_sure=False),
    _Flag((" -p",), pattern(f" -p {_ARGUMENT}"), pattern("security unlock|ncftp|rdesktop|useradd|usermod"), is_sure=False),  # noqa: E501
    _Flag((" -t",), pattern(f" -t {_ARGUMENT}"), pattern("auth|login|token"), is_sure=False),
    _Flag((" -u",), pattern(r" -u [^\s,]{1,64},([^\s\"']{4,128}+)"), pattern("ftp"), is_sure=False),
    _Flag((" /p",), pattern(f" /p:{_ARGUMENT}"), pattern("rdp")),
)  # fmt: skip
# The beginning of each of them.
_A_FLAG = pattern("-(?<= -)(?:[uaUpPwAXckt]|-(?:user|auth|proxy-user|login))")
_AT_END_OF_HOST = "|".join(
    rf"(?<=\.{ending}:)" for ending in ("com", "org", "net", "io", "de", "fr", "lan", "local")
)
# By what is a part of the keyword in lower case.
_FILES: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    # `host:port:database:user:password`, as libpq keeps them.
    ":5432:": ((":5432:", pattern(r":5432:[^\s:]{1,64}:[^\s:]{1,64}:([^\s:]{4,256}+)$", MULTILINE)),),
    ":thin:": ((":thin:", pattern(r":thin:[A-Za-z0-9_]{1,64}/([^\s@\"'/]{4,128}+)@")),),
    "wifi:": (("WIFI:", pattern(r"WIFI:(?:[A-OQ-Z]:[^\s;]{0,64};){0,4}P:([^\s;]{4,64}+);")),),
    "passwd": (
        ("chpasswd", pattern(r""":([^\s"':]{4,256}+)["']?[ ]?\|[ ]?(?:sudo )?chpasswd""")),
        (
            "htpasswd",
            pattern(r"htpasswd (?:-[A-Za-z]{1,6} ){1,3}[^\s]{1,128} [^\s]{1,64} [\"']?([^\s\"']{4,128}+)"),
        ),
    ),
    "net use": (
        (
            "net use",
            pattern(
                r"net use (?:[^\s]{1,128} ){1,2}(?:([^\s\\]{4,128}) /user:|/user:[^\s]{1,64} ([^\s/]{4,128}+))"
            ),
        ),
        ("net user", pattern(r"net user [^\s]{1,64} ([^\s/*]{4,128}+)")),
    ),
    "sudo -s": (("sudo -S", pattern(r"""echo ["']?([^\s"'|]{4,128}+)["']?[ ]?\|[ ]?sudo -S""")),),
}
_MANY_COLONS = 16  # one in so many characters
# The same with other ports, of four fields or five; `host:port user:password`; and without a port. By what stands in
# such a text when digits are `0`, other signs of a name are `a`, and all else is `.`: one of these is in each. It takes
# longer to look for that than for a few colons.
_FIELDS: tuple[tuple[tuple[bytes, ...], re.Pattern[str]], ...] = (
    (
        (b":00", b":0:"),
        pattern(r":(?:[0-9]{2,5}|\*):[^\s:]{1,64}:(?:[^\s:]{1,64}:)?([^\s:\"',]{6,128}+)(?=\s|$)"),
    ),
    ((b":00",), pattern(r":[0-9]{2,5}[ \t]{1,4}[A-Za-z0-9_.@+-]{1,64}:([^\s:/]{6,128}+)(?=\s|$)")),
    (
        (b"a:a", b"a:0"),
        pattern(rf":(?:{_AT_END_OF_HOST})[A-Za-z0-9_.@+-]{{1,64}}:([^\s:/\"',]{{6,128}}+)(?=\s|$)"),
    ),
)
_OF_FIELDS = {":": ":", **dict.fromkeys("0123456789*", "0"), **dict.fromkeys("_.@+-", "a")}
_AS_FIELDS = bytes(
    ord(_OF_FIELDS.get(sign, "a" if sign.isalnum() else ".")) for sign in map(chr, range(128))
).ljust(256, b".")


# --- `bob:…@host`, without a scheme before it ---

_AT_HOST = pattern(
    r""":(?<=[A-Za-z0-9_.+-]:)(?!//)([^\s:@/"'`<>|,;()\[\]{}]{4,64}+)@(?!sha[0-9])([A-Za-z0-9][A-Za-z0-9.-]{1,80}+)([:/(]?)"""
)
# `ada@example.com / …`
_BEHIND_MAIL = pattern(
    r"""@[A-Za-z0-9-]{1,64}(?:\.[A-Za-z0-9-]{1,32}){1,3}+["'`)]{0,2}[ \t]{0,2}(?:[/|,;\t][ \t]{0,2}|:(?![0-9]))["'`]?([^\s"'`<>|,;]{6,64}+)"""  # noqa: E501
)
# `root@10.0.0.7: …`, `root@mars (…)`
_BEHIND_HOST = pattern(r"""@[A-Za-z0-9.-]{1,64}(?:: | / | \()["'`]?([^\s"'`<>|,;()]{6,64}+)""")
_ADDRESS = pattern(r"[0-9.]{7,15}$")
_USER = pattern(r"[A-Za-z0-9_.+-]{1,40}$")
# Behind one of these stands somebody's address.
_LABELS = frozenset(
    """
    mail email e-mail mailto from to cc bcc author contact kontakt correo courriel reply-to sender xmpp sip sips acct
    jid
    user owner maintainer committer npm pip pypi docker image git go gem cargo
    """.split()  # noqa: SIM905
)
_VERSION = pattern(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,2}(?:[.-][a-z][a-z0-9]{0,16})?$")


def passwords_before_hosts(page: Page) -> Iterator[Found]:
    """Report the password of `user:password@host`."""
    text = page.text
    if "@" not in text:
        return
    for found in _BEHIND_MAIL.finditer(text):
        if is_made_up(found[1].rstrip(".)")):
            yield found.start(1), found.start(1) + len(found[1].rstrip(".)")), "password"
    for found in _BEHIND_HOST.finditer(text):
        given = found[1].rstrip(".:")
        if is_made_up(given) and not is_known_mix(given):
            yield found.start(1), found.start(1) + len(given), "password"
    for found in _AT_HOST.finditer(text):
        is_host = found[3] or "." not in found[2] or _ADDRESS.match(found[2])
        if (_is_bare_password if is_host else is_made_up)(found[1]) and not _VERSION.match(found[2]):
            user = _USER.search(text, max(0, found.start() - 40), found.start())
            if user is not None and user[0].lower() not in _LABELS:
                yield *found.span(1), "password"


def passwords_in_command_lines(page: Page) -> Iterator[Found]:
    """Report what is given to a program as a password."""
    text = page.text
    begun = _flags_in(page)
    for flag in _FLAGS if begun else ():
        yield from _behind(flag, text, begun)
    for keyword, expression in (one for word, some in _FILES.items() if page.has(word) for one in some):
        if keyword in text:
            yield from _passwords_of(expression.finditer(text), _is_password)
    colons = text.count(":")
    alike = page.in_bytes.translate(_AS_FIELDS) if colons > len(text) // _MANY_COLONS else b""
    for signs, expression in _FIELDS if colons else ():
        if not alike or any(sign in alike for sign in signs):
            yield from _passwords_of(expression.finditer(text), is_made_up)


def is_full_of_flags(page: Page) -> bool:
    """Whether flags that may have a password behind them follow each other as on no command line."""
    text = page.text
    least = len(text) // _LENGTH_OF_FLAG
    return text.count(" -") > least and sum(text.count(f" -{letter}") for letter in "uaUpPwAXckt") > least


_LENGTH_OF_FLAG = 10


def _passwords_of(found: Iterable[re.Match[str]], is_secret: Callable[[str], bool]) -> Iterator[Found]:
    """Report the last group of each that is a secret; what stands somewhere once often stands there again."""
    known: dict[str, bool] = {}
    for one in found:
        group = one.lastindex
        assert group is not None
        given = one[group]
        is_one = known.get(given)
        if is_one is None:
            is_one = known[given] = is_secret(given)
        if is_one:
            yield *one.span(group), "password"


def _flags_in(page: Page) -> Mapping[str, list[int] | None]:
    """Where flags stand that may have a password behind them, by their first three characters; None if anywhere."""
    text = page.text
    begun: dict[str, list[int] | None] = {}
    places: dict[str, list[int]] = {}
    for count, found in enumerate(_A_FLAG.finditer(text) if " -" in text else ()):
        if count == _MANY_FLAGS:
            begun |= {sign: None for flag in _FLAGS for sign in flag.signs if sign in text}
            break
        places.setdefault(f" {found[0][:2]}", []).append(found.start() - 1)
    else:
        begun |= places
    if " /p:" in text:
        begun[" /p"] = [found.start() for found in _SLASH_P.finditer(text)]
    return begun


def _given_to(flag: _Flag, text: str, begun: Mapping[str, list[int] | None]) -> Iterator[re.Match[str]]:
    """Report where a flag stands with something behind it."""
    some = [begun[sign] for sign in flag.signs if sign in begun]
    if None in some:
        if flag.programs.search(text):
            yield from flag.expression.finditer(text)
        return
    end = 0
    for at in sorted(chain.from_iterable(filter(None, some))):
        found = flag.expression.match(text, at) if at >= end else None
        if found is not None:
            end = found.end()
            yield found


def _behind(flag: _Flag, text: str, begun: Mapping[str, list[int] | None]) -> Iterator[Found]:
    called = _called(flag, text, begun)
    return _passwords_of(called, _is_password if flag.is_sure else is_made_up)


def _called(flag: _Flag, text: str, begun: Mapping[str, list[int] | None]) -> Iterator[re.Match[str]]:
    """Report where a flag stands behind one of its programs."""
    called_until = looked_at = 0
    is_called: dict[str, bool] = {}  # by what stands between two flags, which often is the same
    for found in _given_to(flag, text, begun):
        at = found.start()
        if at >= called_until:
            between = text[looked_at : at + 1] if at - looked_at <= _SHORT else ""
            if between and is_called.get(between) is False:
                looked_at = max(0, at - _LONGEST_PROGRAM)
                continue
            called_until = _called_until(flag.programs, text, max(looked_at, at - _LOOK_BACK), at)
            looked_at = max(0, at - _LONGEST_PROGRAM)
            if at >= called_until:
                if between:
                    is_called[between] = False
                continue
        yield found


def _called_until(programs: re.Pattern[str], text: str, first: int, at: int) -> int:
    """Up to where one of the programs, standing before a place on its line, counts as called; 0 if there is none."""
    called = None
    for called in programs.finditer(text, max(first, text.rfind("\n", first, at)), at + 1):  # noqa: B007
        pass
    if called is None:
        return 0
    end = text.find("\n", at, called.start() + _LOOK_BACK)
    return end if end >= 0 else called.start() + _LOOK_BACK


def _is_bare_password(given: str) -> bool:
    return is_password(given, is_quoted=False)


def _is_password(given: str) -> bool:
    return is_password(given, is_quoted=True)


# One of these is in a text that has something for the rules above.
KEYWORDS = ("cookie", *(keyword for _, keyword, _, _ in _SCHEMES), *_FILES)
