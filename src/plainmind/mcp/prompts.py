"""Prompts that a person picks in their client: what is known of something, an answer from memory, a thing to keep."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_CHARS = 4_000  # of an argument


@value
class Prompt:
    """A prompt with one argument. `searches` says whether what is found for it comes along, between marks."""

    name: str
    title: str
    description: str
    argument: str
    about: str  # the argument
    tool: str  # without it the prompt is not offered
    words: str
    searches: bool = True


_PROMPTS = (
    Prompt(
        "recall",
        "Answer from memory",
        "Answer a question from the memory, with the places that say so.",
        "question",
        "What you want to know.",
        "memory_search",
        "Answer this from my memory, and name the places that you take it from:\n\n{given}\n\n"
        "This is what a first search found. If it does not answer the question, search in other words with"
        " memory_search; if that finds nothing either, say so.",
    ),
    Prompt(
        "remember",
        "Keep in memory",
        "Save something to the memory, so that it makes sense in a year.",
        "text",
        "What to keep.",
        "memory_append",
        "Save this to my memory with memory_append, in sentences that make sense in a year and without this"
        " conversation; `durable` if it stays true, as a preference or a fact about a person does. Then tell me in"
        " one line what you saved and where.\n\n{given}",
        searches=False,
    ),
    Prompt(
        "what-do-you-know-about",
        "What do you know about …",
        "Gather everything that the memory says about a person, a project or a thing.",
        "topic",
        "A person, a project, a thing.",
        "memory_search",
        "Tell me everything that my memory says about this: {given}\n\n"
        "Below is what a first search found. Search again with memory_search under other names and words, read around"
        " what you find with memory_get, and then put it in order: what is so now, what was before and when it changed,"
        " what is open. Name the place of each, and say where two places contradict each other.",
    ),
)


def prompts_with(tool_names: Collection[str]) -> list[dict[str, Any]]:
    """The prompts that can be followed with these tools, as MCP lists them."""
    return [
        {
            "name": one.name,
            "title": one.title,
            "description": one.description,
            "arguments": [{"name": one.argument, "description": one.about, "required": True}],
        }
        for one in _PROMPTS
        if one.tool in tool_names
    ]


def prompt_messages(
    tool_names: Collection[str], name: str, arguments: Mapping[str, Any], search: Callable[[str], str]
) -> dict[str, Any]:
    """The prompt with its argument filled in, in the user's role; `search` gives fenced text. Raises PlainmindError."""
    known = [one for one in _PROMPTS if one.tool in tool_names]
    prompt = next((one for one in known if one.name == name), None)
    if prompt is None:
        names = ", ".join(one.name for one in known)
        raise PlainmindError(f"there is no prompt `{name[:100]}` here", hint=f"choose from {names}")
    given = arguments.get(prompt.argument)
    if not isinstance(given, str) or not given.strip():
        raise PlainmindError(
            f"the prompt `{name}` needs `{prompt.argument}`", hint="give it as a text that is not empty"
        )
    given = given.strip()[:_MOST_CHARS]
    told = [prompt.words.format(given=given)]
    if prompt.searches:
        told.append(search(given))
    message = {"role": "user", "content": {"type": "text", "text": "\n\n".join(told)}}
    return {"description": prompt.description, "messages": [message]}
