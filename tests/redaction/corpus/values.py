"""Secret values, made from templates such as `ghp_{alnum:36}` and a seed: none stands in the repository."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable, Mapping
from random import Random

from plainmind.base.value import value

BASE32 = string.ascii_uppercase + "234567"
LOWER_AND_DIGITS = string.ascii_lowercase + string.digits
ALNUM = string.ascii_letters + string.digits
SYMBOLS = "!#$%*+=?_-"
ALPHABETS: Mapping[str, str] = {
    "alnum": ALNUM,
    "alpha": string.ascii_letters,
    "lower": string.ascii_lowercase,
    "lowalnum": LOWER_AND_DIGITS,
    "upalnum": string.ascii_uppercase + string.digits,
    "digit": string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "base32": BASE32,
    "lowbase32": BASE32.lower(),
    "base64": ALNUM + "+/",
    "base64url": ALNUM + "-_",
    "django": LOWER_AND_DIGITS + "!@#$%^&*(-_=+)",
}
_WORD_LIST = """
amber anchor autumn badger basket bottle bridge bucket candle canyon carpet castle cattle circus clover copper cotton
desert dragon drummer eagle ember falcon feather fiddle forest galaxy garlic ginger glacier granite hammer harbor helmet
hollow island jacket jungle kettle lantern lemon lizard magnet maple marble meadow mirror mustard needle noodle nutmeg
oyster paddle pepper pickle pigeon planet pocket puzzle rabbit ribbon rocket saddle salmon sandal saturn shovel silver
spider sponge staple summer sunset temple thunder ticket tiger tunnel turtle velvet violin walnut whisper willow window
winter wizard yellow zebra zipper
apfel blume brücke drache fenster garten himmel katze kirsche lampe nebel sommer tasse vogel wolke
arena barco cielo fuego gato lluvia luna mariposa naranja playa queso sombra tierra verano viento
"""
WORDS = tuple(_WORD_LIST.split())
PLAIN_WORDS = tuple(word for word in WORDS if word.isascii())
_FIELD = re.compile(r"\{(~?)([A-Za-z0-9]+)(?::(\d+)(?:-(\d+))?)?\}")
_LINE = 64  # characters of a line of a key file


@value
class Value:
    """A secret as it is written down; from `start` to `end` it must not be seen, around that it is public."""

    text: str
    start: int
    end: int

    @property
    def secret(self) -> str:
        """What must be hidden."""
        return self.text[self.start : self.end]


def is_template_of_values(text: str) -> bool:
    """Whether every field of this template is known, and one of them is secret."""
    found = list(_FIELD.finditer(text))
    return any(not one[1] for one in found) and all(one[2] in ALPHABETS or one[2] in _MADE for one in found)


def literal_beginning(template: str) -> str:
    """The fixed text that every value of this template begins with."""
    return _FIELD.split(template, maxsplit=1)[0]


def make(template: str, chance: Random) -> Value:
    """Return a value of this template."""
    text, start, end, last = "", -1, 0, 0
    for field in _FIELD.finditer(template):
        text += template[last : field.start()]
        last = field.end()
        made = _field(field[2], int(field[3] or 0), int(field[4] or field[3] or 0), chance)
        if not field[1]:
            start = len(text) if start < 0 else start
            end = len(text) + len(made)
        text += made
    return Value(text=text + template[last:], start=max(start, 0), end=end)


def fill(text: str, chance: Random) -> str:
    """Return the text with its fields of random characters filled; other braces stay."""
    return _FIELD.sub(
        lambda field: (
            _field(field[2], int(field[3] or 0), int(field[4] or field[3] or 0), chance)
            if (field[3] and field[2] in ALPHABETS) or field[2] == "uuid"
            else field[0]
        ),
        text,
    )


def _field(name: str, least: int, most: int, chance: Random) -> str:
    if name in ALPHABETS:
        return _some(ALPHABETS[name], chance.randint(least, most), chance)
    return _MADE[name](least, chance)


def _some(alphabet: str, length: int, chance: Random) -> str:
    return "".join(chance.choices(alphabet, k=length))


def _uuid(_length: int, chance: Random) -> str:
    a, b, c, d, e = (_some("0123456789abcdef", length, chance) for length in (8, 4, 3, 3, 12))
    return f"{a}-{b}-4{c}-a{d}-{e}"


def _words(length: int, chance: Random) -> str:
    return " ".join(chance.sample(WORDS, length))


def _dashed_words(length: int, chance: Random) -> str:
    return "-".join(chance.sample(WORDS, length))


def _password(_length: int, chance: Random) -> str:
    one, two = chance.sample(PLAIN_WORDS, 2)
    symbol = chance.choice(SYMBOLS)
    return chance.choice(
        (
            f"{one.title()}{_some(string.digits, chance.randint(2, 4), chance)}!",
            f"{one.title()}{symbol}{two}{_some(string.digits, 2, chance)}",
            f"{one}{_some(string.digits, 3, chance)}{symbol}{two.title()}",
            f"{_some(ALNUM, 5, chance)}{symbol}{_some(string.digits, 2, chance)}{_some(ALNUM, 5, chance)}",
            f"{_some(string.ascii_letters, 3, chance)}{_some(ALNUM + SYMBOLS, 12, chance)}{one[0]}",
            f"{_some(LOWER_AND_DIGITS, 7, chance)}{_some(string.digits, 2, chance)}",
        )
    )


def _url_password(_length: int, chance: Random) -> str:
    one, two = chance.sample(PLAIN_WORDS, 2)
    return chance.choice(
        (
            f"{one.title()}{_some(string.digits, 4, chance)}",
            f"{one}-{two}-{_some(string.digits, 2, chance)}",
            _some(ALNUM, chance.randint(12, 24), chance),
            f"{_some(ALNUM, 8, chance)}!{_some(ALNUM, 3, chance)}",
        )
    )


def _weak_password(_length: int, chance: Random) -> str:
    return f"{chance.choice(PLAIN_WORDS)}{_some(string.digits, chance.randint(2, 4), chance)}"


def _percent_base64(length: int, chance: Random) -> str:
    return "".join(chance.choices([*ALNUM, "%2B", "%2F"], k=length))


def _pem(length: int, chance: Random) -> str:
    lines = [_some(ALPHABETS["base64"], _LINE, chance) for _ in range(length - 1)]
    return "\n".join(["MII" + lines[0][3:], *lines[1:], _some(ALPHABETS["base64"], 39, chance) + "="])


def _claims(_length: int, chance: Random) -> str:
    """The middle part of a JWT."""
    claims = {"sub": _some(string.digits, 10, chance), "jti": _uuid(0, chance), "iat": 1772619669}
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


_MADE: Mapping[str, Callable[[int, Random], str]] = {
    "uuid": _uuid,
    "words": _words,
    "dashwords": _dashed_words,
    "password": _password,
    "urlpassword": _url_password,
    "weakpassword": _weak_password,
    "base64pct": _percent_base64,
    "pem": _pem,
    "claims": _claims,
}
