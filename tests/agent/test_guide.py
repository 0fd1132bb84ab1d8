"""The guide about building an agent: its Python is run, word for word, against a scripted model."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.scripted_chat_model import KEY, Say, in_order, scripted_model

from plainmind.sessions.store import SessionStore

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "build-an-agent.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_of_the_guide_does_what_it_says(tmp_path, monkeypatch, capsys):
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PLAINMIND_PROVIDER", "none")
    with scripted_model(in_order(Say("Under the fern."))) as server:
        monkeypatch.setenv("PLAINMIND_CHAT_BASEURL", server.openai_url)
        monkeypatch.setenv("PLAINMIND_CHAT_APIKEY", KEY)
        monkeypatch.setenv("PLAINMIND_CHAT_MODEL", "larch-1")
        for block in blocks():
            exec(compile(block, str(GUIDE), "exec"), {"__name__": "guide"})

    assert len(blocks()) == 2
    assert capsys.readouterr().out == "Under the fern.nothing\n"
    store = SessionStore(tmp_path / "home" / "agents" / "main" / "sessions")
    assert {row.key for row in store.list()} == {"agent:main:kitchen", "agent:main:mine"}
    assert store.entry("agent:main:mine")["memoryFlushCompactionCount"] == 0


def test_the_guide_names_files_that_are_there():
    package = GUIDE.parents[2] / "src" / "plainmind"
    named = re.findall(r"`(guests/chat/[\w/.]+)`", GUIDE.read_text(encoding="utf-8"))

    assert len(named) >= 5
    assert all((package / name).exists() for name in named)
