"""What the page is made of: small, in five languages that say the same, and nothing that could parse HTML."""

from __future__ import annotations

import json
import re
from importlib.resources import files

STATIC = files("plainmind.guests.page") / "static"
# What would make text into elements or code.
PARSERS = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "eval(",
    "new Function",
    "srcdoc",
)


def flat(groups):
    found = {}
    for name, value in groups.items():
        if isinstance(value, str):
            found[name] = value
        else:
            found |= {f"{name}.{part}" if part else name: text for part, text in value.items()}
    return found


def texts(language):
    return flat(json.loads((STATIC / "texts" / f"{language}.json").read_text("utf-8")))


def scripts():
    return {path.name: path.read_text("utf-8") for path in STATIC.iterdir() if path.name.endswith(".js")}


def holes(text):
    return sorted(set(re.findall(r"\{(\w+)\}", text)))


def test_no_script_can_make_html_of_a_text():
    assert [(name, word) for name, text in scripts().items() for word in PARSERS if word in text] == []


def test_nothing_is_loaded_from_elsewhere():
    page = (STATIC / "index.html").read_text("utf-8")
    assert all(link.startswith("/static/") for link in re.findall(r'(?:src|href)="([^"]+)"', page))
    styles = (STATIC / "style.css").read_text("utf-8")
    assert "url(" not in styles
    assert "@import" not in styles


def test_every_text_that_a_script_names_is_there():
    known = texts("en")
    named = {name for text in scripts().values() for name in re.findall(r'\bt\("([^"]+)"', text)}
    assert sorted(named - known.keys()) == []
