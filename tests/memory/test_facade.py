import os
import threading
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.base.errors import (
    ConfigError,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    StorageFailure,
    WorkspaceError,
)


def test_the_right_lines_come_back_for_words_and_for_meaning(memory):
    by_word = memory.search("E4021").hits[0]
    by_meaning = memory.search("cat sitter").hits[0]

    assert (by_word.path, by_word.source) == ("memory/2026-02-10.md", "memory")
    assert "E4021" in by_word.snippet
    assert by_meaning.path == "memory/people.md"


def test_what_is_cited_is_what_the_file_says(memory, workspace):
    hit = memory.search("where does the gateway run").hits[0]
    lines = (workspace / hit.path).read_text().splitlines()

    assert hit.snippet == "\n".join(lines[hit.start_line - 1 : hit.end_line])


def test_a_note_is_found_by_the_next_search(memory):
    note = memory.remember("The zebra printer stands in room 12.")
    hit = memory.search("zebra printer").hits[0]

    assert hit.path == note.path
    assert hit.start_line <= note.start_line <= hit.end_line
    assert "<!--" not in hit.snippet


def test_an_edit_in_any_editor_is_found_by_the_next_search(memory, workspace):
    memory.search("gateway")
    (workspace / "MEMORY.md").write_text("# Memory\n\n- The gateway moved to a Raspberry Pi.\n")

    assert "Raspberry" in memory.search("gateway").hits[0].snippet


def test_durable_notes_go_to_the_curated_memory(memory, workspace):
    note = memory.remember("Prefers tea.", durable=True)

    assert note.path == "MEMORY.md"
    assert "Prefers tea." in (workspace / "MEMORY.md").read_text().splitlines()[note.start_line - 1]


def test_a_long_note_keeps_its_lines(memory, workspace):
    note = memory.remember("First line.\n\n- a list\n- of things")
    lines = (workspace / note.path).read_text().splitlines()[note.start_line - 1 : note.end_line]

    assert lines[0].startswith("## ")
    assert lines[-2:] == ["- a list", "- of things"]


def test_memory_md_in_lower_case_is_used_when_it_is_the_one_there(tmp_path, home):
    folder = tmp_path / "lower"
    folder.mkdir()
    (folder / "memory.md").write_text("notes\n")
    with Memory(folder, home=home) as memory:
        assert memory.remember("more", durable=True).path == "memory.md"


def test_the_first_hit_does_not_depend_on_how_many_are_asked_for(memory):
    few = memory.search("gateway backups cat", max_results=1, min_score=0).hits
    many = memory.search("gateway backups cat", max_results=20, min_score=0).hits

    assert few[0] == many[0]


def test_a_question_about_a_day_finds_that_day(memory):
    hit = memory.search("what happened on 2026-02-10?", today=date(2026, 11, 15)).hits[0]

    assert hit.path == "memory/2026-02-10.md"


def test_words_that_stand_nowhere_do_not_score_high(memory):
    assert all(hit.score < 0.5 for hit in memory.search("quantum chromodynamics lattice", min_score=0).hits)


def test_an_empty_question_has_no_answer(memory):
    assert memory.search("   ").hits == ()


@pytest.mark.parametrize("question", ['"', "AND OR NOT", "a*b", "NEAR(", "\x00", "-", "(((", "'; DROP TABLE"])
def test_no_question_breaks_the_search(memory, question):
    memory.search(question)


def test_every_score_can_be_explained(memory):
    explanation = memory.search("gateway", explain=True).hits[0].explanation

    assert explanation["matched"] == ["gateway"]
    assert {"coverage", "passage", "keywords", "meaning", "recency", "raw"} <= explanation.keys()


def test_without_an_embedder_words_still_answer(workspace, home):
    with Memory(workspace, home=home, config={"provider": "none"}) as memory:
        result = memory.search("gateway")

        assert result.mode == "keyword"
        assert result.hits[0].path == "MEMORY.md"


def test_settings_given_in_code_win(workspace, home):
    with Memory(workspace, home=home, config={"query": {"maxResults": 1, "minScore": 0}}) as memory:
        assert len(memory.search("gateway backups cat").hits) == 1


def test_a_wrong_setting_names_its_key(workspace, home):
    with pytest.raises(ConfigError) as caught:
        Memory(workspace, home=home, config={"query": {"maxReslts": 1}})

    assert "maxReslts" in str(caught.value)
    assert "maxResults" in (caught.value.hint or "")


def test_lines_are_read_by_number_and_by_citation(memory):
    assert memory.get("MEMORY.md", first_line=3, line_count=1).text.startswith("- The gateway")
    assert memory.get("memory/people.md#L1-L1").text == "# People"


