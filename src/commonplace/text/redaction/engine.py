"""The way in: a text, and a copy of it without secrets.

    redactor = Redactor(secrets=[settings.api_key], key=key)
    redactor.redact("deploy with ghp_…").text        # "deploy with [redacted:github#3f9a]"

A whole message goes in at once: a secret that is cut into two chunks is found in neither. The copy has the lines of the
original, so that line numbers stay true. The original stays what it is: a model that is shown marks instead of its own
words writes the marks into files.
"""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.text.redaction.addresses import passwords_in_addresses
from commonplace.text.redaction.assignments import assigned_secrets_in, kind_of_named
from commonplace.text.redaction.command_lines import passwords_in_command_lines
from commonplace.text.redaction.configured import ConfiguredSecrets
from commonplace.text.redaction.findings import Finding, Found, Page, Redacted, settled
from commonplace.text.redaction.headers import credentials_in_headers
from commonplace.text.redaction.marks import Marks, marks_in
from commonplace.text.redaction.plain_words import plain_words_in
from commonplace.text.redaction.private_keys import private_keys_in
from commonplace.text.redaction.shapes import shapes_in
from commonplace.text.redaction.tokens import tokens_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        found = settled(scans, marks_in(text))
        return self._copy(text, found) if found else Redacted(text)

    def redact_value(self, value: Any) -> Any:
        """Copy what JSON may hold, with every secret in it hidden; a field's name tells as much as `name = …` does."""
        return self._value("", value)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            copy = self.redact(value).text
            kind = kind_of_named(name, value) if copy is value else None
            return self._marks.mark(kind, value) if kind else copy
        if isinstance(value, dict):
            return {self._name(key): self._value(str(key), inner) for key, inner in value.items()}
        return [self._value(name, inner) for inner in value] if isinstance(value, list) else value

    def _name(self, name: Any) -> Any:
        """Copy the name of a field, which hardly ever is a secret itself."""
        return self.redact(name).text if isinstance(name, str) and len(name) >= _LEAST_SECRET_NAME else name

    def _copy(self, text: str, found: list[Found]) -> Redacted:
        parts: list[str] = []
        findings: list[Finding] = []
        marks: dict[tuple[str, str], str] = {}  # a text that has a secret often has it more than once
        copied = 0
        for start, end, kind in found:
            secret = text[start:end]
            mark = marks.get((kind, secret))
            if mark is None:
                mark = marks[kind, secret] = self._marks.mark(kind, self._configured.secret_behind(secret))
            parts += (text[copied:start], mark, _line_breaks(secret))
            findings.append(Finding(kind, start, end, mark))
            copied = end
        parts.append(text[copied:])
        return Redacted("".join(parts), tuple(findings))


def _line_breaks(secret: str) -> str:
    """The line ends within a secret: they stay, and so do the numbers of all lines."""
    if "\n" not in secret and "\r" not in secret:
        return ""
    return "".join(sign for sign in secret if sign in "\r\n")
