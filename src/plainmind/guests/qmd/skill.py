"""`qmd skill` and `qmd skills`: what an agent is told about searching with `qmd`, shown, and put where agents look."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, make_folders, read_file
from plainmind.guests.qmd.desk import Line, Refusal

NAME = "qmd"
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skills")
_FILE = "SKILL.md"
_SKILL_USAGE = """\
Usage: qmd skill <show|install> [options]

Commands:
  show                 Print the skill
  install              Write it to ./.agents/skills/qmd

Options:
  --global             Write it to ~/.agents/skills/qmd
  --yes                Write it to .claude/skills/qmd as well
  -f, --force          Replace one that is there"""
_SKILLS_USAGE = """\
Usage: qmd skills <list|get|path> [options]

Commands:
  list                 Name the skills
  get <name>           Print one; --all prints all of them
  path [name]          Say where they are

Options:
  --json               Print JSON"""


def skill(line: Line, words: Sequence[str]) -> str:
    """Show the skill, or install it; what to print."""
    match words[0] if words else "help":
        case "show":
            return f"QMD Skill\n\n{_text()}"
        case "install":
            return _install(line)
        case "help":
            return _SKILL_USAGE
        case other:
            raise Refusal(f"Unknown subcommand: {other}\nRun 'qmd skill help' for usage")


def skills(line: Line, words: Sequence[str]) -> str:
    """List the skills, which is one, show it, or say where it is; what to print."""
    verb, *names = words or ["list"]
    if verb == "help":
        return _SKILLS_USAGE
    if any(name != NAME for name in names):
        raise Refusal(f"Skill not found: {next(name for name in names if name != NAME)}")
    folder = os.path.join(_FOLDER, NAME)
    match verb:
        case "list":
            about = _description()
            return _said(line, [{"name": NAME, "description": about}], f"  {NAME}  {about}")
        case "get" if names or line.has("all"):
            return _said(line, [{"name": NAME, "content": f"{_text()}\n"}], _text())
        case "get":
            raise Refusal("No skill name provided. Usage: qmd skills get <name>")
        case "path":
            where = {"name": NAME, "path": folder} if names else {"paths": [_FOLDER]}
            return _said(line, where, folder if names else _FOLDER)
        case other:
            raise Refusal(f"Unknown skills subcommand: {other}")


def _said(line: Line, data: object, text: str) -> str:
    return json.dumps({"success": True, "data": data}, ensure_ascii=False) if line.has("json") else text


def _text() -> str:
    return read_file(os.path.join(_FOLDER, NAME, _FILE)).decode().rstrip("\n")


def _description() -> str:
    found = (line for line in _text().splitlines() if line.startswith("description:"))
    return next(found, "").partition(":")[2].strip()


def _install(line: Line) -> str:
    """Write the skill where agents look for some; what is there is replaced only with `--force`."""
    top = os.path.expanduser("~") if line.has("global") else os.getcwd()
    places = [os.path.join(top, ".agents", "skills", NAME)]
    if line.has("yes"):
        places.append(os.path.join(top, ".claude", "skills", NAME))
    for place in places:
        if os.path.lexists(os.path.join(place, _FILE)) and not line.has("force"):
            raise Refusal(f"Skill already exists: {place} (use --force to replace it)")
    for place in places:
        make_folders(SYSTEM, place, 0o777)
        write_atomically(os.path.join(place, _FILE), f"{_text()}\n".encode(), mode=0o666)
    return "\n".join(f"✓ Installed the QMD skill to {place}" for place in places)
