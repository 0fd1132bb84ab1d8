"""Nothing of whoever runs the tests may count: no key that sends texts away, no machine that is slow."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pkgutil
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import coverage
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from tests.support.examples import examples
from tests.support.traced import forbid

from plainmind.embed.protocol import KEY_VARIABLES

# The floors of coverage are reached by the tests of each package alone, and tracing doubles the time of a test. So it
# leaves out what repeats them to see that something survives, and of the cases of one test all but the first.
UNTRACED = frozenset(
    {
        "benchmarks", "contracts", "evals", "faults", "fuzz", "integration", "scripts", "simulation", "soak",
        "training",
    }
)  # fmt: skip
TRACED_CASES = 2
# What a test runs again after this much of the processor's time it has run before.
TRACED_S = 0.5
PURE = frozenset({"text", "search", "test_plan.py"})  # whose every branch must be seen
# These show lines of the pure packages too, some of them late.
UNHURRIED = PURE | {"index", "memory"}
PURE_CODE = ("plainmind.text", "plainmind.search", "plainmind.index.plan")
SLOW = frozenset({"faults", "integration", "training"})
IS_TRACED = pytest.StashKey[bool]()
# A time-out ends what would never end; a machine that is busy with something else takes its time.
PATIENCE_S = 120

# A thousand processes are started: what they import is compiled once, and not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# None where nobody wants to know: the tracer of this process, which `current` does not tell while it pauses.
TRACER = coverage.Coverage.current()
# What the interpreter calls for each line while it is on.
TRACE = pytest.StashKey[object]()

settings.register_profile(
    "plainmind", deadline=None, max_examples=examples(), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("plainmind")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Files with slow tests first: at the end there are small ones left, to be shared among the workers.
    slow = {item.path for item in items if is_slow(item)}
    items.sort(key=lambda item: item.path not in slow)
    cases: Counter[str] = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        item.stash[IS_TRACED] = is_worth_tracing(item, cases[test])
    if config.getoption("--timeout") is not None:
        return
    for item in items:
        given = item.get_closest_marker("timeout")
        if given is not None and given.args[0] < PATIENCE_S:
            item.add_marker(pytest.mark.timeout(PATIENCE_S), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hide what was imported and collected from the collector of garbage: it lives as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace a test, or pause for those that show nothing new: changing costs more than many a test."""
    if TRACER is not None:
        trace(TRACER, item.config, wanted=item.stash[IS_TRACED])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Have the test's own lines traced, and not those of pytest between two tests."""
    with traced_lines(pyfuncitem.config, is_short=UNHURRIED.isdisjoint(place_of(pyfuncitem))):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Have what is made ready for a test traced too."""
    with traced_lines(request.config, is_short=True):
        return (yield)


@contextmanager
def traced_lines(config: pytest.Config, *, is_short: bool) -> Iterator[None]:
    """Trace while this lasts; what is short, only until it has taken so long that it must be repeating itself."""
    trace = config.stash.get(TRACE, None)
    if trace is None:
        yield
        return
    if is_short:
        signal.signal(signal.SIGPROF, lambda *_: sys.settrace(None))
        signal.setitimer(signal.ITIMER_PROF, TRACED_S)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
        if is_short:
            signal.setitimer(signal.ITIMER_PROF, 0)


def trace(tracer: coverage.Coverage, config: pytest.Config, *, wanted: bool) -> None:
    is_on = coverage.Coverage.current() is tracer
    if wanted and not is_on:
        tracer.start()
        forbid_tracing_of_children()
        forget_answers()
    elif is_on and not wanted:
        tracer.stop()
    if is_on != wanted or TRACE not in config.stash:
        config.stash[TRACE] = sys.gettrace() if wanted else None  # one that was stopped may still be there
        sys.settrace(None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write down what was traced: a worker that takes more than ten seconds to end is killed."""
    if TRACER is not None and "PYTEST_XDIST_WORKER" in os.environ:
        if coverage.Coverage.current() is TRACER:
            TRACER.stop()
        TRACER.save()


def forbid_tracing_of_children() -> None:
    """A worker is traced, the processes that its tests start are not: that takes them longer than to start."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        forbid()


@functools.cache
def pure_modules() -> list[object]:
    return [importlib.import_module(name) for name in pure_names()]


def pure_names() -> Iterator[str]:
    for name in PURE_CODE:
        yield name
        package = importlib.import_module(name)
        yield from (
            f"{name}.{inner.name}" for inner in pkgutil.iter_modules(getattr(package, "__path__", ()))
        )


def forget_answers() -> None:
    """Have pure code work out again what it keeps for the rest of the process: an earlier test was not watched."""
    for module in pure_modules():
        for function in vars(module).values():
            if isinstance(function, functools._lru_cache_wrapper):
                function.cache_clear()


def is_worth_tracing(item: pytest.Item, case: int) -> bool:
    if is_slow(item) or not UNTRACED.isdisjoint(place_of(item)):
        return False
    has_examples = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
    return not PURE.isdisjoint(place_of(item)) or (case <= TRACED_CASES and not has_examples)


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None or not SLOW.isdisjoint(place_of(item))


def place_of(item: pytest.Item) -> list[str]:
    """The folders of its file, and the file."""
    return item.nodeid.partition("::")[0].split("/")


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


# What is run once a process, when it is imported, is seen now or never.
if TRACER is not None:
    forbid_tracing_of_children()
    pure_modules()
