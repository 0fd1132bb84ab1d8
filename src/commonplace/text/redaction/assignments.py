"""Secrets that their name gives away: `password = …`, `"api_key": "…"`, `export TOKEN=…`, `密码：…`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.pattern import pattern
from commonplace.text.redaction.findings import Found, Page
from commonplace.text.redaction.plausible import is_key, is_password
from commonplace.value import value

# Between a name and its value: the end of a quotation or of bold type, and an equals sign in one of its many forms; or
# what the secret is for. All of it is matched in lower case.
_EQUALS = (
    r"""[\\"'`*_\])]{0,4}+"""
    r"(?:[ \t]{0,8}+(?:=>|:=|={1,3}+|:[ \t]{0,2}[&a-z\[\]|]{2,16}[ \t]{0,2}=|[:：＝](?!:)|->|→)"
    r"|[ \t]{0,2}+[|>]|\((?=[\"'])| [–—-] | (?=[\"'`])"
    r"|[ \t](?:is|was|will be|(?:is |was |has been )?(?:changed|set|reset|updated) to)(?: now)?+[: \t]"
    r"| (?:for|to|of|on|at)(?: [^\s:=|]{1,24}){1,4}?(?:[:=]| (?:is|was|=) ))"
)
_EASTERN_EQUALS = r"""["'`*]{0,3}+[ \t]{0,4}+(?:[:：=＝]|[是为為][:：]?|[はが은는])"""
_OPENING = r"""[ \t]{0,8}+[*_]{0,2}+[ \t]{0,2}+(?:[bfru]{1,2}(?=["']))?+"""
_QUOTED = (
    r"""\\["']([^"'\\\r\n]{4,2048}+)|"([^"\\\r\n]{0,2048}+(?:\\.[^"\\\r\n]{0,512}+){0,16}+)"""
    r"""|'([^'\\\r\n]{4,2048}+)|`([^`\r\n]{4,512}+)|[“‘「『]([^”’」』\r\n]{4,256}+)"""
)
# A comma or an ampersand belongs to a value unless white space or the next name follows.
_FIRST = r"""[^\s"'`<>,;&|“”‘’「」『』，。；、（）(\[{=:\\]"""
_OTHERS = r"""[^\s"'`<>,;&|“”‘’「」『』，。；、（）\\]"""
_FURTHER = r"""(?:[,;&](?![a-z0-9_.\- ]{0,40}[=:])[^\s"'`<>,;&|\\]{1,512}+){0,8}+"""
# An example, not worth a closer look.
_A_NAME = r"""(?!\\?["'`]?(?:new|my|old|test|user)?_?(?:pass(?:word|wd)|secret|token)[\s"'`=:,;)\\])"""
_A_WORD = r"""(?![a-z]{1,64}+[.:!?)\]}*_-]{0,3}+(?:[\s"'`<>|]|$|[,;&](?:\s|$|[a-z0-9_.\- ]{0,40}[=:])))"""
_PASSWORD = rf"{_OPENING}{_A_NAME}(?:{_QUOTED}|({_A_WORD}{_FIRST}{_OTHERS}{{3,2048}}+{_FURTHER}))"
_KEY = rf"{_OPENING}(?:{_QUOTED}|({_FIRST}{_OTHERS}{{9,4096}}+{_FURTHER}))"
_EASTERN_PASSWORD = (
    rf"{_OPENING}{_A_NAME}(?:{_QUOTED}|([!#-&*+./-9?@^_a-z~-][!#-&*+.-:=?@^_a-z~-]{{3,256}}+))"
)
_BARE_GROUP = 6
_SUFFIX = r"(?:[_-]?(?:[0-9]{1,3}|prod|dev|test|staging|live|value|text|plain|confirm|b64|base64))?+"
# `key` alone names anything.
_KEY_OF = (
    "api", "access", "secret", "private", "auth", "account", "encryption", "signing", "master", "service",
    "subscription", "storage", "deploy", "app", "consumer", "admin", "client", "shared", "session", "jwt", "webhook",
    "bot", "license", "root", "host", "server", "function",
)  # fmt: skip
_LONGEST_KEY_OF = 16
_MOST_IN_FIELD = 2048
_JOINTS = "_-. "
_ENDS_OF_SENTENCES = ".:)]}*_"


