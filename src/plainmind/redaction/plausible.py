"""Whether a value is a secret: made up by a person or a machine, and not prose, code, a path or a placeholder.

Where nothing made up stands, a name is the name of no secret: that is found out before all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from plainmind.redaction.page import Page

# Several rules ask about the same value, and the same stands around many names; nothing is kept from text to text.
_MOST_KEPT = 4096
_once = lru_cache(_MOST_KEPT)

_WORDS = frozenset(
    """
    admin any apikey api-key api_key bearer blank changeit changeme change-me change_me confidential
    credentials default demo disabled dummy empty enabled encrypted example expired fake false foobar hashed
    hidden invalid key keyring local localhost lm-studio lmstudio masked missing n/a nil no-key none
    not-needed null ollama omitted optional pass passphrase passwd password passwort placeholder private
    prompt pwd redacted removed required root sample secret secrets sk-no-key-required some string test
    testing text token true undefined unknown unset user username value vllm
    argon2 argon2id aes128 aes256 aes-256 base32 base64 bcrypt hs256 md5 oauth2 pbkdf2 rs256 scrypt sha1
    sha224 sha256 sha384 sha512 sha-1 sha-256 sha-512 totp utf8 utf-8 2fa ed25519 x25519 rsa2048 rsa4096 secp256k1
    """.split()  # noqa: SIM905
)
# Talk about what belongs there; or a name that a program will look up: a variable, a template, a function, a vault.
_BEGINNING = pattern(
    r"(?:your|my|the|enter|insert|replace|provide|some)[ _-]"
    r"|\$[{(]|\$[a-z_][a-z0-9_]{0,64}$|%[a-z_][a-z0-9_]{0,64}%$|%[sdr]$|%\("
    r"|\{\{|\{[a-z_0-9.]{0,64}\}$|<[^<>]{0,64}>?$|&lt;|#\{|@[a-z_]{1,64}@?$"
    r"|!(?:secret|env|vault|ref|sub|getatt)|(?:env|vault|op|file|secretref|keychain|ssm|sops|gcp|awssm):"
)
_INSIDE_IN_LOWER_CASE = ("changeme", "placeholder", "redacted", "dummy", "goes-here", "goes_here")
_INSIDE = ("xxxx", "XXXX", "***", "...", "…", "•")
_LEAST_DIFFERENT = 3
_ENOUGH_TO_DIFFER = 24


def is_stand_in(text: str) -> bool:
    """Whether a text only marks the place of a secret."""
    low = text.lower()
    # Of the beginnings each has a sign in it, so letters and digits alone are none.
    if low in _WORDS or (not low.isalnum() and _BEGINNING.match(low)):
        return True
    for words, place in ((_INSIDE_IN_LOWER_CASE, low), (_INSIDE, text)):
        for word in words:
            if word in place:
                return True
    return (
        len(set(low[:_ENOUGH_TO_DIFFER])) < _LEAST_DIFFERENT
        and len(set(low)) < _LEAST_DIFFERENT
        and not low.isdecimal()
    )


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
# `test_login_2`, `3.11.7`, `a=b`, `f(x)`; `step3`, `2nd`, `10px`.
_NAME_OF_SOMETHING = pattern(r"[_/.:=(\[{<>|-]|^(?:[a-z]{1,64}+[0-9]|[0-9]{1,4}[a-z]{1,64}+)$", 2)
# Words joined into a sentence that only its owner knows: `correct-horse-battery-staple`.
_DASHED_WORDS = pattern(r"[a-z]{3,12}(?:-[a-z]{3,12}){3,7}", 2)
_WESTERN = pattern("[A-Za-z0-9\u00c0-\u024f\u0370-\u052f]")
# Which letters often follow which: the first of each row by all others.
_FOLLOWERS = """
    abcdefgiklmnprstuvwxyz baeijlorsuy cacehikloprstuyqz dabdegikloprstuyjmvw eabcdefghijlmnopqrstuvwxyz faefiloqrtuy
    gaeghilmnoprstuy haeilmnorstuy iabcdefgjklmnopqrstuvxz jaeiou kadeilmnorstuy labcdefghiklmoprstuvwy
    mabcdeimnopsuyl nabcdefghijklmnoqrstuvxyz oabcdefghijklmnopqrstuvwxyz padeghiloprstuyf qu
    rabcdefghiklmnopqrstuvwyz sabcdefghiklmnopqrtsuvwy tabcdefghilmnoprstuwyz uabcdefghijklmnoprstvwxyz vaeiolry
    waehilnorstuy xaceiopqtuy yabcdefgilmnoprstuwxz zaehiloptuwyz
