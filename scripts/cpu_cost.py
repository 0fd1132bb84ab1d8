"""What each test costs in CPU seconds, with the processes it started and waited for: a plug-in of pytest.

Seconds on a clock say little on a machine that does other things too. `make costs` prints the files and the tests
that cost most; a fixture counts to the first test that uses it, and its end to the last.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

MOST = 25


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Costs:
    """The costs of one run: measured where a test runs, added up where its reports arrive."""

    def __init__(self) -> None:
        self._by_test: dict[str, float] = {}
        self._before = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Count from here: what happened between two tests belongs to neither."""
        self._before = cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give each part of a test its share."""
        report = yield
        now = cpu_seconds()
        report.user_properties.append(("cpu_s", now - self._before))
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the parts of a test."""
        seconds = sum(
            value for name, value in report.user_properties if name == "cpu_s" and type(value) is float
        )
        self._by_test[report.nodeid] = self._by_test.get(report.nodeid, 0.0) + seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what costs most, files first."""
        by_file: dict[str, float] = {}
        for test, seconds in self._by_test.items():
            file = test.partition("::")[0]
            by_file[file] = by_file.get(file, 0.0) + seconds
        whole = sum(by_file.values())
        terminalreporter.section(f"{whole:.0f} CPU seconds in {len(self._by_test):,} tests")
        for costs in (by_file, self._by_test):
            for name, seconds in Counter(costs).most_common(MOST):
                terminalreporter.write_line(f"{seconds:8.1f}  {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no costs."""
    config.pluginmanager.register(Costs())
