"""Nothing of whoever runs the tests may count: no key that sends texts away, no machine that is slow."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator

import coverage
import pytest
from hypothesis import HealthCheck, settings

from plainmind.embed.protocol import KEY_VARIABLES

UNTRACED = frozenset({"faults", "integration"})
# What the servers of these tests run is run by those of others too, which are traced.
UNTRACED_CHILDREN = frozenset({"test_second_client.py", "test_startup.py", "test_stdio.py"})
TRACES_CHILDREN = "COVERAGE_PROCESS_CONFIG"
# A time-out ends what would never end; a machine that is busy with something else takes its time.
PATIENCE_S = 120

# A thousand processes are started: what they import is compiled once, and not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("plainmind", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plainmind")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Files with slow tests first: at the end there are small ones left, to be shared among the workers.
    slow = {item.path for item in items if is_slow(item)}
    items.sort(key=lambda item: item.path not in slow)
    if config.getoption("--timeout") is not None:
        return
    for item in items:
        given = item.get_closest_marker("timeout")
        if given is not None and given.args[0] < PATIENCE_S:
            item.add_marker(pytest.mark.timeout(PATIENCE_S), append=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Do not trace slow tests, nor the processes that they start: it doubles their time.

    They repeat what other tests do, to see that it survives; the coverage floors are reached without them.
    """
    tracer = coverage.Coverage.current()
    is_untraced = is_slow(item)
    if tracer is None or not (is_untraced or item.path.name in UNTRACED_CHILDREN):
        return (yield)
    for_children = os.environ.pop(TRACES_CHILDREN, None)
    if is_untraced:
        tracer.stop()
    try:
        return (yield)
    finally:
        if is_untraced:
            tracer.start()
        if for_children is not None:
            os.environ[TRACES_CHILDREN] = for_children


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None or not UNTRACED.isdisjoint(item.path.parts)


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
