"""Secrets that are known word by word, found in every form that a program may have given them."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Iterator

from plainmind.base.pattern import pattern
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.stand_ins import is_stand_in

KIND = "configured"
# A shorter one would blot out half of every text: of three characters each is somewhere in a word.
_LEAST = 4
# One as short as a word counts only where it stands alone.
_LEAST_INSIDE_WORDS = 8
# Of one that is cut off at the edge of a text so much must be there to know it.
_LEAST_CUT = 6
_AROUND_CUT = "… \t\r\n"
# A header is configured as a whole; what follows the scheme is the secret.
_SCHEME = pattern(r"^(?:bearer|basic|token|apikey|key) {1,4}(?=[^ ]{8,}+$)", 2)  # re.IGNORECASE
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ConfiguredSecrets:
    """Looks for known secrets; values too short or too plain to be secrets (`none`, `ollama`) are passed over."""

    def __init__(self, secrets: Iterable[str]) -> None:
        stripped = (_SCHEME.sub("", given.strip()) for given in secrets)
        self.secrets = sorted({one for one in stripped if len(one) >= _LEAST and not is_stand_in(one)})
        self._secret_of: dict[str, str] = {}
        for secret in self.secrets:
            for form in forms_of(secret):
                self._secret_of.setdefault(form, secret)

    def found_in(self, page: Page) -> Iterator[Found]:
        """Report every place where a form of a known secret stands."""
        text = page.text
        for form in self._secret_of:
            at = text.find(form)
            while at >= 0:
                end = at + len(form)
                if len(form) >= _LEAST_INSIDE_WORDS or _stands_alone(text, at, end):
                    yield at, end, KIND
                at = text.find(form, end)

    def cut_off_in(self, text: str) -> Iterator[Found]:
        """Report where a text begins with the end of a known secret, or ends with the beginning of one."""
        first = len(text) - len(text.lstrip(_AROUND_CUT))
        last = len(text.rstrip(_AROUND_CUT))
        if last - first < _LEAST_CUT:
            return
        for form in self._secret_of:
            at = form.rfind(text[first : first + _LEAST_CUT])
            if at > 0 and text.startswith(form[at:], first):
                yield first, first + len(form) - at, KIND
            end = form.find(text[last - _LEAST_CUT : last]) + _LEAST_CUT
            if end >= _LEAST_CUT and text.endswith(form[:end], 0, last):
                yield last - end, last, KIND

    def secret_behind(self, form: str) -> str:
        """Return the secret that a found text is a form of, or the text itself."""
        return self._secret_of.get(form, form)


def forms_of(secret: str) -> set[str]:
    """Return the secret as itself, in JSON, in an address, and as base64 at any place of a longer text."""
    data = secret.encode("utf-8", "surrogatepass")
    forms = {secret, *_in_json(secret), *_in_address(data), *_in_base64(data)}
    return {form for form in forms if len(form) >= _LEAST}


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


def _in_json(secret: str) -> Iterator[str]:
    readable = "".join(_SHORT_ESCAPES.get(sign, sign) for sign in secret)
    yield readable
    yield readable.replace("/", "\\/")
    yield "".join(_SHORT_ESCAPES.get(sign) or _in_ascii(sign) for sign in secret)


def _in_ascii(sign: str) -> str:
    if " " <= sign <= "~":
        return sign
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _in_address(data: bytes) -> Iterator[str]:
    for template in ("%{:02X}", "%{:02x}"):
        encoded = "".join(chr(byte) if byte in _UNRESERVED else template.format(byte) for byte in data)
        yield encoded
        yield encoded.replace("%20", "+")


def _in_base64(data: bytes) -> Iterator[str]:
    """Give the part of the encoded text that depends on the secret alone, for each way the bytes may fall."""
    for before, dependent in ((0, 0), (1, 2), (2, 3)):
        encoded = b2a_base64(b"\0" * before + data, newline=False).rstrip(b"=").decode()
        ends_between = (before + len(data)) % 3 != 0
        core = encoded[dependent : -1 if ends_between else None]
        if len(core) >= _LEAST_INSIDE_WORDS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
