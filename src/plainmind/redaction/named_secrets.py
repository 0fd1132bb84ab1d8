"""Secrets that their name gives away: `password = …`, `"api_key": "…"`, `密码：…`, `my password is swordfish`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.plausible import is_key, is_made_up, is_password

# --- how a value follows its name, as expressions on lower case ---

# Between a name and its value: the end of a quotation or of bold type, and an equals sign in one of its many forms; or
# what the secret is for. What has matched is not tried in another way: nothing would come of it but a longer search.
_SIGN = r"(?:=>|={1,3}+|:(?:=|[ \t]{0,2}+[&a-z\[\]|]{2,16}+[ \t]{0,2}+=|(?!:))|[：＝](?!:)|->|→)"
_IS = r"is|was|will be|ist|lautet|est|es|[éè]|era|jest|je"
_CHANGED = r"(?:is |was |has been )?(?:changed|set|reset|updated) to"
_WORDS = (
    r"[–—-] |(?=[\"'`])|value=(?=[\"'])|\([^()\r\n]{1,24}+\)[ \t]?[:=]"
    rf"|(?:{_IS}|{_CHANGED})(?: now)?+[: \t]"
    r"|(?:for|to|of|on|at)(?: [^\s:=|]{1,24}){1,4}?(?:[:=]| (?:is|was|[=–—-]) )"
)
# How one of the words begins: most that follow a name do not, and are passed over at once.
_OF_A_WORD = r"""(?=[–—"'`(acefhijlorstuvwéè-])"""
_EQUALS = (
    r"""(?>[\\"'`*_\])]{0,4}+"""
    rf"(?:{_SIGN}|[|>]|\((?=[\"'])|[ \t](?:[ \t]{{0,7}}+{_SIGN}|[ \t]?+[|>]|{_OF_A_WORD}(?:{_WORDS}))))"
)
# Where words are not spaced, or come in another order.
_FAR_EQUALS = (
    r"""["'`*]{0,3}+[ \t]{0,4}+(?:[:：=＝]|[是为為][:：]?|[はが은는]|[–—-] """
    r"|(?:هي|هو|היא|है|คือ|là|to|je|är) |(?<= )(?=[!-~]))"
)
_OPENING = r"""[ \t]{0,8}+[*_]{0,2}+[ \t]{0,2}+(?:[bfru]{1,2}(?=["']))?+"""
_QUOTED = (
    r"""\\["']([^"'\\\r\n]{4,2048}+)|"([^"\\\r\n]{0,2048}+(?:\\.[^"\\\r\n]{0,512}+){0,16}+)"""
    r"""|'([^'\\\r\n]{4,2048}+)|`([^`\r\n]{4,512}+)|[“‘「『]([^”’」』\r\n]{4,256}+)"""
)
_BARE_GROUP = 6  # those before it are the five sorts of quotation
# A comma or an ampersand belongs to a value unless white space or the next name follows.
_FIRST = r"""[^\s"'`<>,;&|“”‘’「」『』，。；、（）(\[{=:\\]"""
_OTHERS = r"""[^\s"'`<>,;&|“”‘’「」『』，。；、（）\\]"""
_FURTHER = (
    r"""(?:(?:[,;](?![a-z0-9_.\- ]{0,40}[=:])|&(?!(?:quot|[lg]t|apos|#[0-9]{2});|[a-z0-9_.-]{0,40}[=:]))"""
    r"""[^\s"'`<>,;&|\\]{1,512}+){0,8}+"""
)
# An example, not worth a closer look.
_A_NAME = r"""(?!\\?["'`]?(?:new|my|old|test|user)?_?(?:pass(?:word|wd)|secret|token)[\s"'`=:,;)\\])"""
_A_WORD = r"""(?![a-z]{1,64}+[.:!?)\]}*_-]{0,3}+(?:[\s"'`<>|]|$|[,;&](?:\s|$|[a-z0-9_.\- ]{0,40}[=:])))"""
_BARE_PASSWORD = rf"({_A_WORD}{_FIRST}{_OTHERS}{{3,2048}}+{_FURTHER})"
_PASSWORD = rf"{_OPENING}{_A_NAME}(?:{_QUOTED}|{_BARE_PASSWORD})"
_KEY = rf"{_OPENING}(?:{_QUOTED}|({_FIRST}{_OTHERS}{{9,4096}}+{_FURTHER}))"
_FAR_PASSWORD = (
    rf"{_OPENING}(?=[!-~“‘「『]){_A_NAME}(?:{_QUOTED}|([!#-&*+./-9?@^_a-z~-][!#-&*+.-:=?@^_a-z~-]{{3,256}}+))"
)
# `password2`, `password_prod`.
_SUFFIX = r"(?:[_-]?(?:[0-9]{1,3}|prod|dev|test|staging|live|value|text|plain|confirm|b64|base64))?+"


# --- names ---

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
_MADE_UP = rf"{_OPENING}(?=[^\s0-9]{{0,64}}+[0-9])(?:{_QUOTED}|{_BARE_PASSWORD})"


@value
class _Name:
    kind: str
    keyword: str
    expression: re.Pattern[str]
    is_secret: Callable[..., bool]  # given a value and `is_quoted`


def _password(keyword: str, name: str) -> _Name:
    return _Name("password", keyword, pattern(name + _equals(keyword) + _PASSWORD), is_password)


def _doubtful(keyword: str, name: str, kind: str = "password") -> _Name:
    """A name for a password that is more often something else: only what no person would say is one."""
    return _Name(kind, keyword, pattern(f"{name}{_MADE_UP}"), is_made_up)


def _key(kind: str, keyword: str, name: str) -> _Name:
    return _Name(kind, keyword, pattern(name + _equals(keyword) + _KEY), is_key)


def _equals(flag: str) -> str:
    """What stands between a name and its value; behind a flag of a command line, a space."""
    return f"(?:{_SUFFIX}(?=[^a-z0-9]){_EQUALS}| (?<=-{flag} )(?!-))"


# Alone on the next line, or as the settings of a container have it.
_NEXT_LINE = r"""["'*]{0,3}+[ \t]?:?["'*]{0,3}+[ \t]{0,2}\r?\n[ \t]{0,12}+(?:value[ \t]?:[ \t]?)?+"""
_VALUE_BELOW = r"""["']?\r?\n[ \t]{0,12}+value: """
# By a word that is in all of them: looking for one word instead of three takes next to no time.
_NAMES: dict[str, tuple[_Name, ...]] = {
    "pass": (
        _password("pass", "pass(?:w(?:or[dt]|d)s?|ord|phrases?|codes?|(?<=[_-]pass)|(?<![a-z]pass)(?==))"),
        _Name("password", "-pass", pattern(f"-pass(?:word|wd|phrase) (?!-){_PASSWORD}"), is_password),
        _doubtful(
            "pass",
            r"pass(?:(?<=/pass)(?:word)?s?[ \t]?[:=][ \t]?[a-z0-9_.@-]{2,64}[ \t]?[/:]"
            rf"""|(?<![a-z0-9]pass)["'\\*]{{0,3}}+[ \t]?:(?!:)|w(?:or)?d(?: |{_NEXT_LINE}))""",
        ),
        _password("mot de passe", "mot de passe"),
        _Name("password", "login ", pattern(rf"login [^\s]{{1,64}} password {_PASSWORD}"), is_password),
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
        _Name("password", "identified by ", pattern(f"identified by {_PASSWORD}"), is_password),
    ),
    "value: ": (
        _Name("secret", "value: ", pattern(rf"(?:token|secret|key|credentials){_VALUE_BELOW}{_KEY}"), is_key),
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
_FAR = _Name("password", "", pattern(_FAR_NAMES + _FAR_EQUALS + _FAR_PASSWORD), is_password)


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
        is_quoted = group != _BARE_GROUP
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