"""
_RARE_PAIR = pattern("|".join(f"{row[0]}(?=[^{row[1:]}])" for row in _FOLLOWERS.split()))
# The pairs that make up eight tenths of all words. Of letters that a machine has drawn they are a fifth.
_USUAL_FOLLOWERS = """
    abcdgilmnprstuy baelor caehikot daeios eacdegilmnprstvx faeio gaer haeiot iacdeglmnorstv ke laeilos maeiop nacdegiost
    oclmnoprstuw paeilor qu radeinostuy sacehiostu taehiorstu uelmnrst vei waei
"""  # noqa: E501
_USUAL_PAIR = pattern("|".join(f"{row[0]}(?=[{row[1:]}])" for row in _USUAL_FOLLOWERS.split()))
_LEAST_SCRAMBLED = 8
_LONG_SCRAMBLED = 12
_CHANGES_OF_CASE = pattern("[a-z][A-Z]|[A-Z][A-Z][a-z]")
_LEAST_CHANGES = 3
_SMALL_LETTERS = pattern("[a-z]{3}")
_RUNS = pattern("[a-z]++|[A-Z]++")
_LEAST_RUNS = 4
_LEAST_DIFFERENT_LETTERS = 5
_CAMEL = pattern("(?:[A-Z]?[a-z]{2,32}+|[A-Z]{1,6}(?=[A-Z][a-z]|$)){1,16}+")
_LEAST_WORDS, _MOST_WORDS = 4, 24
_WORD = pattern("[a-z]{3,12}")
_STOP_WORDS = frozenset(
    """
    the and for with that this must should have has had you your are was not from can will its one least long only never
    ist und der die das den dem nicht mit von ein eine wird muss auf aus bei est pas les des pour dans avec que qui une
    sur par los las para con una por como del sin mas este esta
    """.split()  # noqa: SIM905
)
_GROUPS = pattern(
    "[A-Za-z0-9]{4}(?:[ -][A-Za-z0-9]{4}){3,15}|[A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){1,7}|[0-9]{6}(?:-[0-9]{6}){3,7}"
    "|[0-9a-f]{8}-[0-9a-f]{8}|[A-Za-z0-9]{4}-[A-Za-z0-9]{4}(?:-[A-Za-z0-9]{4})?"
)
# `Badger_arena19`, `sandal363-Violin`.
_TWO_WORDS = pattern(
    "[A-Za-z]{3,16}[-_=?#$%&*!.+][A-Za-z]{3,16}[0-9]{2,4}|[A-Za-z]{3,16}[0-9]{2,4}[-_=?#$%&*!.+][A-Za-z]{3,16}"
)
_SIGN_AMONG_LETTERS = pattern(r"[A-Za-z][!#$%^&*~?][A-Za-z]")
_LEAST_MADE_UP = 6
_LEAST_ODD = 7
_LEAST_LETTERS_OF_ODD = 2
_LEAST_TURNS = 5  # from letters to digits and back, in one that dashes cut into pieces
_ODD_SIGN = pattern(r"[!#$%^&*~?](?=.)|[A-Za-z][0-9]{1,8}[!?]$|@(?![A-Za-z0-9-]{1,64}\.)")
_PARTS = pattern("[A-Za-z0-9]{5,}+")
# Letters and digits in turns that are a name: `sha256sum`, `2024Q3`, `1h30m`, `x86abi`.
_KNOWN_MIX = pattern(
    r"[a-z]{1,3}[0-9]{1,4}[a-z]{1,2}|[a-z]{2,5}(?:16|32|64|128|256|512|2|3|4|8)[a-z]{1,8}[0-9]?|[0-9]{1,4}[a-z]{1,2}[0-9]{1,4}[a-z]{0,3}|v[0-9]{1,3}[a-z]{1,5}[0-9]{1,4}"
    r"|[0-9]{4}[a-z]{1,3}[0-9]{1,2}|[0-9]{1,2}[a-z]{3,9}[0-9]{4}|[0-9]{8}t[0-9]{4,9}z?",
    2,
)
_ACRONYM = pattern("[A-Z]{2,6}-?v?[0-9]{1,5}|[A-Z][a-z]{1,12}[A-Z]?[a-z]{0,12}[0-9]{1,3}")
_WITHOUT_JOINTS = str.maketrans("", "", "-_./+:")
_WITHOUT_ALL_BUT_LETTERS = {code: None for code in range(128) if not chr(code).isalpha()}
_UUID = pattern(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", 2)
# From letters to digits and back, or from digits to letters and back, in eight characters or more without a joint.
_TURNS_TWICE = pattern(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{8})(?:[A-Za-z]++[0-9]++[A-Za-z]|[0-9]++[A-Za-z]++[0-9])"
)
_LONG_STRETCH = pattern(r"[A-Za-z0-9]{16,}+")
# Small letters, capitals, digits, and all other signs.
_SORTS = bytes(
    ord("a" if chr(byte).islower() else "A" if chr(byte).isupper() else "0" if chr(byte).isdecimal() else " ")
    for byte in range(128)
).ljust(256)


@_once
def is_password(value: str, *, is_quoted: bool) -> bool:  # noqa: PLR0911
    """Whether a person chose this as a password: short is enough, but a bare word is a word."""
    if len(value) < _LEAST_PASSWORD or " " in value or value.startswith("@"):
        return False
    if not is_quoted and value.rstrip("!?").isalpha() and not is_scrambled(value):
        return False
    if is_quoted and not _WESTERN.search(value):
        return False
    if not value.isalnum() and (
        _is_code(value) or (_DOTTED_NAME.match(value) and not _TWO_WORDS.fullmatch(value))
    ):
        return False
    if is_stand_in(value) or _NAME.match(value):
        return False
    if is_quoted:
        return True
    if value.isdecimal():
        return len(value) >= _LEAST_DIGITS
    letters = value.translate(_WITHOUT_JOINTS)
    if letters.isalpha():
        return is_scrambled(letters) or _DASHED_WORDS.fullmatch(value) is not None
    return not _NUMBERED.match(value)


@_once
def is_scrambled(value: str) -> bool:
    """Whether letters follow each other as in no word of a European language, or change case all the time."""
    if len(value) < _LEAST_SCRAMBLED or not value.isascii() or not value.isalpha():
        return False
    low = value.lower()
    return _has_odd_pairs(value, low) and len(set(low)) >= _LEAST_DIFFERENT_LETTERS


def _has_odd_pairs(value: str, low: str) -> bool:
    rare = len(_RARE_PAIR.findall(low))
    is_mixed = not (value.islower() or value.isupper())
    if is_mixed and not _CAMEL.fullmatch(value):
        # `pCSRTPLXxD`: capitals here and there, and never three small letters in a row.
        if not _SMALL_LETTERS.search(value) and len(_RUNS.findall(value)) >= _LEAST_RUNS:
            return True
        if len(_CHANGES_OF_CASE.findall(value)) >= _LEAST_CHANGES:
            return rare > 0
    if len(value) < _LONG_SCRAMBLED:
        return rare * 2 >= len(value)
    return rare * 5 >= len(value) or len(_USUAL_PAIR.findall(low)) * 20 < len(value) * 9


def is_phrase(value: str) -> bool:
    """Whether these are words that only their owner puts side by side: `correct horse battery staple`."""
    words = value.split(" ")
    return (
        _LEAST_WORDS <= len(words) <= _MOST_WORDS
        and all(_WORD.fullmatch(word) for word in words)
        and _STOP_WORDS.isdisjoint(words)
    )


def is_dashed_phrase(value: str) -> bool:
    """Whether these are four words or more, joined by dashes."""
    return _DASHED_WORDS.fullmatch(value) is not None


@_once
def is_grouped(value: str) -> bool:
    """Whether this is cut into groups so that people can copy it: `abcd efgh ijkl mnop`, `K3J9-X2MF-8QWE`."""
    if not _GROUPS.fullmatch(value):
        return False
    joined = value.replace(" ", "").replace("-", "")
    return is_scrambled(joined) if joined.isalpha() else _turns(_sorts(joined)) > 1 or joined.isdecimal()


@_once
def is_made_up(value: str, **_: bool) -> bool:
    """Whether this is a password when it stands behind a name that may mean something else: `hunter22`."""
    if len(value) < _LEAST_MADE_UP or not value.isascii():
        return False
    if value.isalpha():
        return is_scrambled(value)
    if _NAME_OF_SOMETHING.search(value):
        return _TWO_WORDS.fullmatch(value) is not None or is_odd(value)
    if not any(map(str.isdecimal, value)):
        return is_odd(value)
    return sum(map(str.isalpha, value)) > 1 and is_password(value, is_quoted=False)


def is_known_mix(value: str) -> bool:
    """Whether letters and digits are the name of something: `sha256sum`, `AES256`, `1h30m`, `Office365`."""
    return _KNOWN_MIX.fullmatch(value) is not None or _ACRONYM.fullmatch(value) is not None


@_once
def is_odd(value: str) -> bool:  # noqa: PLR0911
    """Whether nobody would say this, so that a name somewhere near is enough: `Tr0ub4dor&3`, `kX9-mQ2-vT7`."""
    if len(value) < _LEAST_ODD or not value.isascii() or not is_password(value, is_quoted=False):
        return False
    if is_scrambled(value.translate(_WITHOUT_ALL_BUT_LETTERS)):
        return True
    if not any(map(str.isdecimal, value)):
        return _SIGN_AMONG_LETTERS.search(value) is not None and not value.islower() and not value.isupper()
    if sum(map(str.isalpha, value)) < _LEAST_LETTERS_OF_ODD:
        return False
    if _ODD_SIGN.search(value, 1):
        return True
    sorts = _sorts(value.translate(_WITHOUT_JOINTS).replace("=", ""))
    turns = _turns(sorts)
    # `iPhone-15Pro` is a name; what goes from small letters to capitals and to digits again and again is none.
    if turns >= _LEAST_TURNS or (turns > 1 and turns + sorts.count(b"aA") >= _LEAST_TURNS - 1):
        return True
    return any(_turns(_sorts(part)) > 1 and not _KNOWN_MIX.fullmatch(part) for part in _PARTS.findall(value))


@_once
def is_key(value: str, **_: bool) -> bool:
    """Whether a machine made this, and it is no path or address."""
    if len(value) >= _LEAST_LETTERS and (
        is_scrambled(value) if value.isalpha() else _GROUPS.fullmatch(value) and is_grouped(value)
    ):
        return True
    if not is_random(value) or is_stand_in(value) or _is_code(value):
        return False
    if not _DOTTED_NAME.match(value):
        return True
    return any(
        len(part) >= _LEAST_LETTERS and not _CAMEL.fullmatch(part) and "_" not in part
        for part in value.split(".")
    )


@_once
def is_random(value: str) -> bool:
    """Whether a machine made this: letters and digits in turns, or letters that change case all the time."""
    if len(value) < _LEAST_KEY or (value.isalpha() and (value.islower() or value.istitle())):
        return False
    if value.isalnum() and value.isascii():
        return not _CAMEL.fullmatch(value) and _is_random(value[:_ENOUGH])
    some = value[:_ENOUGH]
    if _TURNS_TWICE.search(some) or _UUID.match(value):
        return True
    sorts = _sorts(some)
    if _changes(sorts) * 3 < _LEAST_LETTERS:
        return False  # nor does any part of it turn often
    return (len(value) >= _LEAST_BROKEN and _turn_often(sorts)) or any(
        _turn_often(_sorts(stretch)) for stretch in _LONG_STRETCH.findall(some)
    )


def _is_code(value: str) -> bool:
    return _CODE.match(value) is not None or _NUMBER.match(value) is not None


def _is_random(stretch: str) -> bool:
    sorts = _sorts(stretch)
    return _turns(sorts) > 1 or (len(stretch) >= _LEAST_LETTERS and _turn_often(sorts))


def _sorts(text: str) -> bytes:
    return text.encode("ascii", "replace").translate(_SORTS)


def _turns(sorts: bytes) -> int:
    return sorts.count(b"a0") + sorts.count(b"0a") + sorts.count(b"A0") + sorts.count(b"0A")


def _changes(sorts: bytes) -> int:
    return _turns(sorts) + sorts.count(b"aA") + sorts.count(b"Aa")


def _turn_often(sorts: bytes) -> bool:
    return _changes(sorts) * 3 >= len(sorts)


# --- where something made up stands: digits among letters or many in a row, a sign in a word, groups, odd letters ---

# Those that most values have come first. Here and below, an expression that begins with one set of characters is looked
# for ten times as quickly as one that begins with either of two.
_A_DIGIT = pattern(
    r"[0-9](?:[0-9]{3}(?:[0-9]|[ -][a-z0-9]{4})|(?=[^0-9\s])(?:[!@#$%^&*~]|(?:[^\w\s]|_){0,3}[^\W\d_])"
    r"|(?<![\s0-9].)(?:(?<=[^\W\d_].)|(?<=[!@#$%^&*~].)"
    r"|(?<=[^\W\d_][^a-z0-9\s].)|(?<=[^\W\d_][^a-z0-9\s]{2}.)))"
)
_A_SIGN = pattern(r"[!#$%^&~*@?](?:(?<![*@?])|(?<=[a-z0-9].))[!#$%^&~*@?+=.-]{0,3}[a-z]")
_GROUPS_OF_FOUR = pattern(" (?<=[a-z0-9]{4} )[a-z0-9]{4} [a-z0-9]{4} [a-z0-9]{4}(?![a-z0-9])")
_LENGTH_OF_GROUPS = 15
_A_QUOTATION = pattern(r"""["'`](?:[^\s"'`]{4,64}+["'`\\]|[a-z]{3,12} [a-z]{3,12} [a-z]{3,12} [a-z])""")
_LONGEST = 72  # of all these
# Letters, and what joins them: one of these is made up if no word has such letters side by side.
_PIECE = pattern(r"[A-Za-z+/_.:-]{8,}+")
_REST_OF_PIECE = pattern(r"[A-Za-z+/_.:-]*+")
_LETTERS = pattern(r"[A-Za-z]{8,}+")
_LEAST_PIECE, _LONGEST_PIECE = 8, 256  # a longer one is looked at in parts
# The sorts of characters that these are made of, and what stands in each of them: where nothing of that is, none is.
_SORTS_OF_SIGNS = {
    b"a": b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/_.:-",
    b"0": b"0123456789",
    b"!": b"!#$%^&~*@?",
    b"=": b"=",
    b'"': b"\"'`",
    b" ": b" ",
}
_AS_SORTS_OF_SIGNS = bytes(
    next((sort[0] for sort, some in _SORTS_OF_SIGNS.items() if byte in some), 0) for byte in range(256)
)
_ROW_OF_GROUPS = b" aaaa aaaa "
_IN_SIGNS = (
    ((b"0",), 0, _A_DIGIT),
    ((b"!a", b"!="), 3, _A_SIGN),  # so far behind the beginning of one
    ((_ROW_OF_GROUPS,), 0, _GROUPS_OF_FOUR),  # of others, with digits in them, a digit tells
)
_IN_QUOTATION = ((b'"',), 0, _A_QUOTATION)
_A_PIECE = b"a" * _LEAST_PIECE
# An edge may make one of these what it is not as a whole.
_ROWS_TO_CUT = (_A_PIECE + b"a", _ROW_OF_GROUPS)


