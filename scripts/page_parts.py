"""Measured figures inside pages that people write: a program owns what stands between two marks."""

from __future__ import annotations

from pathlib import Path


def publish(page: Path, part: str, *, start: str, end: str) -> None:
    """Put a part between its marks, in place of what stood there."""
    head, rest = page.read_text(encoding="utf-8").split(start)
    _, tail = rest.split(end)
    page.write_text(f"{head}{start}\n{part}\n{end}{tail}", encoding="utf-8")


def markdown_table(rows: list[tuple[str, ...]]) -> str:
    """Rows as Markdown, the first one as the head."""
    head, *body = ["| " + " | ".join(cell.strip() for cell in row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])
