"""The settings of the entry memory, `entries.*`."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from plainmind.base.value import value
from plainmind.config.kinds import ALLOWED, KEEPS, SENDS, Flag, Number, OneOf, Text, Whole, setting


@value
class EntryConfig:
    """The entry memory: single sentences with a category and an importance."""

    section = "entries"

    enabled: bool = setting(
        False, Flag(), SENDS, "Give agents the tools of the entry memory, beside those of the notes."
    )
    driver: str = setting(
        "lancedb", OneOf("lancedb", "sqlite"), KEEPS, "What finds entries again; LanceDB is an extra."
    )
    path: str = setting(
        "{home}/entries/{agentId}",
        Text(
            "a path in which nothing but {home} and {agentId} is filled in",
            shape=r"(?:[^{}]|\{home\}|\{agentId\})+",
        ),
        KEEPS,
        "Folder of the entries; `{home}` and `{agentId}` are filled in.",
    )
    auto_recall: bool = setting(
        True, Flag(), SENDS, "Begin a turn of `chat` with the entries that it is clearly about."
    )
    recall_max_results: int = setting(3, Whole(1, 20), ALLOWED, "Most entries that a turn begins with.")
    recall_min_score: float = setting(
        0.5, Number(0, 1), ALLOWED, "Entries that score less are not given without being asked for."
    )
    auto_capture: bool = setting(
        False, Flag(), KEEPS, "Propose what you say in `chat` for keeping; it waits until you accept it."
    )
    capture_max_chars: int = setting(500, Whole(100, 2_000), ALLOWED, "Longer messages are not proposed.")
    duplicate_from: float = setting(
        0.95, Number(0.5, 1), ALLOWED, "Similarity from which an entry may say the same as another."
    )