@pytest.mark.parametrize(
    "path", ["../secret.md", "/etc/passwd", "memory/../../x.md", "notes.txt", "a\x00b.md"]
)
def test_nothing_outside_the_memory_can_be_read(memory, path):
    with pytest.raises(PathNotAllowed):
        memory.get(path)


def test_editing_replaces_text_that_stands_once(memory, workspace):
    memory.edit("MEMORY.md", "Mac Studio", "Mac mini")

    assert "Mac mini" in (workspace / "MEMORY.md").read_text()


def test_editing_keeps_line_endings(memory, workspace):
    (workspace / "MEMORY.md").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    memory.edit("MEMORY.md", "one\ntwo", "1\n2")

    assert (workspace / "MEMORY.md").read_bytes() == b"1\r\n2\r\nthree\r\n"


@pytest.mark.parametrize(("old", "message"), [("nowhere", "is not in"), ("a", "stands"), ("", "no text")])
def test_editing_text_that_does_not_stand_exactly_once_changes_nothing(memory, workspace, old, message):
    before = (workspace / "MEMORY.md").read_bytes()
    with pytest.raises(NotFound, match=message):
        memory.edit("MEMORY.md", old, "x")

    assert (workspace / "MEMORY.md").read_bytes() == before


def test_an_edit_can_be_undone(memory, workspace):
    before = (workspace / "MEMORY.md").read_bytes()
    memory.edit("MEMORY.md", "Mac Studio", "toaster")
    old = next(version for version in memory.history("MEMORY.md") if version.available)
    memory.restore(old.id)

    assert (workspace / "MEMORY.md").read_bytes() == before


def test_an_unknown_version_cannot_be_restored(memory):
    with pytest.raises(NotFound, match="no version"):
        memory.restore("01ARZ3NDEKTSV4RRFFQ69G5FAV")


@pytest.mark.parametrize("text", ["", "  \n", "\x00"])
def test_nothing_is_not_remembered(memory, text):
    with pytest.raises(PlainmindError, match="nothing to remember"):
        memory.remember(text)


def test_a_note_as_long_as_a_book_is_refused(memory):
    with pytest.raises(PlainmindError, match="too long"):
        memory.remember("x" * 200_001)


def test_a_missing_workspace_explains_itself(tmp_path, home):
    with Memory(tmp_path / "nowhere", home=home) as memory:
        for call in (lambda: memory.search("x"), memory.sync, memory.list, lambda: memory.remember("x")):
            with pytest.raises(WorkspaceError, match="no workspace"):
                call()


def test_an_unmounted_workspace_is_still_answered_from_the_index(memory, workspace, tmp_path):
    memory.sync()
    workspace.rename(tmp_path / "elsewhere")
    result = memory.search("gateway")

    assert result.hits[0].path == "MEMORY.md"
    assert any("missing on disk" in note for note in result.degraded)


def test_a_linked_memory_folder_is_not_written_through(tmp_path, home):
    folder, outside = tmp_path / "ws", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "memory").symlink_to(outside)
    with Memory(folder, home=home) as memory, pytest.raises(WorkspaceError):
        memory.remember("secret")

    assert list(outside.iterdir()) == []


def test_the_files_are_listed_and_exported(memory):
    assert [file.path for file in memory.list()] == ["MEMORY.md", "memory/2026-02-10.md", "memory/people.md"]
    exported = {file.path: file for file in memory.export()}
    assert exported["memory/2026-02-10.md"].day == "2026-02-10"
    assert "Anna" in exported["memory/people.md"].text


def test_status_tells_what_is_known_and_what_leaves_the_machine(memory):
    assert memory.status()["dirty"]
    memory.sync()
    facts = memory.status(deep=True).as_dict()

    assert (facts["files"], facts["dirty"], facts["sendsTextTo"]) == (3, False, None)
    assert facts["sizes"]["workspaceBytes"] > 0
    memory.remember("something new")
    assert memory.status(deep=True)["sizes"]["historyBytes"] > facts["sizes"]["historyBytes"] == 0
    assert facts["sourceCounts"] == [{"source": "memory", "files": 3, "chunks": facts["chunks"]}]


def test_a_healthy_memory_passes_every_check(memory):
    memory.remember("something to verify")
    memory.sync()
    checks = memory.doctor(verify=True)

    assert {check.verdict for check in checks} == {"ok"}


def test_a_lost_note_is_found_by_the_doctor(memory, workspace):
    note = memory.remember("important")
    (workspace / note.path).write_text("# an editor saved an old version\n")
    problems = [check for check in memory.doctor(verify=True) if check.verdict == "problem"]

    assert any(note.id in check.detail for check in problems)


