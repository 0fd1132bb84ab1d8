"""Whether a value that stands behind `password:` or `token =` is a secret: not prose, code, a path or a stand-in."""

from __future__ import annotations

from commonplace.pattern import pattern
from commonplace.text.redaction.stand_ins import is_stand_in

_LEAST_PASSWORD = 4
_LEAST_DIGITS = 6
_LEAST_KEY = 10
_ENOUGH = 512
_LEAST_LETTERS = 16
_LEAST_BROKEN = 20  # for one that dashes cut into short stretches
# What a program computes, a file, an address.
_DOTTED_NAME = pattern(
    r"[A-Za-z_$][A-Za-z0-9_]{0,64}(?:(?:\.|::|->)[A-Za-z_$][A-Za-z0-9_]{0,64}){1,8}[\[({;).]{0,4}$"
)
_CODE = pattern(
    r"[A-Za-z_$][A-Za-z0-9_.]{0,64}[\[({]"
    r"|(?:\.{1,2}|~|[A-Za-z]:)[/\\]|/[A-Za-z_.-]{1,32}(?:/|$)"
    r"|[A-Za-z][A-Za-z0-9+.]{1,16}://"
    r"|[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,64}(?:\.[A-Za-z]{2,12}){1,3}$"
    r"|(?:[A-Za-z0-9_.-]{1,64}/){1,16}[A-Za-z0-9_-]{1,64}\.[A-Za-z]{1,5}$"
)
# A date, a time, a version.
_NUMBER = pattern(r"v?[0-9]{1,4}(?:[.:/-][0-9]{1,4}){1,6}[a-z]?(?:t[0-9:.]{4,16}z?)?$", 2)
# `testpassword`, `new_password1`: a name for the thing, which examples put in its place.
_NAME = pattern(
    r"[a-z_-]{0,32}(?:pass(?:word|wd|phrase)|pwd|secret|token|api_?key)[a-z_-]{0,32}[0-9]{0,3}[=:]?$", 2
)
_NUMBERED = pattern(r"[0-9]{1,4}(?:[-+][a-z]{1,16}(?:-[a-z]{1,16}){0,3}|[a-z]{0,6})$")
_WITHOUT_JOINTS = str.maketrans("", "", "-_./+:")
_UUID = pattern(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", 2)
_STRETCH = pattern(r"[A-Za-z0-9]{8,}+")
_TURN = pattern(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_TURN_OF_CASE = pattern(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")


def is_password(value: str, *, is_quoted: bool) -> bool:
    """Whether somebody chose this as a password: short is enough, but a bare word is a word."""
    if len(value) < _LEAST_PASSWORD or " " in value or (not is_quoted and value.isalpha()):
        return False
    if not value.isalnum() and (_is_code(value) or _DOTTED_NAME.match(value)):
        return False
    if is_stand_in(value) or _NAME.match(value):
        return False
    if is_quoted:
        return True
    if value.isdecimal():
        return len(value) >= _LEAST_DIGITS
    return not value.translate(_WITHOUT_JOINTS).isalpha() and not _NUMBERED.match(value)


def is_key(value: str) -> bool:
    """Whether a machine made this, and it is no path or address."""
    if not is_random(value) or is_stand_in(value) or _is_code(value):
        return False
    return not _DOTTED_NAME.match(value) or any(len(part) >= _LEAST_LETTERS for part in value.split("."))


def is_random(value: str) -> bool:
    """Whether a machine made this: letters and digits in turns, or letters that change case all the time."""
    if len(value) < _LEAST_KEY:
        return False
    if any(map(_is_random, _STRETCH.findall(value[:_ENOUGH]))) or _UUID.match(value):
        return True
    return len(value) >= _LEAST_BROKEN and _turns_often(value[:_ENOUGH])


def _is_code(value: str) -> bool:
    return _CODE.match(value) is not None or _NUMBER.match(value) is not None


def _is_random(stretch: str) -> bool:
    if len(_TURN.findall(stretch)) > 1:
        return True
    return len(stretch) >= _LEAST_LETTERS and _turns_often(stretch)


def _turns_often(text: str) -> bool:
    return (len(_TURN.findall(text)) + len(_TURN_OF_CASE.findall(text))) * 3 >= len(text)
