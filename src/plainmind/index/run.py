"""One pass over the files: where it writes, how that index is made, and what it held at the start."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.model import FileState, IndexFingerprint
from plainmind.base.value import record
from plainmind.index.plan import Conditions
from plainmind.index.tally import FileKey, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from plainmind.index.protocol import IndexStore

# Why a file was not written: somebody else was quicker, or text was erased from it.
Left: TypeAlias = "Literal['overtaken', 'erased']"


@record
class Run:
    """What a pass works with."""

    store: IndexStore
    made: IndexFingerprint
    known: Mapping[FileKey, FileState]
    tally: Tally
    conditions: Conditions
    is_whole: bool = False  # all vectors, or nothing
    is_fresh: bool = False  # into an index that is being built, and that nobody reads yet
