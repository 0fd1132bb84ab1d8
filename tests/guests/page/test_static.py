"""What the page is made of: small, in five languages that say the same, and nothing that could parse HTML."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files

import pytest
from pack_page import all_packed, pack_script

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


@pytest.mark.parametrize("language", ["zh-Hans", "ja", "ko", "de"])
def test_every_language_says_all_of_it_with_the_same_holes(language):
    english, other = texts("en"), texts(language)
    assert sorted(english.keys() ^ other.keys()) == []
    assert [
        name for name, text in english.items() if holes(text) != holes(other[name]) and "|" not in text
    ] == []
    assert [name for name, text in other.items() if not set(holes(text)) <= set(holes(english[name]))] == []


def test_in_the_wheel_the_page_is_small():
    page = all_packed()
    assert sum(map(len, page.values())) <= 150 * 1024
    assert len(gzip.compress(b"".join(page.values()), 9)) <= 52 * 1024


def test_packing_takes_space_and_nothing_else():
    script = 'a = 1; // one\n/** two */\na + +a;\nf(/[/ ]"x"/g, `y  ${ g({ z: "  " }) }  `)\nb / 2 / c\nx({ c, });\n'
    packed = 'a=1;a+ +a;f(/[/ ]"x"/g,`y  ${ g({ z: "  " }) }  `)\nb/2/c\nx({c});\n'
    assert pack_script(script) == packed
