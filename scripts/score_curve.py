"""What a score means: how often a result with such a score held evidence, as figures and as a picture."""

from __future__ import annotations

from collections.abc import Iterable

from plainmind.base.value import value
from plainmind.guests.evaluation.scoring import Answer, pieces_of, proves

STEPS = 10
_WIDTH, _HEIGHT, _MARGIN = 640, 400, 56


@value
class Step:
    """The results whose scores lie between two tenths."""

    low: float
    high: float
    results: int
    with_evidence: int

    @property
    def share(self) -> float:
        """How many of them held evidence."""
        return self.with_evidence / self.results if self.results else 0.0


def reliability(answers: Iterable[Answer]) -> list[Step]:
    """Sort every result that was shown by its score."""
    counts = [[0, 0] for _ in range(STEPS)]
    for answer in answers:
        pieces = pieces_of(answer.question)
        for result in answer.shown:
            step = counts[min(STEPS - 1, int(result.score * STEPS))]
            step[0] += 1
            step[1] += any(proves(result, piece) for piece in pieces)
    return [Step(at / STEPS, (at + 1) / STEPS, *step) for at, step in enumerate(counts)]


def picture(steps: Iterable[Step]) -> str:
    """Draw the curve as SVG: a bar for each tenth, as high as the share of its results that held evidence."""
    inner_width, inner_height = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    bottom = _HEIGHT - _MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
            'font-size="12">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="28" font-size="14">Share of results that held evidence, by score</text>',
    ]
    for tenth in range(0, STEPS + 1, 2):
        y = bottom - inner_height * tenth / STEPS
        parts.append(
            f'<line x1="{_MARGIN}" y1="{y:.1f}" x2="{_WIDTH - _MARGIN}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        parts.append(f'<text x="{_MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth * 10} %</text>')
    width = inner_width / STEPS
    for at, step in enumerate(steps):
        x, height = _MARGIN + at * width, inner_height * step.share
        parts.append(
            f'<rect x="{x + 4:.1f}" y="{bottom - height:.1f}" width="{width - 8:.1f}" height="{height:.1f}" '
            'fill="#3b6ea5"/>'
        )
        parts.append(
            f'<text x="{x + width / 2:.1f}" y="{bottom - height - 5:.1f}" text-anchor="middle" fill="#555555">'
            f"{step.results:,}</text>"
        )
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{step.low:.1f}</text>')
    parts.append(f'<text x="{_WIDTH - _MARGIN}" y="{bottom + 18}" text-anchor="middle">1.0</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle">score of the result</text>')
    return "\n".join([*parts, "</svg>", ""])
