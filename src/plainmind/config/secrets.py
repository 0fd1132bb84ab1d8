"""Secrets by reference: `env:NAME` stands in the file, the secret itself only in the environment."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.pattern import pattern

# `${NAME}` is how OpenClaw writes the same.
_REFERENCE = pattern(r"env:([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def referenced_variable(value: str) -> str | None:
    """Name the environment variable that the value refers to; None when it is the secret itself."""
    match = _REFERENCE.fullmatch(value)
    return (match[1] or match[2]) if match else None


def resolve_secret(value: str | None, environ: Mapping[str, str]) -> str | None:
    """Look the secret up, which is done when it is needed and not before. Raises ConfigError."""
    if value is None:
        return None
    variable = referenced_variable(value)
    if variable is None:
        return value
    secret = environ.get(variable)
    if not secret:
        raise ConfigError(
            f"the configuration refers to the environment variable {variable}, which is not set",
            hint=f"set {variable}, or remove the reference `env:{variable}`",
        )
    return secret
