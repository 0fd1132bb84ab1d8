"""English words too common to say what a text is about."""

from __future__ import annotations

# "may" is missing on purpose: a month. So are "won" and "don": what is left of a contraction is a word too.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are aren as at be because been before being between both
    but by can cannot could couldn did didn do does doesn doing done during each either etc for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in
    into is isn it its itself just let ll me might more most mustn my myself neither no nor not of off
    on once only or other our ours ourselves over own please re s same shall she should shouldn so some
    such t than that the their theirs them themselves then there these they this those through to too
    under until up upon us ve very via was wasn we were weren what when where whether which while who
    whom whose why will with would wouldn yet you your yours yourself yourselves
    ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't
    needn't shan't shouldn't wasn't weren't won't wouldn't let's y'all dont didnt doesnt isnt wasnt im
    ive whats thats e.g i.e
    """.split()  # noqa: SIM905
)

# In capitals these are names, not function words.
ACRONYMS = frozenset({"IT", "US", "WHO"})