@value
class _Name:
    kind: str
    keyword: str
    expression: re.Pattern[str]


def _password(keyword: str, name: str, equals: str, given: str = _PASSWORD) -> _Name:
    return _Name("password", keyword, pattern(name + equals + given))


def _key(kind: str, keyword: str, name: str, equals: str) -> _Name:
    return _Name(kind, keyword, pattern(name + equals + _KEY))


def _equals(*flags: str) -> str:
    """What stands between a name and its value; behind a flag of a command line, a space."""
    spaces = "".join(f"|(?<=-{flag}) (?!-)" for flag in flags)
    return f"(?:{_SUFFIX}{_EQUALS}{spaces})"


_NAMES = (
    _password(
        "pass",
        "pass(?:w(?:or[dt]|d)s?|phrases?|codes?|(?<=[_-]pass)|(?<![a-z]pass)(?==))",
        _equals("pass", "password", "passwd", "passphrase"),
    ),
    _password("pwd", "pwd", _equals("pwd")),
    _password("pw", "pw(?<![a-z0-9]pw)(?=[:=])", _equals()),
    _password("kennwort", "kennwort", _equals()),
    _password("contrase", "contrase(?:ñ|n|n\u0303)a", _equals()),
    _password("senha", "senha", _equals()),
    _password("mot de passe", "mot de passe", _equals()),
    _password("wachtwoord", "wachtwoord", _equals()),
    _password("sshpass", "sshpass -p", " ?+"),
    _password("login ", r"login [^\s]{1,64} password", " "),
    _key(
        "secret",
        "secret",
        r"secrets?(?:[_\-. ]?(?:access[_\-. ]?)?(?:key|token|id|value|string))?",
        _equals("secret"),
    ),
    _key("token", "token", "tokens?", _equals("token")),
    _key("key", "key", r"key(?<=[a-z_\-. ?&]key)(?:s|[_-]?(?:data|value|secret))?", _equals("key")),
    _key("secret", "credential", "credentials?", _equals()),
)
_EASTERN_NAMES = _password(
    "", "(?:密[码碼]|密[钥鑰]|口令|令牌|パスワード|비밀번호|암호|пароль)", _EASTERN_EQUALS, _EASTERN_PASSWORD
)


def assigned_secrets_in(page: Page) -> Iterator[Found]:
    """Report every value that is named as a secret and looks like one."""
    low = page.low
    names = _NAMES if low.isascii() else (*_NAMES, _EASTERN_NAMES)
    for name in names:
        if name.keyword in low:
            for found in name.expression.finditer(low):
                place = _place_of_value(page, found, name.kind)
                if place is not None:
                    yield *place, name.kind


def _place_of_value(page: Page, found: re.Match[str], kind: str) -> tuple[int, int] | None:
    group = found.lastindex
    assert group is not None
    start, end = found.span(group)
    is_bare = group == _BARE_GROUP
    given = page.text[start:end]
    if is_bare:
        given = given.rstrip(_ENDS_OF_SENTENCES)
    if kind == "password":
        is_secret = is_password(given, is_quoted=not is_bare)
    else:
        is_secret = is_key(given) and (kind != "key" or _is_named_key(page.low, found.start()))
    return (start, start + len(given)) if is_secret else None


def _is_named_key(low: str, at: int) -> bool:
    before = low[max(0, at - _LONGEST_KEY_OF) : at]
    return before.rstrip(_JOINTS).endswith(_KEY_OF) or before.endswith(("?", "&"))


def kind_of_named(name: str, given: str) -> str | None:
    """Say which kind of secret `given` is as the field `name` of an object, if it is one."""
    if not given or "\n" in given or len(given) > _MOST_IN_FIELD:
        return None
    quoted = given.replace("\\", "").replace('"', "")
    page = Page(f'"{name[:_MOST_IN_FIELD]}": "{quoted}"')
    return next((kind for _, end, kind in assigned_secrets_in(page) if end == len(page.text) - 1), None)
