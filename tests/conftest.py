"""Nothing of whoever runs the tests may count: no key that sends texts away, no machine that is slow."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from plainmind.embed.protocol import KEY_VARIABLES

# A time-out ends what would never end; a machine that is busy with something else takes its time.
PATIENCE_S = 120

settings.register_profile("plainmind", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plainmind")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--timeout") is not None:
        return
    for item in items:
        given = item.get_closest_marker("timeout")
        if given is not None and given.args[0] < PATIENCE_S:
            item.add_marker(pytest.mark.timeout(PATIENCE_S), append=False)


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
