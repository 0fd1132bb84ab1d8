"""The memory with QMD as its engine, and a program in its place that can be told to fail."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager

import pytest
from tests.support.transcript_files import line

from plainmind import Memory, ScopeDenied, SearchContext
from plainmind.base.errors import ConfigError, NotFound, PathNotAllowed
from plainmind.memory.backend import Upkeep

GROUP = SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100")
pytestmark = pytest.mark.timeout(60)
LONG = 45.0  # seconds that nothing here takes, but for a program that sleeps for ten minutes
ALLOW_GROUPS = {"rules": [{"action": "allow", "match": {}}]}


@pytest.fixture
def workspace(workspace):
    (workspace / "memory/network.md").write_text("# Network\n\n- gull: builds\n- tern: the gateway\n")
    return workspace


@pytest.fixture
def memory_with(tmp_path, workspace, program):
    opened = []

    def make(*, limits=None, home="home", **qmd):
        settings = {
            "backend": "qmd",
            "qmd": {"command": str(program.path), "update": {"debounceMs": 0}, **qmd},
            "limits": limits or {"timeoutMs": 30_000},  # the machine may be busy
            "scope": ALLOW_GROUPS,
        }
        memory = Memory(workspace, tmp_path / home, settings)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@contextmanager
def at_most(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def paths(result):
    return [hit.path for hit in result.hits]


def test_the_engine_answers_with_our_paths_and_lines(memory_with):
    result = memory_with().search("tern gateway")

    assert (result.provider, result.mode, result.fallback) == ("qmd", "keyword", None)
    (hit,) = result.hits
    assert (hit.path, hit.start_line, hit.end_line) == ("memory/network.md", 3, 4)
    assert hit.snippet == "- gull: builds\n- tern: the gateway"


def test_it_is_told_what_to_index_once_and_asked_with_the_question_behind_all_options(memory_with, program):
    memory = memory_with()
    memory.search("gateway")
    memory.search("coffee")

    assert program.verbs == ["update", "search", "search"]
    argv = program.calls[-1]["argv"]
    assert argv[:4] == ["search", "--index", "index", "--json"]
    assert argv[-2:] == ["--", "coffee"]
    assert [argv[n + 1] for n, part in enumerate(argv) if part == "-c"] == [
        "memory-root-main",
        "memory-dir-main",
    ]


def test_its_home_is_its_own_and_the_keys_of_others_are_not_shown_to_it(
    memory_with, program, monkeypatch, tmp_path
):
    monkeypatch.setenv("CI", "")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")

    memory_with().search("gateway")

    call = program.calls[0]
    assert call["cwd"].startswith(str(tmp_path / "home/agents/main/qmd/ws-"))
    assert call["env"]["XDG_CACHE_HOME"].startswith(call["cwd"])
    assert call["env"]["NO_COLOR"] == "1"
    assert not {"CI", "SECRET_TOKEN"} & set(call["env"])


def test_what_was_just_written_is_found(memory_with):
    memory = memory_with()
    memory.search("gateway")

    memory.remember("the falcon nests at skagen")

    assert memory.search("falcon").provider == "qmd"
    assert "falcon" in memory.search("falcon").hits[0].snippet


def test_until_changes_have_settled_an_answer_says_that_they_are_missing(memory_with, workspace):
    memory = memory_with(update={"debounceMs": 60_000})
    memory.search("gateway")
    (workspace / "memory/network.md").write_text("# Network\n\n- tern: the gateway\n- heron: the gateway\n")

    result = memory.search("gateway")

    assert result.provider == "qmd"
    assert "has not seen the latest changes" in result.degraded[0]


def test_what_the_file_does_not_say_any_more_is_not_shown(memory_with, workspace):
    memory = memory_with(update={"debounceMs": 60_000})
    memory.search("gateway")
    (workspace / "memory/network.md").write_text("# Network\n\n- nothing here\n")

    assert memory.search("tern gateway").hits == ()


@pytest.mark.parametrize("fault", ["crash", "refuse", "garbage", "flood", "hang", "ignore-term", "escaped"])
def test_whatever_it_does_the_memory_answers_in_time_and_says_why(memory_with, program, fault):
    memory = memory_with(limits={"timeoutMs": 2000})
    memory.search("gateway")
    program.does(fault, when="search")

    with at_most(LONG):
        result = memory.search("gateway")

    assert paths(result) == ["memory/network.md"]
    assert (result.provider, result.fallback["from"], result.fallback["to"]) == ("builtin", "qmd", "builtin")
    assert memory.status()["fallback"]["reason"] in result.fallback["reason"]
    assert not memory.status()["engine"]["healthy"]
    assert program.all_gone_within()


def test_a_hanging_update_costs_no_answer_either(memory_with, program):
    program.does("hang", when="update")

    with at_most(LONG):
        result = memory_with(limits={"timeoutMs": 1500}).search("gateway")

    assert paths(result) == ["memory/network.md"]
    assert "took too long" in result.fallback["reason"]


@pytest.mark.parametrize("fault", ["abort-after-answer", "noise", "complain", "grandchild"])
def test_an_answer_counts_whatever_comes_with_it(memory_with, program, fault):
    memory = memory_with()
    memory.search("gateway")
    program.does(fault, when="search")

    assert memory.search("gateway").provider == "qmd"
    assert program.all_gone_within()


def test_a_program_that_is_missing_is_a_reason_and_no_error(memory_with):
    memory = memory_with(command="no-such-program")

    result = memory.search("gateway")

    assert paths(result) == ["memory/network.md"]
    assert "there is no program `no-such-program`" in result.fallback["reason"]
    assert "no-such-program" in memory.status()["engine"]["problem"]
    (check,) = [check for check in memory.doctor() if check.name == "engine"]
    assert check.verdict == "warning"
    assert "npm install" in check.hint


def test_who_corrects_the_command_need_not_wait_for_the_pause_of_the_wrong_one(memory_with):
    assert memory_with(command="no-such-program").search("gateway").fallback is not None

    memory = memory_with()
    assert memory.status()["fallback"] is None
    assert memory.search("gateway").provider == "qmd"


def test_it_comes_back_when_somebody_has_mended_it(memory_with, program):
    memory = memory_with()
    program.does("refuse")
    assert memory.search("gateway").fallback is not None
    program.does("")

    report = memory.sync()

    assert report.degraded == ()
    assert memory.search("gateway").provider == "qmd"
    assert memory.status()["fallback"] is None


def test_a_sync_tells_what_the_engine_could_not_do(memory_with, program):
    program.does("refuse", when="update")

    report = memory_with().sync()

    assert report.indexed == ("MEMORY.md", "memory/network.md")
    assert "qmd is not up to date" in report.degraded[0]
    assert "malformed" in report.degraded[0]


def test_a_damaged_index_of_it_is_made_anew(memory_with, program, tmp_path):
    memory = memory_with()
    memory.search("gateway")
    index = next((tmp_path / "home").rglob("index.sqlite"))
    program.does("refuse", when="search")

    assert "malformed" in memory.search("gateway").fallback["reason"]

    assert not index.exists()
    program.does("")
    memory.sync()
    assert memory.search("gateway").provider == "qmd"


def test_when_it_has_lost_its_collections_it_is_told_of_them_again(memory_with, program, tmp_path):
    memory = memory_with()
    memory.search("gateway")
    next((tmp_path / "home").rglob("index.sqlite")).write_text("{}")
    next((tmp_path / "home").rglob("index.yml")).unlink()

    assert memory.search("gateway").provider == "qmd"
    assert program.verbs == ["update", "search", "search", "update", "search"]


def test_a_search_that_may_not_sync_leaves_it_as_it_is(workspace, tmp_path, program):
    settings = {"backend": "qmd", "qmd": {"command": str(program.path)}, "sync": {"onSearch": False}}
    with Memory(workspace, tmp_path / "home", settings) as memory:
        memory.sync()
        before = program.verbs.count("update")
        (workspace / "memory/network.md").write_text("- tern: the gateway\n- heron\n")

        result = memory.search("gateway")

        assert (result.provider, program.verbs.count("update")) == ("qmd", before)
        assert result.degraded == ("qmd has not seen the latest changes",)


def test_vectors_that_could_not_be_made_cost_no_answers(memory_with, program, tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    model.touch()
    monkeypatch.setenv("QMD_EMBED_MODEL", str(model))
    program.does("crash", when="embed")
    memory = memory_with(searchMode="query")

    report = memory.sync()

    assert "has not embedded everything" in report.degraded[0]
    assert memory.search("gateway").provider == "qmd"
    assert memory.status()["engine"]["embeddedAt"] is None


def test_status_names_the_engine_its_version_and_its_health(memory_with):
    memory = memory_with()
    memory.search("gateway")

    engine = memory.status(deep=True)["engine"]

    assert (engine["name"], engine["version"], engine["healthy"], engine["behind"]) == (
        "qmd",
        "9.8.7",
        True,
        False,
    )
    assert engine["collections"] == ["memory-root-main", "memory-dir-main"]
    (check,) = [check for check in memory.doctor() if check.name == "engine"]
    assert (check.verdict, check.detail.split(" at ")[0]) == ("ok", "qmd 9.8.7")


def test_the_built_in_engine_is_named_too(tmp_path, workspace):
    with Memory(workspace, tmp_path / "home") as memory:
        assert memory.status()["engine"]["name"] == "builtin"


def test_files_of_other_folders_are_found_and_read_by_the_name_of_their_collection(memory_with, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "falcon.md").write_text("# Birds\n\nthe falcon nests at skagen\n")
    (docs / "secret.txt").write_text("falcon")
    memory = memory_with(paths=[{"path": str(docs), "name": "birds"}])

    (hit,) = memory.search("falcon").hits

    assert (hit.path, hit.start_line) == ("qmd/birds/falcon.md", 3)
    assert memory.get("qmd/birds/falcon.md#L3").text == "the falcon nests at skagen"
    with pytest.raises(NotFound):
        memory.get("qmd/birds/none.md")
    for outside in (
        "qmd/birds/secret.txt",
        "qmd/birds/../ws/MEMORY.md",
        "qmd/other/falcon.md",
        "qmd//etc/passwd",
    ):
        with pytest.raises((PathNotAllowed, NotFound)):
            memory.get(outside)


def test_the_index_that_answers_in_its_place_knows_those_folders_too(memory_with, tmp_path, program):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/falcon.md").write_text("the falcon nests at skagen\n")
    program.does("refuse")

    result = memory_with(paths=[str(tmp_path / "docs")]).search("falcon")

    assert paths(result) == ["qmd/docs/falcon.md"]


def test_a_path_that_it_invents_is_not_opened(memory_with, program, workspace, tmp_path):
    (tmp_path / "outside.md").write_text("the gateway password is 7\n")
    memory = memory_with()
    memory.search("gateway")
    index = next((tmp_path / "home").rglob("index.sqlite"))
    known = json.loads(index.read_text())
    known["memory-dir-main"] |= {"../../outside.md": "the gateway password is 7\n"}
    known["memory-root-main"] |= {str(tmp_path / "outside.md"): "the gateway password is 7\n"}
    index.write_text(json.dumps(known))

    assert paths(memory.search("gateway")) == ["memory/network.md"]


def test_a_group_finds_what_was_shared_with_it_and_nothing_else_is_even_asked(
    memory_with, program, workspace
):
    for name in ("everyone", "group--100", "group--200"):
        folder = workspace / "memory/shared-with" / name
        folder.mkdir(parents=True)
        (folder / "note.md").write_text(f"the canary of {name}\n")
    (workspace / "MEMORY.md").write_text("the canary of the owner\n")
    memory = memory_with()

    theirs = memory.within(GROUP).search("canary")

    assert theirs.provider == "qmd"
    assert set(paths(theirs)) == {
        "memory/shared-with/everyone/note.md",
        "memory/shared-with/group--100/note.md",
    }
    assert not any("memory-root" in part or "memory-dir" in part for part in program.calls[-1]["argv"])
    assert len(memory.search("canary").hits) == 4
    with pytest.raises(ScopeDenied):
        memory.within(GROUP).get("MEMORY.md")


def test_an_engine_that_mixes_up_its_collections_shows_a_group_nothing_more(memory_with, workspace, tmp_path):
    folder = workspace / "memory/shared-with/everyone"
    folder.mkdir(parents=True)
    (folder / "note.md").write_text("the canary for all\n")
    (workspace / "memory/own.md").write_text("the canary of the owner\n")
    memory = memory_with()
    memory.search("canary")
    index = next((tmp_path / "home").rglob("index.sqlite"))
    known = json.loads(index.read_text())
    for name in known:
        known[name] |= {"../../own.md": "the canary of the owner\n", "own.md": "the canary of the owner\n"}
    index.write_text(json.dumps(known))

    assert paths(memory.within(GROUP).search("canary")) == ["memory/shared-with/everyone/note.md"]


def test_for_a_group_without_notes_nothing_is_asked_at_all(memory_with, program):
    memory = memory_with()
    memory.search("gateway")
    before = len(program.calls)

    assert memory.within(GROUP).search("gateway").hits == ()
    assert len(program.calls) == before


def test_forgotten_text_is_in_no_file_of_the_engine(memory_with, tmp_path):
    memory = memory_with()
    memory.search("gateway")
    assert any("tern: the gateway" in text for text in engine_texts(tmp_path))

    memory.forget("tern: the gateway")

    assert not any("tern: the gateway" in text for text in engine_texts(tmp_path))
    assert memory.search("gateway").hits == ()


def engine_texts(tmp_path):
    folder = tmp_path / "home/agents/main/qmd"
    return [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]


def test_a_folder_that_is_no_longer_named_leaves_nothing_in_the_engine(memory_with, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/falcon.md").write_text("the falcon nests at skagen\n")
    with memory_with(paths=[str(tmp_path / "docs")]) as memory:
        assert memory.search("falcon").hits
    assert any("falcon nests" in text for text in engine_texts(tmp_path))

    memory_with().sync()

    assert not any("falcon nests" in text for text in engine_texts(tmp_path))


@pytest.fixture
def talks(tmp_path):
    folder = tmp_path / "home/agents/main/sessions"
    folder.mkdir(parents=True)
    (folder / "abc.jsonl").write_bytes(
        b'{"type": "session", "id": "abc"}\n'
        + line("user", "where does the falcon nest?")
        + line("assistant", "at skagen; the key is ghp_0123456789abcdefghijABCDEFGHIJ012345")
    )
    (folder / "grp.jsonl").write_bytes(
        b'{"type": "session", "id": "grp"}\n' + line("user", "our falcon trip")
    )
    (folder / "old.jsonl").write_bytes(b'{"type": "session", "id": "old"}\n' + line("user", "old falcon"))
    registry = {
        "agent:main:main": {"sessionId": "abc"},
        "agent:main:telegram:group:-100": {"sessionId": "grp"},
        "agent:main:old": {"sessionId": "old"},
    }
    (folder / "sessions.json").write_text(json.dumps(registry))
    month_ago = time.time() - 40 * 86_400
    os.utime(folder / "old.jsonl", (month_ago, month_ago))
    return folder


def exported(tmp_path):
    folder = tmp_path / "home/agents/main/qmd"
    return sorted(path for path in folder.rglob("sessions/*/*.md"))


def test_conversations_are_copied_without_secrets_and_found_by_their_own_lines(memory_with, talks, tmp_path):
    memory = memory_with(sessions={"enabled": True})

    hits = memory.search("falcon skagen").hits

    (hit,) = hits
    assert (hit.path, hit.source, hit.start_line, hit.end_line) == ("sessions/abc.jsonl", "sessions", 2, 3)
    assert "ghp_" not in hit.snippet
    text = next(path for path in exported(tmp_path) if path.name == "abc.md").read_text()
    assert text.startswith("# Session abc\n\nUser: where does the falcon nest?\nAssistant: at skagen")
    assert "ghp_" not in text
    assert "where does the falcon nest?" in memory.get("sessions/abc.jsonl#L2").text


def test_copies_are_not_made_of_old_conversations_and_go_when_those_grow_old(memory_with, talks, tmp_path):
    memory = memory_with(sessions={"enabled": True})
    memory.sync()
    assert sorted(path.name for path in exported(tmp_path)) == ["abc.md", "grp.md"]

    month_ago = time.time() - 40 * 86_400
    os.utime(talks / "abc.jsonl", (month_ago, month_ago))
    memory.sync()

    assert [path.name for path in exported(tmp_path)] == ["grp.md"]
    assert exported(tmp_path)[0].stat().st_mode & 0o077 == 0


def test_a_group_finds_its_own_conversation_and_no_other(memory_with, talks):
    memory = memory_with(sessions={"enabled": True})

    assert paths(memory.within(GROUP).search("falcon")) == ["sessions/grp.jsonl"]
    assert set(paths(memory.search("falcon"))) == {"sessions/abc.jsonl", "sessions/grp.jsonl"}
    assert paths(memory.search("falcon", sources=("memory",))) == []


def test_a_conversation_that_is_deleted_leaves_no_copy(memory_with, talks, tmp_path):
    memory = memory_with(sessions={"enabled": True})
    memory.sync()

    memory.delete_session("abc")

    assert not any("where does the falcon nest" in text for text in engine_texts(tmp_path))


def test_the_engine_is_kept_up_to_date_while_the_memory_is_watched(memory_with, program, workspace):
    memory = memory_with(update={"debounceMs": 100})
    stop = threading.Event()
    watching = threading.Thread(target=lambda: list(memory.watch(stop)))
    watching.start()
    try:
        wait_for(lambda: program.verbs.count("update") == 1)
        (workspace / "memory/new.md").write_text("a new falcon\n")
        wait_for(lambda: program.verbs.count("update") >= 2)
    finally:
        stop.set()
        watching.join()


def wait_for(condition, seconds=LONG):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_searches_at_the_same_time_are_all_answered_and_one_program_runs(memory_with, program):
    memory = memory_with()
    memory.search("gateway")
    answers = []

    def ask():
        answers.append(memory.search("gateway"))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [paths(answer) for answer in answers] == [["memory/network.md"]] * 6
    assert any(answer.provider == "qmd" for answer in answers)
    assert program.all_gone_within()


def test_vectors_are_made_when_there_is_a_model_for_them(memory_with, program, tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    monkeypatch.setenv("QMD_EMBED_MODEL", str(model))
    memory = memory_with(searchMode="query")
    memory.sync()
    assert "embed" not in program.verbs
    assert "words alone" in memory.search("gateway").degraded[0]

    model.touch()
    memory.sync()

    assert "embed" in program.verbs
    result = memory.search("gateway")
    assert (result.mode, result.degraded) == ("hybrid", ())
    assert program.calls[-1]["argv"][0] == "query"


def test_a_process_that_lives_on_makes_the_vectors_by_itself(memory_with, program, tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    model.touch()
    monkeypatch.setenv("QMD_EMBED_MODEL", str(model))
    memory = memory_with(searchMode="query")
    memory.index.backend.upkeep = Upkeep(memory.index.backend, begins_after_s=0.1)

    memory.search("gateway")

    wait_for(lambda: "embed" in program.verbs)
    memory.close()
    assert program.all_gone_within()


def test_a_process_that_asks_one_question_starts_nothing_else(memory_with, program):
    memory = memory_with()
    memory.search("gateway")
    memory.close()

    assert program.verbs == ["update", "search"]


def test_an_engine_that_nobody_has_installed_is_refused_with_the_key(tmp_path, workspace):
    with pytest.raises(ConfigError):
        Memory(workspace, tmp_path / "home", {"backend": "none-such"}).search("gateway")


@pytest.mark.parametrize(
    "path", ["../secret.md", "a/../../secret.md", "/etc/passwd", "link.md", "folder-link/x.md", ".hidden.md",
             "a\x00.md", "a\\..\\secret.md", "%2e%2e/secret.md", "pipe.md", "x.MD/../../secret.md", "hard.md",
             "~/secret.md"]
)  # fmt: skip
def test_no_path_of_a_collection_leads_out_of_it(memory_with, tmp_path, path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "secret.md").write_text("the canary\n")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    (docs / "folder-link").symlink_to(tmp_path)
    (docs / ".hidden.md").write_text("the canary\n")
    (docs / "hard.md").hardlink_to(tmp_path / "secret.md")
    os.mkfifo(docs / "pipe.md")
    memory = memory_with(paths=[{"path": str(docs), "name": "docs"}])

    with pytest.raises((PathNotAllowed, NotFound)):
        memory.get(f"qmd/docs/{path}")
    assert memory.search("canary").hits == ()


def test_an_explanation_names_the_words_that_were_found(memory_with):
    (hit,) = memory_with().search("tern gateway", explain=True).hits

    assert hit.explanation["matched"] == ["gateway", "tern"]
    assert hit.explanation["collection"] == "memory-dir-main"


def test_a_question_with_filters_is_for_the_built_in_index(memory_with):
    memory = memory_with()

    for result in (memory.search("gateway -builds"), memory.search("gateway", paths=["MEMORY.md"])):
        assert result.provider == "builtin"
        assert result.notes == ("qmd has no filters; this is from the built-in index",)
    assert memory.search("gateway").provider == "qmd"