def test_watching_brings_the_index_up_to_date(workspace, home):
    stop = threading.Event()
    reports = []
    with Memory(workspace, home=home, config={"sync": {"watchDebounceMs": 50}}) as memory:
        memory.sync()

        def watch():
            for report in memory.watch(stop):
                reports.append(report)
                if report.indexed:
                    stop.set()

        thread = threading.Thread(target=watch)
        thread.start()
        (workspace / "memory" / "new.md").write_text("a new file\n")
        thread.join(60)
        stop.set()
        thread.join(60)

    assert any("memory/new.md" in report.indexed for report in reports)


def test_threads_share_one_memory(memory):
    failures = []

    def work(number):
        try:
            memory.remember(f"note number {number}")
            assert memory.search(f"note number {number}").hits
        except Exception as error:  # noqa: BLE001 -- whatever goes wrong in a thread is the finding
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []


def damage_index(memory, home):
    memory.close()
    for database in home.rglob("gen-*.sqlite"):
        database.write_bytes(b"this is not a database" * 1000)
    for log in home.rglob("gen-*.sqlite-*"):
        log.unlink()


def test_a_damaged_index_is_made_anew_and_still_answers(memory, home):
    memory.search("gateway")
    damage_index(memory, home)

    assert memory.search("gateway").hits[0].path == "MEMORY.md"


def test_a_file_outside_the_workspace_is_restored_where_it_was(workspace, home, tmp_path):
    outside = tmp_path / "project"
    outside.mkdir()
    (outside / "plan.md").write_text("the first plan\n")
    with Memory(workspace, home=home, config={"extraPaths": [str(outside)]}) as memory:
        memory.edit("project/plan.md", "first", "second")
        old = next(version for version in memory.history("project/plan.md") if version.available)
        memory.restore(old.id)
        assert (outside / "plan.md").read_text() == "the first plan\n"

        (outside / "plan.md").unlink()
        memory.restore(old.id)
        assert (outside / "plan.md").read_text() == "the first plan\n"
    assert not (workspace / "project").exists()


def test_a_file_of_a_folder_that_is_no_extra_path_any_more_is_not_restored_elsewhere(
    workspace, home, tmp_path
):
    outside = tmp_path / "project"
    outside.mkdir()
    (outside / "plan.md").write_text("the first plan\n")
    with Memory(workspace, home=home, config={"extraPaths": [str(outside)]}) as memory:
        memory.edit("project/plan.md", "first", "second")
        old = next(version for version in memory.history("project/plan.md") if version.available)
    with Memory(workspace, home=home) as memory, pytest.raises(PlainmindError):
        memory.restore(old.id)

    assert not (workspace / "project").exists()


def test_a_note_that_the_history_missed_says_that_it_is_written(memory, workspace, home):
    memory.remember("the first")
    (journal,) = home.rglob("journal.jsonl")
    journal.unlink()
    journal.mkdir()
    with pytest.raises(StorageFailure, match="the note is in") as caught:
        memory.remember("the second")

    assert "do not write it again" in (caught.value.hint or "")
    assert sum("the second" in path.read_text() for path in workspace.rglob("*.md")) == 1


def test_the_doctor_tells_of_an_index_that_was_damaged(memory, home):
    memory.search("gateway")
    damage_index(memory, home)
    memory.search("gateway")

    assert any("replaced once" in check.detail for check in memory.doctor())


def test_the_doctor_does_not_take_an_unmounted_workspace_for_an_empty_one(memory, workspace, tmp_path):
    memory.sync()
    workspace.rename(tmp_path / "elsewhere")
    checks = memory.doctor(verify=True)

    assert memory.status()["files"] == 3
    assert any("not compared" in check.detail for check in checks)


