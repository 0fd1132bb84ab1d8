"""`plainmind qmd`: what QMD says to the same words, and answers where it has none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from tests.support.qmd_recordings import RECORDED, make_notes, normal, play

from plainmind.guests.qmd.catalogue import Catalogue, Whereabouts, read_yaml
from plainmind.guests.qmd.commands import run
from plainmind.guests.qmd.desk import Refusal, questions_in, read_line

SHARED = Path(__file__).resolve().parents[4] / "shared" / "hosts" / "qmd-golden"
PROGRAM = Path(sys.executable).with_name("plainmind")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with notes, in which the words are said."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "QMD_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_notes(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def qmd(home, capsys):
    """Say words to QMD: exit status, what it answers, and what it says beside."""

    def say(*words):
        status = run(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return say


@pytest.fixture
def boat(qmd):
    qmd("collection", "add", "boat", "--name", "boat")
    return qmd


def found(answer):
    return [item["file"] for item in json.loads(answer[1])]


def test_every_line_is_answered_as_qmd_has_answered_it(qmd, home):
    recorded = json.loads(RECORDED.read_text())

    ours = play(lambda line: qmd(*line), home)

    for theirs, own in zip(recorded, ours, strict=True):
        assert own == theirs


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings beside this repository are not here")
def test_it_answers_as_in_the_recordings_beside_this_repository(qmd, home):
    notes = {
        "network.md": "# Network\n\nThe gateway runs on the Hetzner box called tern.\n\n## Printer\n\nThe printer is on VLAN 40.\n",  # noqa: E501
        "sub/lunch.md": "# Lunch\n\nAnna likes soup.\nGateway again here.\n",
    }
    for name, text in notes.items():
        (home / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "notes" / name).write_text(text)
    # The version, the help and the answer to a question are ours; of several results the order is.
    ours = {"01-version.txt", "30-help.txt", "33-question.txt"}
    two_results = re.compile("(?:09|1[0-4])-search-")
    for path in sorted(SHARED.iterdir()):
        line, out, err, status = re.fullmatch(
            r"\$ qmd (.*?)\n--- stdout\n(.*)--- stderr\n(.*)--- rc (\d+)\n*", path.read_text(), re.DOTALL
        ).groups()
        words = line.replace("HOME/", f"{home}/").split()
        answer = qmd(*words)
        if path.name in ours:
            continue
        assert answer[0] == int(status), path.name
        assert normal(answer[2], home) == normal(err, home), path.name
        own, theirs = normal(answer[1], home).rstrip(), normal(out, home).rstrip()
        if two_results.match(path.name):
            assert in_any_order(own) == in_any_order(theirs), path.name
        else:
            assert own == theirs, path.name


def in_any_order(text):
    """Results, or lines that say something, sorted."""
    if text.startswith("["):
        return sorted(json.loads(text), key=lambda item: item["file"])
    return sorted(line for line in text.split("\n") if line)


def test_a_question_in_words_is_answered_where_qmd_is_silent(boat):
    assert found(boat("search", "which wood are the planks of", "--json")) == ["qmd://boat/hull.md"]
    assert (
        found(boat("query", "who made the mainsail?", "--json", "--no-rerank"))[0]
        == "qmd://boat/rig/sails.md"
    )
    assert found(boat("vsearch", "timber of the mast", "--json")) == ["qmd://boat/rig/mast.md"]
    assert found(boat("search", "who is the president of France", "--json")) == []


def test_a_typed_query_asks_each_of_its_lines(boat):
    answer = boat("query", "lex: larch\nvec: who made the mainsail", "--json", "--no-rerank", "-n", "2")

    assert set(found(answer)) == {"qmd://boat/hull.md", "qmd://boat/rig/sails.md"}
    assert questions_in("intent: boats\nvec: b\nlex: a") == ["a", "b"]
    assert questions_in("expand: which wood") == ["which wood"]
    for wrong, sentence in (
        ("lex: a\nb", "Line 2 is missing a lex:/vec:/hyde:/intent: prefix"),
        ("lex:", "Line 1 \\(lex:\\) must include text"),
        ("expand: a\nlex: b", "cannot mix expand"),
        ("intent: a", "intent: cannot appear alone"),
        ("intent: a\nintent: b\nlex: c", "only one intent:"),
    ):
        with pytest.raises(Refusal, match=sentence):
            questions_in(wrong)


def test_an_edit_is_seen_by_the_next_search(boat, home):
    assert found(boat("search", "titanium", "--json")) == []

    (home / "boat" / "hull.md").write_text("# Hull\n\nThe keel is of titanium.\n")

    assert found(boat("search", "titanium", "--json")) == ["qmd://boat/hull.md"]
    assert "0 new, 0 updated, 3 unchanged" in boat("update")[1]
    (home / "boat" / "hull.md").unlink()
    assert found(boat("search", "titanium", "--json")) == []


def test_the_database_that_programs_look_into_knows_every_docid(boat, home):
    items = json.loads(boat("search", "larch", "--json")[1])

    database = apsw.Connection(str(home / ".cache/qmd/index.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    for item in items:
        rows = database.execute(
            "SELECT collection, path FROM documents WHERE hash LIKE ? AND active = 1",
            (f"{item['docid'].removeprefix('#')}%",),
        ).fetchall()
        assert [f"qmd://{collection}/{path}" for collection, path in rows] == [item["file"]]
        assert boat("get", item["docid"])[1].startswith(item["file"])


def test_the_index_of_the_real_program_is_left_alone(qmd, home):
    theirs = home / ".cache/qmd/index.sqlite"
    theirs.parent.mkdir(parents=True)
    database = apsw.Connection(str(theirs))
    database.execute("CREATE TABLE content (hash TEXT PRIMARY KEY)")
    database.close()
    before = theirs.read_bytes()

    qmd("collection", "add", "boat")

    assert found(qmd("search", "larch", "--json")) == ["qmd://boat/hull.md"]
    assert theirs.read_bytes() == before


def test_a_file_in_two_collections_is_found_once(boat):
    boat("collection", "add", "boat/rig", "--name", "rig")

    assert found(boat("search", "spruce", "--json", "-c", "rig")) == ["qmd://rig/mast.md"]
    assert len(found(boat("search", "spruce", "--json"))) == 1


def test_other_files_than_markdown_and_ignored_ones(qmd, home):
    qmd("collection", "add", "boat", "--mask", "**/*.{md,txt}")
    assert "qmd://boat/log.txt" in found(qmd("search", "larch", "--json"))

    Catalogue(Whereabouts(str(home / ".config/qmd/index.yml"), "")).change("boat", ignore=["rig/**"])

    assert found(qmd("search", "spruce", "--json")) == []
    assert "Ignore:   rig/**" in qmd("collection", "list")[1]


def test_a_named_index_is_another_one(boat):
    boat("collection", "add", "shed", "--index", "work")

    assert found(boat("search", "adze", "--json")) == []
    assert found(boat("search", "adze", "--json", "--index", "work")) == ["qmd://shed/tools.md?index=work"]


def test_the_index_of_a_project_reads_nothing_outside_and_runs_nothing(qmd, home, monkeypatch):
    monkeypatch.chdir(home / "boat")
    assert qmd("init")[:2] == (0, "ready to go with new local index\n")
    qmd("collection", "add", ".", "--name", "here")
    config = home / "boat/.qmd/index.yml"
    found_there = json.loads(config.read_text())
    found_there["collections"]["there"] = {"path": str(home / "shed"), "pattern": "**/*.md"}
    found_there["collections"]["here"]["update"] = "touch ran"
    config.write_text(json.dumps(found_there))

    answer = qmd("search", "adze", "--json")
    qmd("update")

    assert found(answer) == []
    assert "'there' is left out" in answer[2]
    assert not (home / "boat" / "ran").exists()
    monkeypatch.chdir(home)
    assert "Refusing to initialize a local index in $HOME" in qmd("init")[2]


# --- the words, and the file of collections ---


def test_words_are_read_as_qmd_reads_them():
    line = read_line(
        ["search", "--json", "-n", "4", "a", "-c", "x", "--collection=y", "-n5", "--wild", "--", "-b"]
    )

    assert line.words == ["search", "a", "-b"]
    assert (line.options["n"], line.collections, line.has("wild"), line.format) == (
        "5",
        ["x", "y"],
        True,
        "json",
    )


def test_what_programs_look_for_in_the_help_is_there(qmd):
    status, text, _ = qmd("--help")

    assert status == 0
    assert re.search(r"one or more collections|collection\(s\)|multiple -c flags", text)
    assert qmd()[0] == 1
    assert qmd("--version")[1].startswith("qmd 2.8.3 (plainmind ")


@pytest.mark.parametrize(
    ("verb", "status"),
    [
        ("embed", 0),
        ("pull", 0),
        ("cleanup", 0),
        ("doctor", 0),
        ("trust", 1),
        ("skill", 0),
        ("skills", 0),
    ],
)
def test_what_needs_no_doing_says_so_and_what_is_elsewhere_says_where(boat, verb, status):
    answer = boat(verb)

    assert answer[0] == status
    assert (answer[1] if status == 0 else answer[2]).strip()


def test_a_fixture_for_the_real_one_measures_ours(boat, tmp_path):
    queries = [
        {
            "id": "wood",
            "query": "which wood are the planks of",
            "expected_files": ["hull.md"],
            "expected_in_top_k": 1,
        },
        {"id": "two", "query": "lex: larch\nvec: planks", "expected_files": ["hull.md", "nowhere.md"]},
    ]
    (tmp_path / "fixture.json").write_text(
        json.dumps({"version": 1, "collection": "boat", "queries": queries})
    )

    status, told, _ = boat("bench", "fixture.json", "--json")
    measured = json.loads(told)
    table = boat("bench", "fixture.json")[1]

    assert status == 0
    assert list(measured["summary"]) == ["bm25", "vector", "hybrid", "full"]
    wood, two = (row["backends"]["full"] for row in measured["results"])
    assert (wood["precision_at_k"], wood["mrr"], wood["f1"]) == (1, 1, 1)
    assert (two["recall"], two["unmatched_expected_files"]) == (0.5, ["nowhere.md"])
    assert measured["summary"]["full"]["avg_recall"] == 0.75
    assert "wood                      full      1.00" in table
    assert boat("bench")[0] == boat("bench", "nope.json")[0] == 1
    (tmp_path / "fixture.json").write_text('{"queries": [{"id": "x"}]}')
    assert "Invalid fixture" in boat("bench", "fixture.json")[2]


YAML = """\
# mine
global_context: Things of Ana
collections:
  boat: # in the harbour
    path: {home}/boat
    pattern: "**/*.md"
    ignore:
      - node_modules/**
      - 'it''s/**'
    context:
      "": All about the boat
      /rig: |-
        What catches
        the wind
  shed:
    path: {home}/shed
    pattern: '*.md'
    includeByDefault: false
models:
  embed: hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf
"""


def test_collections_that_were_made_with_qmd_are_there(qmd, home):
    config = home / ".config/qmd/index.yml"
    config.parent.mkdir(parents=True)
    config.write_text(YAML.format(home=home))

    item = json.loads(qmd("search", "reefs", "--json")[1])[0]

    assert item["context"] == "Things of Ana\n\nAll about the boat\n\nWhat catches\nthe wind"
    assert found(qmd("search", "adze", "--json")) == []
    qmd("collection", "include", "shed")
    kept = json.loads(config.read_text())
    assert kept["models"] == {"embed": "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf"}
    assert kept["collections"]["boat"]["ignore"] == ["node_modules/**", "it's/**"]
    assert found(qmd("search", "adze", "--json")) == ["qmd://shed/tools.md"]


@pytest.mark.parametrize(
    "text",
    [
        "collections: &a\n  x: *a\n",
        "collections:\n  - {a\n",
        'a: "b\n',
        "a: 1\n   b: 2\n",
        "a: 'b\n",
        "- x\n",
    ],
)
def test_a_file_of_collections_that_cannot_be_read_gets_a_sentence_and_stays(qmd, home, text):
    config = home / ".config/qmd/index.yml"
    config.parent.mkdir(parents=True)
    config.write_text(text)

    status, out, err = qmd("collection", "add", "boat")

    assert (status, out) == (1, "")
    assert f"{config} cannot be read" in err
    assert "nothing was changed" in err
    assert config.read_text() == text


def test_what_yaml_says_is_read():
    assert read_yaml("a:\nb: >\n  one\n  two\nc: true\nd: []\n---\n") == {
        "a": None,
        "b": "one two\n",
        "c": True,
        "d": [],
    }
    assert read_yaml("") is None


def test_a_link_called_qmd_is_qmd(home):
    link = home / "bin" / "qmd"
    link.parent.mkdir()
    link.symlink_to(PROGRAM)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def qmd(*words):
        return subprocess.run(
            [link, *words], cwd=home, env=environ, capture_output=True, text=True, check=False, timeout=60
        )

    assert qmd("collection", "add", "boat").returncode == 0
    assert json.loads(qmd("search", "larch", "--json").stdout)[0]["file"] == "qmd://boat/hull.md"
    wrong = qmd("search", "larch", "-c", "nope", "--json")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (1, "", "Collection not found: nope\n")
    shutil.rmtree(home / "boat")
    assert qmd("search", "larch", "--json").stdout == "[]\n"


def test_what_files_are_about_is_said_and_taken_back_without_a_trace(qmd, home):
    config = home / ".config/qmd/index.yml"
    config.parent.mkdir(parents=True)
    config.write_text(YAML.format(home=home))
    for place in ("/", "qmd://shed"):
        assert qmd("context", "add", place, "Tools of Ana")[0] == 0
    told = json.loads(config.read_text())
    assert (told["global_context"], told["collections"]["shed"]["context"]) == (
        "Tools of Ana",
        {"": "Tools of Ana"},
    )

    for place in ("/", "qmd://shed"):
        assert qmd("context", "rm", place)[0] == 0

    kept = json.loads(config.read_text())
    assert "global_context" not in kept
    assert "context" not in kept["collections"]["shed"]
