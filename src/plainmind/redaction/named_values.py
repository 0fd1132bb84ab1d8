"""How a value follows its name, as expressions on lower case: `name = value`, `"name": "value"`, `name is value`."""

from __future__ import annotations

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
EQUALS = (
    r"""(?>[\\"'`*_\])]{0,4}+"""
    rf"(?:{_SIGN}|[|>]|\((?=[\"'])|[ \t](?:[ \t]{{0,7}}+{_SIGN}|[ \t]?+[|>]|{_OF_A_WORD}(?:{_WORDS}))))"
)
# Where words are not spaced, or come in another order.
FAR_EQUALS = (
    r"""["'`*]{0,3}+[ \t]{0,4}+(?:[:：=＝]|[是为為][:：]?|[はが은는]|[–—-] """
    r"|(?:هي|هو|היא|है|คือ|là|to|je|är) |(?<= )(?=[!-~]))"
)
OPENING = r"""[ \t]{0,8}+[*_]{0,2}+[ \t]{0,2}+(?:[bfru]{1,2}(?=["']))?+"""
QUOTED = (
    r"""\\["']([^"'\\\r\n]{4,2048}+)|"([^"\\\r\n]{0,2048}+(?:\\.[^"\\\r\n]{0,512}+){0,16}+)"""
    r"""|'([^'\\\r\n]{4,2048}+)|`([^`\r\n]{4,512}+)|[“‘「『]([^”’」』\r\n]{4,256}+)"""
)
BARE_GROUP = 6  # those before it are the five sorts of quotation
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
BARE_PASSWORD = rf"({_A_WORD}{_FIRST}{_OTHERS}{{3,2048}}+{_FURTHER})"
PASSWORD = rf"{OPENING}{_A_NAME}(?:{QUOTED}|{BARE_PASSWORD})"
KEY = rf"{OPENING}(?:{QUOTED}|({_FIRST}{_OTHERS}{{9,4096}}+{_FURTHER}))"
FAR_PASSWORD = (
    rf"{OPENING}(?=[!-~“‘「『]){_A_NAME}(?:{QUOTED}|([!#-&*+./-9?@^_a-z~-][!#-&*+.-:=?@^_a-z~-]{{3,256}}+))"
)
# `password2`, `password_prod`.
SUFFIX = r"(?:[_-]?(?:[0-9]{1,3}|prod|dev|test|staging|live|value|text|plain|confirm|b64|base64))?+"