def test_watching_says_once_why_it_only_looks_now_and_then(memory, monkeypatch):
    def no_watcher(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", no_watcher)
    stop = threading.Event()
    watching = memory.watch(stop)
    reports = [next(watching), next(watching)]
    stop.set()

    assert [sum("Too many open files" in note for note in report.degraded) for report in reports] == [1, 0]


def test_the_promised_arguments_may_be_given_by_position(workspace, home):
    with Memory(workspace, home, {"query": {"maxResults": 3}}) as memory:
        assert len(memory.search("the", 1, 0.0).hits) <= 1


@pytest.mark.parametrize("count", [0, -1])
def test_a_search_for_no_hits_is_refused(memory, count):
    with pytest.raises(PlainmindError, match="max_results"):
        memory.search("gateway", max_results=count)


def test_one_path_one_tag_and_one_source_need_no_list(memory):
    assert {hit.path for hit in memory.search("E4021", paths="memory/2026-*").hits} == {
        "memory/2026-02-10.md"
    }
    assert memory.search("E4021", tags="garden").understood == ("only tagged #garden",)
    assert memory.search("E4021", sources="memory").hits


@pytest.mark.parametrize("sources", ["mails", ["memory", "mails"]])
def test_a_source_that_does_not_exist_is_named(memory, sources):
    with pytest.raises(PlainmindError, match="there is no source `mails`"):
        memory.search("E4021", sources=sources)


def test_a_source_of_which_nothing_is_indexed_is_not_passed_over_in_silence(memory):
    assert memory.search("gateway", sources=["sessions"]).degraded == ("nothing from `sessions` is indexed",)
    assert memory.search("gateway", sources=["memory", "sessions"]).degraded == ()


def test_exported_files_have_their_bytes(memory, workspace):
    (workspace / "memory" / "odd.md").write_bytes(b"\xef\xbb\xbfcaf\xe9\r\n")
    odd = next(file for file in memory.export() if file.path == "memory/odd.md")

    assert (odd.raw, odd.text) == (b"\xef\xbb\xbfcaf\xe9\r\n", "caf\ufffd\n")


def test_nothing_is_written_to_the_empty_mount_point_of_a_missing_disk(memory, workspace, tmp_path):
    memory.sync()
    workspace.rename(tmp_path / "the-disk")
    workspace.mkdir()
    with pytest.raises(WorkspaceError, match="may not be mounted"):
        memory.remember("where would this go?")

    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("before", ["", "one\n", "one\r\ntwo\r\n", "one\rtwo\r", "no break at the end"])
def test_the_line_of_a_note_is_counted_as_lines_are_shown(memory, workspace, before):
    (workspace / "MEMORY.md").write_bytes(before.encode())
    note = memory.remember("the last line", durable=True)

    assert "the last line" in memory.get("MEMORY.md", first_line=note.start_line, line_count=1).text


def test_a_provider_that_cannot_be_made_is_named_with_where_it_was_set(workspace, home):
    home.mkdir()
    (home / "plainmind.json5").write_text('{provider: "onnx", model: "/no/such/folder"}')
    with pytest.raises(ConfigError) as caught:
        Memory(workspace, home=home)

    assert "/no/such/folder" in str(caught.value)
    assert "plainmind.json5" in str(caught.value)
    assert "builtin" in (caught.value.hint or "")


def test_half_a_character_is_refused_in_words_at_every_door(memory, workspace):
    note = memory.remember("the printer is on VLAN 40")
    with pytest.raises(PlainmindError, match=r"half a character at place 4: U\+D800"):
        memory.edit(note.path, "printer", "pri\ud800")
    with pytest.raises(PlainmindError, match="half a character"):
        memory.edit(note.path, "pri\ud800", "printer")
    for call in (memory.search, memory.forget, memory.remember, memory.get):
        with suppress(PlainmindError):
            call("pri\ud800nter")

    assert memory.get(note.path).text.count("VLAN 40") == 1


def test_a_note_that_an_editor_has_saved_over_is_told_and_put_back(memory, workspace):
    first = memory.remember("the first")
    old = (workspace / first.path).read_bytes()
    lost = memory.remember("the second")
    (workspace / first.path).write_bytes(old + b"typed by hand\n")
    told = memory.remember("the third")

    assert told.missing == (lost.id,)
    assert [note["id"] for note in memory.status()["missingNotes"]] == [lost.id]
    assert [check.hint for check in memory.doctor() if check.name == "missing notes"] == [
        f"`plainmind restore {lost.id}` puts it back, `plainmind forget {lost.id}` lets it go"
    ]
    memory.restore(lost.id)
    memory.restore(lost.id)

    assert (workspace / first.path).read_text().count("the second") == 1
    assert memory.status()["missingNotes"] == []


def test_a_note_that_was_saved_over_can_be_forgotten_for_good(memory, workspace, home):
    first = memory.remember("the first")
    old = (workspace / first.path).read_bytes()
    lost = memory.remember("the canary-5517 sings")
    (workspace / first.path).write_bytes(old)
    memory.forget(lost.id)

    assert not memory.missing_notes()
    assert [file for file in home.rglob("*") if file.is_file() and b"canary-5517" in file.read_bytes()] == []


def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(memory, workspace, home):
    memory.remember("the printer is on VLAN 40")
    memory.sync()
    memory.close()
    for file in home.rglob("gen-*.sqlite"):
        file.unlink()
        os.mkfifo(file)
    with Memory(workspace, home=home) as other:
        assert other.search("printer").hits
    for file in home.rglob("CURRENT"):
        file.unlink()
        os.mkfifo(file)
    with Memory(workspace, home=home) as other, pytest.raises(PathNotAllowed, match="is not a plain file"):
        other.search("printer")


def test_a_memory_says_which_one_it_is(tmp_path):
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        assert repr(memory) == f"Memory({str(tmp_path)!r})"


def test_a_file_is_read_by_a_path_of_pathlib_too(tmp_path):
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n- The key hangs here.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        assert memory.get(Path("MEMORY.md"), first_line=3).text == "- The key hangs here."


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda memory: memory.remember(42), "a note is text (str), not int"),
        (lambda memory: memory.remember(None, durable=True), "a note is text (str), not NoneType"),
        (lambda memory: memory.search(None), "a question is text (str), not NoneType"),
        (lambda memory: memory.search(["gateway"]), "a question is text (str), not list"),
        (lambda memory: memory.get(5), "what to read is a path (str or os.PathLike), not int"),
        (lambda memory: memory.get(None), "what to read is a path (str or os.PathLike), not NoneType"),
        (
            lambda memory: memory.search("x", max_results="3"),
            "`max_results` is a whole number (int), not str",
        ),
        (
            lambda memory: memory.search("x", max_results=1.5),
            "`max_results` is a whole number (int), not float",
        ),
        (lambda memory: memory.search("x", min_score="a"), "`min_score` is a number (float), not str"),
        (lambda memory: memory.search("x", since=20260210), "`since` is a day (date or text), not int"),
        (lambda memory: memory.search("x", until=["today"]), "`until` is a day (date or text), not list"),
        (lambda memory: memory.search("x", today="today"), "`today` is a day (date), not str"),
        (lambda memory: memory.edit("MEMORY.md", 1, 2), "`old` is text (str), not int"),
        (lambda memory: memory.edit("MEMORY.md", "x", None), "`new` is text (str), not NoneType"),
        (lambda memory: memory.write("MEMORY.md", 3, base_hash=None), "`text` is text (str), not int"),
        (lambda memory: memory.forget(3), "what to forget is text (str), or what a dry run gave"),
        (lambda memory: memory.forget(["a"]), "what to forget is text (str), or what a dry run gave"),
        (lambda memory: memory.links(None), "a note's name is text (str), not NoneType"),
        (lambda memory: memory.within(None), "who asks is a SearchContext, not NoneType"),
        (
            lambda memory: Memory(memory.workspace, config="x"),
            "`config` is settings by their names (dict), not str",
        ),
        (lambda _: Memory(5), "a workspace is a path (str or os.PathLike), not int"),
        (lambda _: Memory(b"notes"), "a workspace is a path (str or os.PathLike), not bytes"),
        (lambda memory: Memory(memory.workspace, home=5), "`home` is a path (str or os.PathLike), not int"),
    ],
)
def test_a_program_that_gives_no_text_is_told_so(tmp_path, call, said):
    (tmp_path / "MEMORY.md").write_text("# Memory\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory, pytest.raises(TypeError) as refused:
        call(memory)
    assert said in str(refused.value)


def test_a_moment_that_is_given_for_a_day_is_its_day(memory):
    moment = datetime(2026, 2, 10, 17, 30, tzinfo=UTC)

    hits = memory.search("backups", since=moment, until=moment, today=moment).hits

    assert [hit.path for hit in hits] == ["memory/2026-02-10.md"]
    assert memory.search("backups", since=moment.replace(day=11)).hits == ()


def test_a_new_file_outside_of_the_memory_is_told_where_the_memory_is(memory, workspace, home):
    with pytest.raises(PathNotAllowed, match=r"outside of the memory: that is `MEMORY.md` and") as refused:
        memory.write("other/x.md", "text", base_hash=None)
    assert refused.value.hint == "choose a path beneath `memory/`"

    (workspace.parent / "shelf").mkdir()
    settings = {"extraPaths": [str(workspace.parent / "shelf")]}
    with Memory(workspace, home=home, config=settings) as wider, pytest.raises(PathNotAllowed) as refused:
        wider.write("other/x.md", "text", base_hash=None)
    assert refused.value.hint == "choose a path beneath `memory/` or `shelf/`"

    (workspace.parent / "vault").mkdir()
    with Memory(workspace.parent / "vault", home=home) as vault:
        assert vault.write("other/x.md", "text", base_hash=None).path == "other/x.md"
