"""A plug-in for pytest: tests that have not begun when the time is up are left out, and counted."""

from __future__ import annotations

import time

import pytest

_LEFT_OUT = "the time is up"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the time from the command line, so that xdist hands it to its workers."""
    parser.addoption("--budget", type=float, default=None, help="seconds after which no test is begun")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the clock when the tests are known: a busy machine must not spend all of the time on looking for them."""
    session.config.stash[_STARTED] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test that comes too late."""
    budget = item.config.getoption("--budget")
    if budget is not None and time.monotonic() - item.config.stash[_STARTED] > budget:
        pytest.skip(_LEFT_OUT)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were left out."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(_LEFT_OUT in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} tests did not fit into the time: `make test` runs them")


_STARTED: pytest.StashKey[float] = pytest.StashKey()
