"""The tools of the notes and of the entries as one box, in which forgetting means both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from plainmind.agent.recall import Recalled, fence, new_nonce
from plainmind.agent.tools import answers
from plainmind.agent.tools.answers import ToolAnswer
from plainmind.agent.tools.calling import carried_out, code_of
from plainmind.agent.tools.definitions import Tool
from plainmind.agent.tools.toolbox import ToolBox
from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.guests.entries.definitions import ALL_TOOLS, FORGET, FORGET_EVERYWHERE, RECALL, STORE
from plainmind.guests.entries.tools import EntryToolBox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OF_ENTRIES = (STORE, RECALL, FORGET)


class AllTools:
    """Both sets within one conversation. `close` closes the boxes, and then whatever is given as `on_close`."""

    def __init__(
        self,
        notes: ToolBox,
        entries: EntryToolBox,
        tools: Sequence[Tool] = ALL_TOOLS,
        *,
        nonce: Callable[[], str] = new_nonce,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._notes = notes
        self._entries = entries
        self._tools = {tool.name: tool for tool in tools}
        self._nonce = nonce
        self._on_close = on_close

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""
        return tuple(self._tools.values())

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""
        tool = self._tools.get(name)
        if tool is None or tool is FORGET_EVERYWHERE:
            calls = {"memory_forget": self._forget}
            return carried_out(name, arguments, tools=self._tools, calls=calls, explained=_explained)
        box = self._entries if tool in _OF_ENTRIES else self._notes
        return box.call(name, arguments)

    def close(self) -> None:
        """Wait for what nobody waits for any more."""
        self._notes.close()
        self._entries.close()
        self._on_close()

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        """Show what would go of both, or let it go. The code stands for everything that was shown."""
        boxes = (self._entries,) if self._entries.has_entry(what) else (self._notes, self._entries)
        seen = [(box, box.call("memory_forget", {"what": what})) for box in boxes]
        for _, answer in seen:
            if answer.is_error and answer.content["status"] != "not_found":
                return answer
        seen = [(box, answer) for box, answer in seen if not answer.is_error]
        if not seen:
            return answers.failed(
                "memory_forget",
                "MEMORY_NOT_FOUND",
                "no note and no entry has this",
                "search or recall it first, and give its place, its id or its words",
                {"status": "not_found"},
            )
        code = sha256_text(" ".join(answer.content["confirm"] for _, answer in seen))[:8]
        if confirm is not None and confirm.strip() == code:
            return _joined([box.call("memory_forget", _confirmed(what, answer)) for box, answer in seen])
        return self._preview([answer.content for _, answer in seen], code, is_wrong=confirm is not None)

    def _preview(self, seen: Sequence[Mapping[str, Any]], code: str, *, is_wrong: bool) -> ToolAnswer:
        lines = [line for part in seen for line in part.get("lines", ())]
        entries = [entry for part in seen for entry in part.get("entries", ())]
        total = sum(part.get("total", len(part.get("entries", ()))) for part in seen)
        content: dict[str, Any] = {
            "status": "preview",
            "lines": lines,
            "entries": entries,
            "total": total,
            "confirm": code,
        }
        warning = ""
        if is_wrong:
            warning = (
                "This code does not stand for this: the memory has changed, or the code is another one's."
            )
            content["warning"] = warning
        items = [Recalled(one["path"], one["text"], one["startLine"], one["endLine"]) for one in lines]
        items += [Recalled(f"entry {one['id']}", one["text"], source="entries") for one in entries]
        told = (
            warning,
            f"Nothing was removed yet. {_places(total)} would be removed for good.",
            f"Only the first {len(items)} are shown." if len(items) < total else "",
            fence(items, self._nonce()),
            f'If the user agrees, call memory_forget again with the same `what` and "confirm": "{code}".',
        )
        return ToolAnswer(content, "\n".join(filter(None, told)), is_error=is_wrong)


def _confirmed(what: str, answer: ToolAnswer) -> dict[str, str]:
    return {"what": what, "confirm": answer.content["confirm"]}


def _joined(done: Sequence[ToolAnswer]) -> ToolAnswer:
    """Say what went; and when something did not, that and why."""
    gone = [answer.content for answer in done if answer.content["status"] == "forgotten"]
    content: dict[str, Any] = {
        "status": "forgotten",
        "total": sum(part["total"] for part in gone),
        "places": [place for part in gone for place in part.get("places", ())],
        "ids": [id_ for part in gone for id_ in part.get("ids", ())],
    }
    text = f"Removed for good: {_places(content['total'])}."
    left = next((answer for answer in done if answer.content["status"] != "forgotten"), None)
    if left is None:
        return ToolAnswer(content, text)
    why = {
        name: left.content[name] for name in ("code", "error", "action", "warning") if name in left.content
    }
    return ToolAnswer(
        {**content, **why, "status": "error"}, f"{text}\nThe rest is still there.\n{left.text}", is_error=True
    )


def _places(total: int) -> str:
    return f"{total} {'place' if total == 1 else 'places'}"


def _explained(name: str, error: PlainmindError) -> ToolAnswer:
    return answers.failed(name, code_of(error), str(error), error.hint)
