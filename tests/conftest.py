"""Nothing of whoever runs the tests may count: least of all a key that would send their texts away."""

from __future__ import annotations

import pytest

from commonplace.embedding.settings import KEY_VARIABLES


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in KEY_VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
