"""Secrets that their name gives away: `password = …`, `"api_key": "…"`, `export TOKEN=…`, `密码：…`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.named_values import (
    BARE_GROUP,
    BARE_PASSWORD,
    EQUALS,
    FAR_EQUALS,
    FAR_PASSWORD,
    KEY,
    OPENING,
    PASSWORD,
    QUOTED,
    SUFFIX,
)
from plainmind.redaction.plausible import is_key, is_made_up, is_password

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


# There is a digit in it.
_MADE_UP = rf"{OPENING}(?=[^\s0-9]{{0,64}}+[0-9])(?:{QUOTED}|{BARE_PASSWORD})"


@value
class _Name:
    kind: str
    keyword: str
    expression: re.Pattern[str]
    is_secret: Callable[..., bool]  # given a value and `is_quoted`


def _password(keyword: str, name: str) -> _Name:
    return _Name("password", keyword, pattern(name + _equals(keyword) + PASSWORD), is_password)


def _doubtful(keyword: str, name: str, kind: str = "password") -> _Name:
    """A name for a password that is more often something else: only what no person would say is one."""
    return _Name(kind, keyword, pattern(f"{name}{_MADE_UP}"), is_made_up)


def _key(kind: str, keyword: str, name: str) -> _Name:
    return _Name(kind, keyword, pattern(name + _equals(keyword) + KEY), is_key)


def _equals(flag: str) -> str:
    """What stands between a name and its value; behind a flag of a command line, a space."""
    return f"(?:{SUFFIX}(?=[^a-z0-9]){EQUALS}| (?<=-{flag} )(?!-))"


# Alone on the next line, or as the settings of a container have it.
_NEXT_LINE = r"""["'*]{0,3}+[ \t]?:?["'*]{0,3}+[ \t]{0,2}\r?\n[ \t]{0,12}+(?:value[ \t]?:[ \t]?)?+"""
_VALUE_BELOW = r"""["']?\r?\n[ \t]{0,12}+value: """
# By a word that is in all of them: looking for one word instead of three takes next to no time.
_NAMES: dict[str, tuple[_Name, ...]] = {
    "pass": (
        _password("pass", "pass(?:w(?:or[dt]|d)s?|ord|phrases?|codes?|(?<=[_-]pass)|(?<![a-z]pass)(?==))"),
        _Name("password", "-pass", pattern(f"-pass(?:word|wd|phrase) (?!-){PASSWORD}"), is_password),
        _doubtful(
            "pass",
            r"pass(?:(?<=/pass)(?:word)?s?[ \t]?[:=][ \t]?[a-z0-9_.@-]{2,64}[ \t]?[/:]"
            rf"""|(?<![a-z0-9]pass)["'\\*]{{0,3}}+[ \t]?:(?!:)|w(?:or)?d(?: |{_NEXT_LINE}))""",
        ),
        _password("mot de passe", "mot de passe"),
        _Name("password", "login ", pattern(rf"login [^\s]{{1,64}} password {PASSWORD}"), is_password),
    ),
    "pw": (_password("pwd", "pwd"), _password("pw", "pw(?<![a-z0-9]pw)(?=[:=])")),
    "contrase": (_password("contrase", "contrase(?:ñ|n|n\u0303)a"),),
    "parola": (_password("parola", "parola(?: d'ordine)?"),),
    **{
        name: (_password(name, name),)
        for name in ("kennwort", "senha", "wachtwoord", "heslo", "salasana", "kata sandi")
    },
    "secret": (
        _key(
            "secret",
            "secret",
            r"secret(?:s(?!tring))?+(?:[_\-. ]?(?:access[_\-. ]?)?+(?:key|token|id|value|string))?+",
        ),
        _doubtful("secret", r"secret[ \t]?[:=](?![:=])", kind="secret"),
    ),
    "token": (_key("token", "token", "tokens?+"),),
    "key": (_key("key", "key", r"key(?:s|[_-]?(?:data|value|secret))?+"),),
    "identified by ": (
        _Name("password", "identified by ", pattern(f"identified by {PASSWORD}"), is_password),
    ),
    "value: ": (
        _Name("secret", "value: ", pattern(rf"(?:token|secret|key|credentials){_VALUE_BELOW}{KEY}"), is_key),
    ),
    "cred": (
        _doubtful("cred", r"cred(?:ential)?s(?:[ \t]?[:=]| are)[ \t]?[a-z0-9_.@-]{2,64}[ \t]?[:/]"),
        _key("secret", "credential", "credentials?+"),
    ),
}
_FAR_NAMES = (
    "(?:密[码碼]|密[钥鑰]|口令|令牌|パスワード|비밀번호|암호|пароль|лозинка|κωδικός|كلمة المرور|كلمة السر|رمز عبور"
    "|סיסמה|סיסמא|पासवर्ड|รหัสผ่าน|mật khẩu|hasło|lösenord|şifre|jelszó)"
)
_FAR = _Name("password", "", pattern(_FAR_NAMES + FAR_EQUALS + FAR_PASSWORD), is_password)


def assigned_secrets_in(page: Page) -> Iterator[Found]:
    """Report every value that is named as a secret and looks like one."""
    low = page.low
    for keyword, names in _NAMES.items():
        if keyword in low:
            for name in names:
                if name.keyword in low and (name.is_secret is not is_made_up or page.has_digits):
                    yield from _values_of(name, page)
    if not low.isascii():
        yield from _values_of(_FAR, page)


def _values_of(name: _Name, page: Page) -> Iterator[Found]:
    text, low, kind = page.text, page.low, name.kind
    verdicts: dict[tuple[str, bool], bool] = {}  # what stands behind a name once often stands there again
    for found in name.expression.finditer(low):
        group = found.lastindex
        assert group is not None
        start, end = found.span(group)
        given = text[start:end]
        is_quoted = group != BARE_GROUP
        if not is_quoted:
            given = given.rstrip(_ENDS_OF_SENTENCES)
        if kind == "key" and not _is_named_key(low, found.start()):
            continue
        is_secret = verdicts.get((given, is_quoted))
        if is_secret is None:
            is_secret = verdicts[given, is_quoted] = name.is_secret(given, is_quoted=is_quoted)
        if is_secret:
            yield start, start + len(given), kind


def _is_named_key(low: str, at: int) -> bool:
    before = low[max(0, at - _LONGEST_KEY_OF) : at]
    return before.rstrip(_JOINTS).endswith(_KEY_OF) or before.endswith(("?", "&"))


def _may_name_a_secret(name: str) -> bool:
    low = name.lower()
    return not low.isascii() or any(keyword in low for keyword in _NAMES)


def kind_of_named(name: str, given: str) -> str | None:
    """Say which kind of secret `given` is as the field `name` of an object, if it is one."""
    if not given or "\n" in given or len(given) > _MOST_IN_FIELD or not _may_name_a_secret(name):
        return None
    quoted = given.replace("\\", "").replace('"', "")
    page = Page(f'"{name[:_MOST_IN_FIELD]}": "{quoted}"')
    return next((kind for _, end, kind in assigned_secrets_in(page) if end == len(page.text) - 1), None)
