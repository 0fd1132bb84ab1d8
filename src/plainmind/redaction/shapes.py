"""Secrets known by a word within them or before them: webhooks, cards, keys in base64, shared signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found, Page


@value
class Shape:
    """An expression whose only group is the secret; it is tried when its keyword is in the text."""

    kind: str
    keyword: str
    expression: re.Pattern[str]
    before: int = 0  # characters in front of the group that are a part of the secret


def is_card_number(text: str) -> bool:
    """Whether the digits are those of a payment card: a known issuer's, with the right check digit."""
    digits = text.encode().translate(None, b" -")
    if (sum(digits[-1::-2]) + sum(digits[-2::-2].translate(_DOUBLED)) - 48 * len(digits)) % 10:
        return False
    return len(set(digits)) > 1 and _ISSUERS.fullmatch(digits.decode()) is not None


# Twice a digit, and the digits of that added up: 7 becomes 14 becomes 5.
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")
_ISSUERS = pattern(
    r"4[0-9]{12}(?:[0-9]{3}){0,2}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}"
)


def _preceded(width: int) -> str:
    """Look back over `width` characters, to where no letter or digit may stand, unless it is the end of an escape."""
    over = f".{{{width}}}"
    return rf"(?:(?<![0-9A-Za-z_]{over})|(?<=\\[nrt]{over})|(?<=\x1b\[[0-9]{{2}}m{over}))"


_GROUPS_OF_DIGITS = (
    rf"[2-6]{_preceded(1)}(?<![0-9][.,].)(?<![0-9A-Za-z][+/-].)"
    r"(?:[0-9]{12,18}+|[0-9]{3}(?:[ -][0-9]{4}){3}(?:[ -]?[0-9]{3})?|[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})"
    r"(?![0-9A-Za-z_]|[.,-][0-9])"
)

_CARD = pattern(_GROUPS_OF_DIGITS)
_LEAST_DIGITS = b"0" * 13
_AS_DIGIT_OR_BREAK = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))

# An expression begins with its keyword: then the search goes from one to the next without looking at what lies
# between. The sign before a group of shapes is in all their keywords: looking for one sign, or for one word instead of
# three, takes next to no time.
SHAPES: dict[str, tuple[Shape, ...]] = {
    "hook": (
        Shape(
            "slack",
            "hooks.slack.com/",
            pattern(r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/-]{20,200})"),
        ),
        Shape("discord", "/api/webhooks/", pattern(r"/api/webhooks/[0-9]{15,22}/([A-Za-z0-9_-]{40,100})")),
        Shape(
            "microsoft",
            "webhook.office.com/",
            pattern(r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{40,400})"),
        ),
    ),
    "~": (
        Shape(
            "azure",
            "Q~",
            pattern(r"(Q~(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~-])"),
            before=4,
        ),
    ),
    "//0": (Shape("google", "1//0", pattern(rf"(1//0{_preceded(4)}[A-Za-z0-9_-]{{30,200}})")),),
    "_": (
        Shape("stripe", "whsec_", pattern(r"(whsec_[A-Za-z0-9+/=_-]{24,100})")),
        Shape("sentry", "sntrys_", pattern(r"(sntrys_[A-Za-z0-9+/=_-]{40,500})")),
        Shape("grafana", "glc_", pattern(rf"(glc_{_preceded(4)}[A-Za-z0-9+/=]{{40,500}})")),
        Shape("fly", "fm1", pattern(r"(fm1[ar]_[A-Za-z0-9+/=_-]{60,2000})")),
        Shape("fly", "fm2_", pattern(r"(fm2_[A-Za-z0-9+/=_-]{60,2000})")),
        Shape("onepassword", "ops_eyJ", pattern(r"(ops_eyJ[A-Za-z0-9+/=_-]{100,2000})")),
    ),
    "$": (
        Shape(
            "braintree",
            "access_token$",
            pattern(r"access_token\$[a-z]{4,12}\$([0-9a-z]{16}\$[0-9a-f]{32})"),
        ),
    ),
    "=": (
        Shape("azure", "sig=", pattern(r"sig=(?<=[?&;]sig=)([A-Za-z0-9%+/=_-]{40,120})")),
        Shape(
            "aws",
            "Signature=",
            pattern(r"Signature=(?<=[?&-]Signature=)([0-9a-f]{64}|[A-Za-z0-9%+/=~_-]{28,700})"),
        ),
    ),
}
# These are a part of a long stretch.
STRETCHED_SHAPES = (
    Shape(
        "terraform",
        ".atlasv1.",
        pattern(r"(\.atlasv1\.(?<=[A-Za-z0-9]{14}\.atlasv1\.)[A-Za-z0-9_-]{60,80})"),
        before=14,
    ),
    Shape(
        "mailchimp",
        "-us",
        pattern(rf"(-us(?<=[0-9a-f]{{32}}-us){_preceded(35)}[0-9]{{1,2}})(?![0-9A-Za-z])"),
        before=32,
    ),
)


def shapes_in(page: Page) -> Iterator[Found]:
    """Report every secret that one of the shapes fits, and every payment card."""
    text = page.text
    shapes = [shape for sign, some in SHAPES.items() if sign in text for shape in some]
    for shape in (*shapes, *STRETCHED_SHAPES) if page.stretches else shapes:
        if shape.keyword in text:
            for found in shape.expression.finditer(text):
                yield found.start(1) - shape.before, found.end(1), shape.kind
    if _has_many_digits(page):
        is_card = cache(is_card_number)
        for found in _CARD.finditer(text):
            if is_card(found[0]):
                yield found.start(), found.end(), "card"


def _has_many_digits(page: Page) -> bool:
    """Whether as many digits as the shortest card has follow each other, with or without something between them."""
    return _LEAST_DIGITS in page.in_bytes.translate(_AS_DIGIT_OR_BREAK, b" -")
