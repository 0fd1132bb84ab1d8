"""Numbers and dates in the words that people use; programs get them raw."""

from __future__ import annotations

from datetime import date

_UNITS = ("kB", "MB", "GB", "TB")


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_in_words(count: int) -> str:
    """`812 bytes`, `1.2 kB`, `34 MB`."""
    if count < 1000:
        return counted(count, "byte")
    amount, unit = count / 1000, _UNITS[0]
    for larger in _UNITS[1:]:
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def duration_in_words(seconds: float) -> str:
    """`8 ms`, `1.4 s`, `3 min 20 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def age_in_words(day: str, today: date) -> str:
    """`today`, `yesterday`, `12 days old`, `2 years old`; empty when it is no day."""
    try:
        days = (today - date.fromisoformat(day)).days
    except ValueError:
        return ""
    if days < 0:
        return "in " + ("1 day" if days == -1 else f"{-days} days")
    if days < 2:
        return ("today", "yesterday")[days]
    if days < 60:
        return f"{days} days old"
    months = round(days / 30.44)
    return f"{months} months old" if months < 24 else f"{days // 365} years old"


def one_of_many(names: list[str], most: int = 3) -> str:
    """`a, b, c …`: the first few of a list."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
