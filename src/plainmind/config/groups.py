"""How settings are declared: values whose fields know their kind, their meaning and who may set them."""

from __future__ import annotations

from plainmind.base.value import field
from plainmind.config.kinds import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A project file comes with a checked-out repository, written by somebody else. What it may set is an
# allow-list: every setting says ALLOWED, or the reason why it is the user's alone.
ALLOWED = ""
SENDS = "it decides where your notes are sent"
SPENDS = "it decides which keys are used, and what for"
RUNS = "it decides which programs run on your machine"
READS = "it decides which of your files are read"
KEEPS = "it decides where your data is kept, and for how long"
SHOWS = "it decides who gets to see your memory"
SPEAKS = "it gives instructions to the model"


def setting(
    default: Any, kind: Kind, project: str, doc: str, *, name: str | None = None, secret: bool = False
) -> Any:
    """Declare one setting.

    `project` is the reason why a project file may not set it, empty when it may; `name` is its key in files,
    where the attribute in camelCase is not it.
    """
    facts = {"kind": kind, "doc": doc, "project": project, "name": name, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=facts, repr=not secret)
    return field(default=default, metadata=facts, repr=not secret)


def group(kind: type[Any], *, name: str | None = None) -> Any:
    """Declare a group within a group."""
    return field(default_factory=kind, metadata={"group": kind, "name": name})
