"""Secrets that their form gives away: tokens of vendors, webhooks, payment cards, private keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found
from plainmind.redaction.page import Page
from plainmind.redaction.plausible import is_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import TypeAlias

    # Kind, beginnings, a class of characters, and how many of them at least and at most.
    Token: TypeAlias = tuple[str, str, str, int, int]
    # Kind, beginnings, and an expression for the rest.
    ShapedToken: TypeAlias = tuple[str, str, str]


# --- tokens that say whose they are: how they begin, what they are made of, how long they are ---

_HEX = "[0-9a-f]"
_ANY_HEX = "[0-9A-Fa-f]"
_PLAIN = "[A-Za-z0-9]"
_CAPITALS = "[A-Z0-9]"
_WORD = "[A-Za-z0-9_]"
_DASHED = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/=_-]"

# The least length is a little below what the vendors give out today: they change it without a word.
TOKENS: tuple[Token, ...] = (
    # Code hosting
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _PLAIN, 30, 255),
    ("github", "github_pat_", _WORD, 40, 255),
    ("atlassian", "ATATT3 ATCTT3", "[A-Za-z0-9_=-]", 60, 400),
    ("atlassian", "ATBB", _PLAIN, 28, 40),
    # Clouds
    ("aws", "AKIA ASIA ABIA ACCA", _CAPITALS, 16, 16),
    ("matrix", "syt_", _WORD, 24, 100),
    ("gitlab", "GR1348941", _DASHED, 20, 40),
    ("google", "AIza", _DASHED, 35, 35),
    ("google", "GOCSPX-", _DASHED, 24, 40),
    ("google", "ya29.", _DASHED, 20, 2048),
    ("alibaba", "LTAI", _PLAIN, 16, 30),
    ("tencent", "AKID", _PLAIN, 30, 40),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", _HEX, 64, 64),
    ("heroku", "HRKU-", _DASHED, 30, 80),
    ("netlify", "nfp_", _PLAIN, 32, 60),
    ("fly", "fo1_", _DASHED, 36, 60),
    ("render", "rnd_", _PLAIN, 24, 40),
    ("supabase", "sbp_", _HEX, 40, 40),
    ("supabase", "sb_secret_", _DASHED, 20, 60),
    ("neon", "napi_", _PLAIN, 48, 72),
    ("databricks", "dapi", _HEX, 32, 32),
    ("vault", "hvs. hvb. hvr.", _DASHED, 24, 300),
    ("pulumi", "pul-", _HEX, 40, 40),
    ("tailscale", "tskey-", _DASHED, 20, 100),
    # Models
    ("anthropic", "sk-ant-", _DASHED, 32, 300),
    ("openrouter", "sk-or-", _DASHED, 32, 100),
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None-", _DASHED, 20, 300),
    ("openai", "sess-", _PLAIN, 32, 60),
    ("groq", "gsk_", _PLAIN, 40, 80),
    ("xai", "xai-", _PLAIN, 60, 120),
    ("huggingface", "hf_ api_org_", _PLAIN, 30, 60),
    ("replicate", "r8_", _PLAIN, 30, 60),
    ("perplexity", "pplx-", _PLAIN, 36, 70),
    ("jina", "jina_", _DASHED, 50, 80),
    ("together", "tgp_v1_", _DASHED, 36, 60),
    ("fireworks", "fw_", _PLAIN, 22, 40),
    ("nvidia", "nvapi-", _DASHED, 50, 90),
    ("cerebras", "csk-", _PLAIN, 40, 60),
    ("elevenlabs", "sk_", _HEX, 48, 48),
    ("pinecone", "pcsk_", _WORD, 50, 100),
    ("langsmith", "lsv2_pt_ lsv2_sk_", _WORD, 40, 60),
    ("tavily", "tvly-", _DASHED, 20, 60),
    ("firecrawl", "fc-", _HEX, 32, 32),
    # Packages
    ("npm", "npm_", _PLAIN, 36, 36),
    ("pypi", "pypi-AgE", _DASHED, 50, 400),
    ("rubygems", "rubygems_", _HEX, 48, 48),
    ("docker", "dckr_pat_ dckr_oat_", _DASHED, 20, 64),
    # Messages
    ("slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxe- xapp-", _DASHED, 20, 300),
    ("slack", "xoxe.xoxb- xoxe.xoxp-", _DASHED, 20, 300),
    ("slack", "xoxd-", "[A-Za-z0-9%+/=_-]", 20, 400),
    ("mailgun", "key-", _HEX, 32, 32),
    ("twilio", "SK", _HEX, 32, 32),
    # Payment and shops
    ("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", _PLAIN, 20, 247),
    ("square", "sq0atp- sq0csp-", _DASHED, 22, 60),
    ("square", "EAAA", _DASHED, 56, 64),
    ("facebook", "EAA", _PLAIN, 80, 400),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", _ANY_HEX, 32, 32),
    # Work
    ("notion", "ntn_", _PLAIN, 40, 60),
    ("notion", "secret_", _PLAIN, 43, 43),
    ("linear", "lin_api_ lin_oauth_", _PLAIN, 36, 70),
    ("figma", "figd_ figu_", _DASHED, 36, 60),
    ("hubspot", "pat-na1- pat-na2- pat-eu1-", _DASHED, 36, 36),
    ("contentful", "CFPAT-", _DASHED, 40, 50),
    ("grafana", "glsa_", _WORD, 36, 60),
    ("newrelic", "NRAK-", _CAPITALS, 24, 32),
    ("sentry", "sntryu_", _HEX, 64, 64),
    # Others
    ("buildkite", "bkua_ bkct_ bkaj_", _PLAIN, 30, 80),
    ("clojars", "CLOJARS_", _PLAIN, 50, 70),
    ("dynatrace", "dt0c01. dt0s01. dt0s16.", "[A-Z0-9.]", 60, 110),
    ("easypost", "EZAK EZTK", _PLAIN, 50, 60),
    ("elastic", "essu_", _BASE64, 30, 120),
    ("frameio", "fio-u-", _DASHED, 50, 80),
    ("duffel", "duffel_test_ duffel_live_", _DASHED, 36, 60),
    ("langfuse", "sk-lf-", _DASHED, 30, 50),
    ("lob", "live_ test_", _HEX, 35, 35),
    ("nuget", "oy2", "[a-z0-9]", 43, 43),
    ("artifactory", "AKCp", _PLAIN, 60, 80),
    ("artifactory", "cmVmdGtu", _PLAIN, 50, 80),
    ("prefect", "pnu_ pnb_", _PLAIN, 36, 36),
    ("pubnub", "sec-c-", _DASHED, 36, 60),
    ("readme", "rdme_", _PLAIN, 60, 80),
    ("shippo", "shippo_live_ shippo_test_", _HEX, 40, 40),
    ("sourcegraph", "sgp_", _WORD, 40, 80),
    ("typeform", "tfp_", _DASHED, 40, 70),
    ("vault", "s.", _PLAIN, 24, 24),
    ("vk", "vk1.a.", _DASHED, 60, 300),
    ("wandb", "wandb_v1_", _WORD, 40, 120),
    ("yandex", "AQVN", _DASHED, 35, 40),
    ("clerk", "sk_prod_", _PLAIN, 20, 100),
    # Keys of people
    ("private-key", "AGE-SECRET-KEY-1", _CAPITALS, 58, 58),
    ("private-key", "xprv", _PLAIN, 100, 112),
)

SHAPED_TOKENS: tuple[ShapedToken, ...] = (
    (
        "gitlab",
        "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glagent- glimt- glffct- gloas-",
        r"[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    # A word such as `sk-learn-something` has no long stretch of letters and digits.
    ("openai", "sk-", r"(?:[A-Za-z0-9]{1,12}[_-]){0,3}[A-Za-z0-9]{20,64}(?![A-Za-z0-9_-])"),
    ("voyage", "pa-", r"(?=[a-z0-9_-]{0,20}[A-Z])[A-Za-z0-9_-]{40,48}(?![A-Za-z0-9_-])"),
    ("jwt", "eyJ", r"[A-Za-z0-9_-]{10,4096}(?:\.[A-Za-z0-9_-]{4,16384}){1,4}"),
    ("mapbox", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{16,40}"),
    ("sendgrid", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.-]{29,69}[A-Za-z0-9_-]"),
    ("airtable", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("doppler", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("postman", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("cloudflare", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,160}"),
    ("dropbox", "sl.", r"[A-Za-z0-9_-]{100,2048}"),
    # Its bot's number stands before the colon.
    ("telegram", "AA", r"(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{30,36}(?![A-Za-z0-9_-])"),
    ("twitter", "AAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%=]{60,200}"),
    ("discord", "M N O", r"[A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_-])"),
    ("discord", "mfa.", r"[A-Za-z0-9_-]{80,90}"),
)


# What may sit between the beginning of a stretch and that of a token: the end of an escape (`\n`, `\u003d`, `%3D`, a
# colour of a terminal), and marks of a list or of bold type.
_LEAD = pattern(r"(?:(?<=\\)(?:[nrt]|u[0-9a-fA-F]{4})|(?<=%)[0-9a-fA-F]{2}|(?<=[\[;])[0-9]{1,3}m)?+[_.\-]*+")
_JOINTS = "_.-"
_BEFORE_ESCAPE_END = "\\%[;"
_LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@value
class _Rule:
    kind: str
    beginning: str
    rest: re.Pattern[str]


def tokens_in(page: Page) -> Iterator[Found]:
    """Report every token of a known vendor."""
    text = page.text
    rules = _rules_by_beginning()
    for start_of_stretch in page.stretches:
        start = start_of_stretch
        if text[start - 1] in _BEFORE_ESCAPE_END or (text[start] in _JOINTS and text[start + 1] in _JOINTS):
            start = _LEAD.match(text, start).end()  # type: ignore[union-attr]  # it matches anything
        elif text[start] in _JOINTS:
            start += 1
        for rule in rules.get(text[start : start + 2], ()):
            if text.startswith(rule.beginning, start):
                found = rule.rest.match(text, start + len(rule.beginning))
                if found:
                    if "xxxxxx" not in found[0].lower():  # an example
                        yield start, found.end(), rule.kind
                    break


@cache
def _rules_by_beginning() -> Mapping[str, tuple[_Rule, ...]]:
    """Sort the rules by two first characters, longer beginnings before shorter ones."""
    rules = [
        _Rule(kind, beginning, pattern(f"{made_of}{{{least},{most}}}+(?!{made_of}|[A-Za-z0-9])"))
        for kind, beginnings, made_of, least, most in TOKENS
        for beginning in beginnings.split()
    ]
    for kind, beginnings, rest in SHAPED_TOKENS:
        rules += [_Rule(kind, beginning, pattern(rest)) for beginning in beginnings.split()]
    rules.sort(key=lambda rule: -len(rule.beginning))
    by_beginning: dict[str, list[_Rule]] = {}
    for rule in rules:
        followers = _LETTERS_AND_DIGITS if len(rule.beginning) == 1 else rule.beginning[1]
        for second in followers:
            by_beginning.setdefault(rule.beginning[0] + second, []).append(rule)
    return {beginning: tuple(some) for beginning, some in by_beginning.items()}


# --- secrets known by a word within them or before them ---


@value
class Shape:
    """An expression whose only group is the secret; it is tried when its keyword is in the text."""

    kind: str
    keyword: str
    expression: re.Pattern[str]
    before: int = 0  # characters in front of the group that are a part of the secret


# What a digit counts; twice that, and the digits of it added up: 7 becomes 14 becomes 5.
_ONCE = bytes.maketrans(b"0123456789", bytes(range(10)))
_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))
_ENDS_WITH_NOUGHT = bytes(byte % 10 == 0 for byte in range(256))
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

_GROUPS_OF_SIX = pattern(r"[0-9]{6}(?<![0-9A-Za-z-].{6})(?:-[0-9]{6}){7}(?![0-9-])")
_CARD = pattern(_GROUPS_OF_DIGITS)
_AS_DIGIT_OR_BREAK = bytes(
    ord("0") if byte in b"0123456789" else ord("-") if byte in b" -" else ord(".") for byte in range(256)
)
# One of these is in the number of every card, and the other in eight groups of six digits.
_ROWS_OF_DIGITS = (b"0" * 13, b"0000-0000-0000-", b"0000-000000-0000")
_SIX_AND_SIX = (b"000000-000000-000000-",)

# An expression begins with its keyword: then the search goes from one to the next without looking at what lies
# between. All of them are a part of a long word, and only those are searched for the keywords.
_SHAPES: tuple[Shape, ...] = (
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
    Shape(
        "azure",
        "Q~",
        pattern(r"(Q~(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~-])"),
        before=4,
    ),
    Shape("google", "1//0", pattern(rf"(1//0{_preceded(4)}[A-Za-z0-9_-]{{30,200}})")),
    Shape("stripe", "whsec_", pattern(r"(whsec_[A-Za-z0-9+/=_-]{24,100})")),
    Shape("sentry", "sntrys_", pattern(r"(sntrys_[A-Za-z0-9+/=_-]{40,500})")),
    Shape("grafana", "glc_", pattern(rf"(glc_{_preceded(4)}[A-Za-z0-9+/=]{{40,500}})")),
    Shape("fly", "fm1", pattern(r"(fm1[ar]_[A-Za-z0-9+/=_-]{60,2000})")),
    Shape("fly", "fm2_", pattern(r"(fm2_[A-Za-z0-9+/=_%-]{60,2000})")),
    Shape("onepassword", "ops_eyJ", pattern(r"(ops_eyJ[A-Za-z0-9+/=_-]{100,2000})")),
    Shape(
        "braintree",
        "access_token$",
        pattern(r"access_token\$[a-z]{4,12}\$([0-9a-z]{16}\$[0-9a-f]{32})"),
    ),
    Shape("link", "code=", pattern(r"code=(?<=[?&]code=)([A-Za-z0-9_-]{20,200}+)(?![A-Za-z0-9])")),
    Shape("azure", "sig=", pattern(r"sig=(?<=[?&;]sig=)([A-Za-z0-9%+/=_-]{40,120})")),
    Shape(
        "aws",
        "Signature=",
        pattern(r"Signature=(?<=[?&-]Signature=)([0-9a-f]{64}|[A-Za-z0-9%+/=~_-]{28,700})"),
    ),
)
# These are a part of a long stretch.
_STRETCHED_SHAPES = (
    Shape("link", "/private-", pattern(r"/private-([0-9a-f]{32})")),
    Shape("aws", "ABSK", pattern(rf"(ABSK{_preceded(4)}[A-Za-z0-9+/=_-]{{60,400}}+)")),
    Shape("aws", "IQoJb3JpZ2lu", pattern(r"(IQoJb3JpZ2lu[A-Za-z0-9+/=_-]{60,4096}+)")),
    Shape("google", ":APA91b", pattern(r"(:APA91b[A-Za-z0-9_-]{100,200})"), before=11),
    Shape(
        "private-key",
        "LS0tLS1CRUdJTi",
        pattern(
            "(LS0tLS1CRUdJTi(?:BQUklWQVRF|BFQyBQUklWQVRF|BSU0EgUFJJVkFURS|BPUEVOU1NI|BFTkNSWVBURUQ|BQR1AgUFJJVkFURS"
            "|BEU0EgUFJJVkFURS)[A-Za-z0-9+/=]{40,16384}+)"
        ),
    ),
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
    words = page.long_words
    shapes = (*_SHAPES, *_STRETCHED_SHAPES) if page.stretches else _SHAPES
    for shape in shapes if words else ():
        if not page.lacks(shape.keyword.lower()) and shape.keyword in words:
            for found in shape.expression.finditer(text):
                yield found.start(1) - shape.before, found.end(1), shape.kind
    if page.has_digits:
        alike = page.in_bytes.translate(_AS_DIGIT_OR_BREAK)
        for start, end in _blocks_with(_SIX_AND_SIX, alike):
            for found in _GROUPS_OF_SIX.finditer(text, start, end + _LONGEST_ROW):
                yield found.start(), found.end(), "recovery-key"
        for start, end in _blocks_with(_ROWS_OF_DIGITS, alike):
            yield from _cards_in(text, start, end)


def _blocks_with(rows: Iterable[bytes], alike: bytes) -> Iterator[tuple[int, int]]:
    """Report where rows of digits begin, to a few hundred characters: a text that is full of them is one piece."""
    blocks = bytearray((len(alike) >> _BLOCK) + 1)
    for row in rows:
        at = alike.find(row)
        while at >= 0:
            block = at >> _BLOCK
            blocks[block] = 1
            at = alike.find(row, block + 1 << _BLOCK)
    first = blocks.find(1)
    while first >= 0:
        last = blocks.find(0, first)
        last = len(blocks) if last < 0 else last
        yield max(0, (first << _BLOCK) - _LONGEST_ROW), last << _BLOCK
        first = blocks.find(1, last)


_BLOCK = 8  # two to the power of this: the characters that are told of together
_LONGEST_ROW, _MOST_DIGITS = 64, 20


def _cards_in(text: str, start: int, end: int) -> Iterator[Found]:
    """Report the numbers of cards that begin between two places."""
    cards = list(_CARD.finditer(text, start, end + _LONGEST_ROW))
    while cards and cards[-1].start() >= end:
        cards.pop()
    if not cards:
        return
    numbers = "\n".join([found[0] for found in cards]).replace(" ", "").replace("-", "").split("\n")
    for at in _with_right_check_digit(numbers):
        if len(set(numbers[at])) > 1 and _ISSUERS.fullmatch(numbers[at]):
            yield *cards[at].span(), "card"


def _with_right_check_digit(numbers: Sequence[str]) -> Iterator[int]:
    """Say which of these numbers have it: all are added up at once, digit by digit, each in a byte of its own."""
    digits = "".join([number.zfill(_MOST_DIGITS) for number in numbers]).encode()
    total = 0
    for place in range(_MOST_DIGITS):
        counts = _ONCE if (_MOST_DIGITS - place) % 2 else _DOUBLED
        total += int.from_bytes(digits[place::_MOST_DIGITS].translate(counts), "big")
    sums = total.to_bytes(len(numbers), "big").translate(_ENDS_WITH_NOUGHT)
    at = sums.find(1)
    while at >= 0:
        yield at
        at = sums.find(1, at + 1)


# --- the secrets of AWS, which nothing but an id in the neighbourhood tells from other long words ---

_AWS_ID = pattern(r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_AWS_SECRET = pattern(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_NEAR_AWS_ID = 300


def secrets_of_aws_in(page: Page) -> Iterator[Found]:
    """Report what has the length and the signs of such a secret and stands near an id."""
    text = page.text
    if not page.stretches or ("IA" not in text and "ACCA" not in text):
        return
    passed = 0
    for found in _AWS_ID.finditer(text):
        start = max(passed, found.start() - _NEAR_AWS_ID)
        passed = found.end() + _NEAR_AWS_ID
        for secret in _AWS_SECRET.finditer(text, start, passed):
            if is_key(secret[0]) and not _HEXADECIMAL.fullmatch(secret[0]):
                yield *secret.span(), "aws"


_HEXADECIMAL = pattern("[0-9a-f]{40}|[0-9A-F]{40}")


# --- private keys: PEM and PGP blocks, whole or cut off at either end, and bare base64 ---

_PRIVATE_KEY = "private-key"
_MOST_IN_KEY = 32_768  # characters between two borders
_LEAST_IN_KEY = 32
# Of the last dashes some may be missing.
_BORDER = pattern(
    r"----(?:- ?| )?(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?(?: ?-{1,5})?",
)
_A_LINE = pattern(rf"[A-Za-z0-9+/=]{{{_LEAST_IN_KEY}}}")
# Lines of base64, and between them whatever a quotation, a diff, a list of strings or an escape puts there. A last
# line that is short counts when it ends as base64 does, or when the text is over.
_BETWEEN = r"(?:[ \t\r\n>|+#*\"',-]|\\[nrt])*+"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\r\n\\]{0,200}+"
_LINES_SOURCE = (
    rf"(?:{_BETWEEN}(?:[A-Za-z0-9+/]{{16,}}+={{0,2}}|{_HEADER}))*+"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/]{{1,15}}(?:={{1,2}}|(?=\s*+\Z)))?+"
)
_LINES = pattern(_LINES_SOURCE)
# The same, read from the end of the text to its beginning.
_BETWEEN_BACKWARDS = r"[ \t\r\n>|+#*\"',\\-]*+"  # the letter of an escape passes for base64
_LINES_BACKWARDS = pattern(
    rf"{_BETWEEN_BACKWARDS}={{0,2}}[A-Za-z0-9+/]{{1,76}}+(?:{_BETWEEN_BACKWARDS}[A-Za-z0-9+/]{{16,}}+)*+"
)
# Keys in DER begin alike: RSA and PKCS#8, elliptic curves, Ed25519, OpenSSH.
_HEADS = ("IBAAK", "IBADANB", "MHcCAQEE", "MIGHAgEAM", "MC4CAQAwBQYDK2V", "b3BlbnNzaC1rZXkt")
_BARE = pattern(
    r"(?:MI[A-Za-z0-9+/]{4}IBA(?:AK[BC]|DANB)|MHcCAQEE|MIGHAgEAM|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXkt)"
    rf"[A-Za-z0-9+/]*+={{0,2}}{_LINES_SOURCE}"
)
_BREAK = r"(?:\\r)?(?:\r?\n|\\n|[ ])[> \t|#*+]{0,8}"  # as it is, in a string, or gone
_PUTTY = pattern(
    rf"Private-Lines: [0-9]{{1,3}}{_BREAK}((?:[A-Za-z0-9+/=]{{20,76}}+(?:{_BREAK})?){{1,400}}+(?:[A-Za-z0-9+/]{{1,19}}=?=?(?![A-Za-z0-9:-]))?)"  # noqa: E501
)


def private_keys_in(page: Page) -> Iterator[Found]:
    """Report every private key, with the borders that are there."""
    text = page.text
    if page.has(_KEY_BORDER) and _KEY_BORDER.upper() in text:
        yield from _between_borders(text)
    if page.stretches and any(page.has(head.lower()) and head in page.long_words for head in _HEADS):
        for found in _BARE.finditer(text):
            yield found.start(), found.end(), _PRIVATE_KEY
    if page.has(_KEY_LINES) and "Private-Lines: " in text:
        for found in _PUTTY.finditer(text):
            if len(found[1]) >= _LEAST_IN_KEY:
                yield found.start(1), found.end(1), _PRIVATE_KEY


def _between_borders(text: str) -> Iterator[Found]:
    opened: re.Match[str] | None = None
    passed = 0
    for border in _BORDER.finditer(text):
        is_end = border[1] == "END"
        if opened is not None and is_end and border.start() - opened.end() <= _MOST_IN_KEY:
            if _A_LINE.search(text, opened.end(), border.start()):
                yield opened.start(), border.end(), _PRIVATE_KEY
        else:
            if opened is not None:
                yield from _without_end(text, opened, border.start())
            if is_end:
                yield from _without_beginning(text, border, passed)
        opened = None if is_end else border
        passed = border.end()
    if opened is not None:
        yield from _without_end(text, opened, len(text))


def _without_end(text: str, opened: re.Match[str], limit: int) -> Iterator[Found]:
    if limit - opened.end() < _LEAST_IN_KEY:
        return
    lines = _LINES.match(text, opened.end(), limit)
    if lines and len(lines[0]) >= _LEAST_IN_KEY:
        yield opened.start(), lines.end(), _PRIVATE_KEY


def _without_beginning(text: str, border: re.Match[str], passed: int) -> Iterator[Found]:
    if border.start() - passed < _LEAST_IN_KEY:
        return
    before = text[max(passed, border.start() - _MOST_IN_KEY) : border.start()]
    lines = _LINES_BACKWARDS.match(before[::-1])
    if lines and len(lines[0]) >= _LEAST_IN_KEY:
        yield border.start() - lines.end(), border.end(), _PRIVATE_KEY


_LONG_KEYWORD = 4  # a shorter one is found too often
_KEY_BORDER, _KEY_LINES = "private key", "private-lines"
# One of these is in a text that has something for the rules above.
KEYWORDS = (
    *(
        shape.keyword.lower()
        for shape in (*_SHAPES, *_STRETCHED_SHAPES)
        if len(shape.keyword) > _LONG_KEYWORD
    ),
    *(head.lower() for head in _HEADS),
    _KEY_BORDER,
    _KEY_LINES,
)
