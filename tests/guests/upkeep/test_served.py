"""What `/v1/proposals` serves is what the desk says, to the last field."""

from __future__ import annotations

from pathlib import Path

from plainmind.guests.page import shapes
from plainmind.guests.page.wire import read
from plainmind.guests.upkeep.desk import Desk


def test_every_proposal_and_every_outcome_fits_what_is_served(desk: Desk, workspace: Path) -> None:
    section = "".join(f"- thing number {number} of the cellar\n" for number in range(900))
    with (workspace / "MEMORY.md").open("a") as file:
        file.write(f"\n## Cellar\n\n{section}")
    desk.run()
    facts = desk.list().as_dict()["proposals"]

    served = [read(shapes.Proposal, one, what="a proposal") for one in facts]

    assert {one.kind for one in served} == {"repeated", "restated", "expiry", "too-large"}
    outcome = desk.accept([served[0].id]).as_dict()
    assert read(shapes.Outcome, outcome, what="an outcome").done == (served[0].id,)
