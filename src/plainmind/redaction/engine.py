"""The way in: a text, and a copy of it without secrets.

    redactor = Redactor(secrets=[settings.api_key], key=key)
    redactor.redact("deploy with ghp_…").text        # "deploy with [redacted:github#3f9a]"

A whole message goes in at once: a secret that is cut into two chunks is found in neither. The copy has the lines of the
original, so that line numbers stay true. The original stays what it is: a model that is shown marks instead of its own
words writes the marks into files.
"""

from __future__ import annotations

from collections.abc import Iterable

from plainmind.redaction.addresses import passwords_in_addresses
from plainmind.redaction.assignments import assigned_secrets_in, kind_of_named
from plainmind.redaction.command_lines import passwords_in_command_lines
from plainmind.redaction.configured import ConfiguredSecrets
from plainmind.redaction.findings import Finding, Found, Page, Redacted, settled
from plainmind.redaction.headers import credentials_in_headers
from plainmind.redaction.marks import Marks, marks_in
from plainmind.redaction.plain_words import plain_words_in
from plainmind.redaction.private_keys import private_keys_in
from plainmind.redaction.shapes import shapes_in
from plainmind.redaction.tokens import tokens_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What these rules hide is not what those of an earlier version hid: whoever keeps copies makes them anew.
RULES_VERSION = 2

_LEAST_SECRET_NAME = 16


class Redactor:
    """Replaces secrets by marks. One may be shared between threads and used for any number of texts.

    `secrets` are values that are known to be secret. `key` makes the marks: the same key and the same secret give the
    same mark, today and in a year; keep it where the secrets are kept.
    """

    def __init__(self, secrets: Iterable[str] = (), *, key: bytes) -> None:
        self._configured = ConfiguredSecrets(secrets)
        self._marks = Marks(key)

    def redact(self, text: str) -> Redacted:
        """Hide every secret of a text in a copy. Never raises, whatever the text is."""
        found = self._found_in(text)
        if not found:
            return Redacted(text)
        parts = self._parts(text, found)
        findings = (
            Finding(kind, start, end, shown.rstrip("\r\n"))
            for (start, end, kind), shown in zip(found, parts[1::2], strict=True)
        )
        return Redacted("".join(parts), tuple(findings))

    def without_secrets(self, text: str) -> str:
        """The same copy, quicker, for those who do not ask what was hidden."""
        found = self._found_in(text)
        return "".join(self._parts(text, found)) if found else text

    def without_configured(self, text: str) -> str:
        """Hide known secrets alone in a piece of an old copy, also those that its edges have cut off."""
        configured = self._configured
        found = settled((configured.found_in(Page(text)), configured.cut_off_in(text)), marks_in(text))
        return "".join(self._parts(text, found)) if found else text

    def digests(self) -> list[str]:
        """Tell known secrets apart without saying them, in any order, for whoever notes which ones were known when."""
        return [self._marks.digest(secret) for secret in self._configured.secrets]

    def redact_value(self, value: Any) -> Any:
        """Copy what JSON may hold, with every secret in it hidden; a field's name tells as much as `name = …` does."""
        return self._value("", value)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            copy = self.without_secrets(value)
            kind = kind_of_named(name, value) if copy is value else None
            return self._marks.mark(kind, value) if kind else copy
        if isinstance(value, dict):
            return {self._name(key): self._value(str(key), inner) for key, inner in value.items()}
        return [self._value(name, inner) for inner in value] if isinstance(value, list) else value

    def _name(self, name: Any) -> Any:
        """Copy the name of a field, which hardly ever is a secret itself."""
        return (
            self.without_secrets(name) if isinstance(name, str) and len(name) >= _LEAST_SECRET_NAME else name
        )

    def _found_in(self, text: str) -> list[Found]:
        page = Page(text)
        # From what is certain to what is likely: where two overlap, the first one says what it is.
        scans = (
            self._configured.found_in(page),
            private_keys_in(page),
            tokens_in(page),
            shapes_in(page),
            passwords_in_addresses(page),
            credentials_in_headers(page),
            passwords_in_command_lines(page),
            assigned_secrets_in(page),
            plain_words_in(page),
        )
        return settled(scans, marks_in(text))

    def _parts(self, text: str, found: list[Found]) -> list[str]:
        """The copy in pieces: what stays and what is shown in the place of a secret, in turns."""
        known: dict[tuple[str, str], str] = {}  # a text that has a secret often has it more than once
        parts: list[str] = []
        copied = 0
        for start, end, kind in found:
            secret = text[start:end]
            shown = known.get((kind, secret))
            if shown is None:
                shown = self._marks.mark(kind, self._configured.secret_behind(secret))
                if "\n" in secret or "\r" in secret:  # line ends stay, and so do the numbers of all lines
                    shown += "".join(sign for sign in secret if sign in "\r\n")
                known[kind, secret] = shown
            parts += (text[copied:start], shown)
            copied = end
        parts.append(text[copied:])
        return parts
