"""Sessions in both formats, as the tests of sessions have them."""

from tests.sessions.conftest import store, written_as

__all__ = ["store", "written_as"]
