"""Property tests here are bounded by the time-out of the test, not by the time of one example on a busy machine."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