def has_made_up(text: str, low: str, start: int, end: int) -> bool:
    """Whether something made up stands between two places of a text, which is given in lower case too."""
    for sign in (_A_DIGIT, _A_SIGN, _GROUPS_OF_FOUR):
        if sign.search(low, start, end):
            return True
    for piece in _PIECE.findall(text, start, end):  # noqa: SIM110 (a generator takes longer than all else here)
        if _is_odd_piece(piece):
            return True
    return False


def has_quotation(low: str, start: int, end: int) -> bool:
    """Whether something in quotation marks stands there, which may be plain words."""
    return _A_QUOTATION.search(low, start, end) is not None


@_once
def _is_odd_piece(piece: str) -> bool:
    """Whether this is no word, nor words that joints hold together; the same ones stand around many names."""
    if piece.isalpha():
        return is_scrambled(piece) or is_random(piece)
    letters = piece.translate(_WITHOUT_JOINTS)
    if is_scrambled(letters) or is_random(piece) or is_dashed_phrase(piece.strip("-_./+:")):
        return True
    return any(map(is_scrambled, _LETTERS.findall(piece)))


# What stands in a stretch of a text.
NOTHING, QUOTATION, MADE_UP = 0, 1, 2


class Stretches:
    """Says what stands in one stretch of a page after the other; what many have in common is looked at once."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._left, self._passed = _FEW, 0
        self._first = self._until = 0  # nothing made up begins between these
        self.clear = (0, 0)  # nothing of all that is in a stretch between these

    def what_is_in(self, start: int, end: int) -> int:
        """Say whether something made up begins in a stretch, also where its edges cut off the rest, or a quotation."""
        is_apart, self._passed = start > max(self._passed, self.clear[1]), end
        if is_apart or self._left:
            self._left -= not is_apart
            text, low = self._page.text, self._page.low
            return (
                MADE_UP if has_made_up(text, low, start, end) else QUOTATION * has_quotation(low, start, end)
            )
        if not (self._first <= start and end <= self._until):
            ahead = end + _AHEAD
            for sign in self._signs:
                ahead = sign.next_from(start, ahead)
                if ahead < end:
                    return MADE_UP
            self._first, self._until = start, ahead
        if self._is_cut_off_in(start, end):
            return MADE_UP
        until = self._quotations.next_from(start, self._until)
        if until < end:
            return QUOTATION
        for row in _ROWS_TO_CUT:
            at = self._sorts.find(row, start, until)
            until = at if at >= 0 else until
        self.clear = start, until
        return NOTHING

    @cached_property
    def _sorts(self) -> bytes:
        return self._page.in_bytes.translate(_AS_SORTS_OF_SIGNS)

    @cached_property
    def _signs(self) -> Sequence[_Next]:
        low, sorts = self._page.low, self._sorts
        digit, *others = (_NextSign(low, sorts, *sign) for sign in _IN_SIGNS)
        return digit, _NextPiece(self._page.text, sorts), *others

    @cached_property
    def _quotations(self) -> _Next:
        return _NextSign(self._page.low, self._sorts, *_IN_QUOTATION)

    def _is_cut_off_in(self, start: int, end: int) -> bool:
        text, low, sorts = self._page.text, self._page.low, self._sorts
        is_cut = sorts.startswith(_A_PIECE, start) and sorts[start - 1 : start] == b"a"
        if is_cut and _is_odd_piece(text[start : _end_of_piece(text, start, end)]):
            return True
        is_cut = sorts.endswith(_A_PIECE, start, end) and sorts[end : end + 1] == b"a"
        if is_cut and _is_odd_piece(text[start + len(sorts[start:end].rstrip(b"a")) : end]):
            return True
        return (
            low[end - _LENGTH_OF_GROUPS : end : 5] == "   "
            and _GROUPS_OF_FOUR.search(low, max(start, end - _LENGTH_OF_GROUPS), end) is not None
        )


_FEW = 64  # stretches that overlap
_AHEAD = 384  # where names stand close to each other, so much more is looked through at once


class _Next:
    """Where something begins next, from any place on; the same stretch of a text is not searched twice."""

    def __init__(self) -> None:
        self._first = self._until = 0  # nothing begins between these
        self._is_there = False  # but does where they end

    def next_from(self, start: int, end: int) -> int:
        """Say where it begins in a stretch; the end if it does not."""
        if not self._first <= start <= self._until:
            self._first = self._until = start
            self._is_there = False
        if not self._is_there and self._until < end:
            self._until, self._is_there = self._search(self._until, end)
        return min(self._until, end) if self._is_there else end

    def _search(self, start: int, end: int) -> tuple[int, bool]:
        """Say where it begins, or else up to where it does not, and whether it does there."""
        raise NotImplementedError


class _NextSign(_Next):
    def __init__(
        self, low: str, sorts: bytes, rows: Sequence[bytes], before: int, sign: re.Pattern[str]
    ) -> None:
        super().__init__()
        self._low, self._sorts = low, sorts
        self._rows, self._before, self._sign = rows, before, sign

    def _search(self, start: int, end: int) -> tuple[int, bool]:
        limit = first = end + _LONGEST
        for row in self._rows:
            at = self._sorts.find(row, start, first)
            first = at if at >= 0 else first
        found = (
            None if first == limit else self._sign.search(self._low, max(start, first - self._before), limit)
        )
        return (found.start(), True) if found else (end, False)


class _NextPiece(_Next):
    def __init__(self, text: str, sorts: bytes) -> None:
        super().__init__()
        self._text, self._sorts = text, sorts

    def _search(self, start: int, end: int) -> tuple[int, bool]:
        text, sorts, at = self._text, self._sorts, start
        if start and sorts[start - 1 : start + 1] == b"aa":
            at = _end_of_piece(text, start, len(text))  # none begins within another
        while at < end:
            at = sorts.find(_A_PIECE, at, end + _LEAST_PIECE - 1)
            if at < 0:
                return end, False
            over = _end_of_piece(text, at, len(text))
            if over - at <= _LONGEST_PIECE and _is_odd_piece(text[at:over]):
                return at, True
            at = over
        return at, False


def _end_of_piece(text: str, start: int, limit: int) -> int:
    rest = _REST_OF_PIECE.match(text, start, limit)
    assert rest is not None  # it matches anything
    return rest.end()


def forget_values() -> None:
    """Drop the values that were asked about: some of them are secrets."""
    for judged in (
        is_password,
        is_made_up,
        is_scrambled,
        is_odd,
        is_key,
        is_random,
        is_grouped,
    ):
        judged.cache_clear()
