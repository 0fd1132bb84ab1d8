"""Run the comparison, keep its figures in results.json, and write docs/compare.md from them."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from speed.resident import plain_environment
from speed.timing import machine

from compare.course import Course, Rounds, Runner, figures_of, summary_of, vectors_on_loopback
from compare.page import PAGE, RESULTS, page_of
from compare.peers import PEERS
from compare.processes import run
from compare.work import SIZES, Work, gather
from plainmind.base.errors import PlainmindError

TOOLS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plainmind-compare"
_EMPTY = 9


def tell(what: str) -> None:
    """Say what is being done, and when."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def install(names: list[str], tools: Path) -> tuple[list[str], dict[str, str]]:
    """Install who is asked for; who takes part, and why others do not."""
    able: list[str] = []
    absent = {name: "it was not asked to" for name in PEERS if name not in names}
    tools.mkdir(parents=True, exist_ok=True)
    for name in names:
        tell(f"installing {name}")
        try:
            PEERS[name].install(tools)
            PEERS[name].version(tools)
        except (PlainmindError, OSError) as error:
            absent[name] = str(error)
            tell(f"{name} takes no part: {error}")
        else:
            able.append(name)
    return able, absent


def compare(
    names: list[str], work: Work, *, folder: Path, tools: Path, rounds: Rounds, kept: Path
) -> dict[str, Any]:
    """Run the course, and keep what is known after each part of it; everything that the page says of it."""
    able, absent = install(names, tools)
    with vectors_on_loopback() as (address, server):
        runners = [
            Runner(
                PEERS[name],
                tools=tools,
                folder=folder / name,
                base=work.workspace,
                vectors=address,
                server=server,
            )
            for name in able
        ]
        empty = [
            run([sys.executable, "-c", "pass"], plain_environment(), folder, every_s=1.0)
            for _ in range(_EMPTY)
        ]

        def figures() -> dict[str, Any]:
            return {
                "day": dt.datetime.now(dt.UTC).date().isoformat(),
                "machine": dict(machine()),
                "python": sys.version.split()[0],
                "work": {"files": work.files, "bytes": work.bytes, "questions": len(work.questions)},
                "empty_python": summary_of(empty),
                "absent": {PEERS[name].title: reason for name, reason in absent.items()},
                "peers": [figures_of(one) for one in runners],
            }

        def keep() -> None:
            kept.write_text(json.dumps(figures(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

        Course(runners, work, rounds=rounds, tell=tell, keep=keep).run()
        keep()
        return figures()


def main() -> int:
    """Measure, keep, write."""
    parser = argparse.ArgumentParser(prog="make compare", description=__doc__)
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument(
        "--around", choices=list(SIZES), default="small", help="how many invented notes (small)"
    )
    parser.add_argument("--questions", metavar="N", type=int, help="ask so many (all)")
    parser.add_argument(
        "--evals", metavar="DIR", type=Path, help="another set of questions, in the format of `bench eval`"
    )
    parser.add_argument("--cold", metavar="N", type=int, default=Rounds().cold, help="cold searches of each")
    parser.add_argument(
        "--edits", metavar="N", type=int, default=Rounds().edits, help="edits of each, twice (5)"
    )
    parser.add_argument(
        "--first", metavar="N", type=int, default=Rounds().first, help="first indexes of each"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="keep the figures here, and write no page")
    parser.add_argument(
        "--page-only", action="store_true", help="write the page from the figures that are kept"
    )
    arguments = parser.parse_args()
    if not arguments.page_only:
        with tempfile.TemporaryDirectory(prefix="plainmind-compare-") as name:
            folder = Path(name)
            work = gather(
                folder / "work",
                dataset=arguments.evals,
                around=SIZES[arguments.around],
                limit=arguments.questions,
            )
            rounds = Rounds(first=arguments.first, cold=arguments.cold, edits=arguments.edits)
            kept = arguments.out or RESULTS
            compare(arguments.only, work, folder=folder, tools=TOOLS, rounds=rounds, kept=kept)
        tell(f"kept in {kept}")
    if not arguments.out:
        PAGE.write_text(page_of(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
        tell(f"written to {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
