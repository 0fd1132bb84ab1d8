"""The memory within one conversation."""

import json
import logging
from datetime import timedelta

import pytest

from plainmind import OWNER, Memory, ScopeDenied, SearchContext
from plainmind.agent.scope import THE_OWNER
from plainmind.base.errors import EmbeddingError, LockTimeout, NotFound, PlainmindError
from plainmind.memory.forget import Forgetting
from plainmind.notes.notebook import Forgotten, ForgottenLines

OPEN = {"scope": {"rules": [{"action": "allow"}]}}
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100")
ANNA = SearchContext("anna", "direct", "agent:main:telegram:dm:anna")
UNKNOWN = SearchContext("", "", "")
LOG = "memory/shared-with/telegram/group--100/2026-02-10.md"


@pytest.fixture
def opened(workspace, home):
    (workspace / LOG).parent.mkdir(parents=True)
    (workspace / LOG).write_text(
        "# 2026-02-10\n\n- 10:00 the group meets in the bakery\n- 11:00 bring chairs\n"
    )
    with Memory(workspace, home=home, config=OPEN) as memory:
        yield memory


@pytest.fixture
def group(opened):
    return opened.within(GROUP)


def test_the_owner_has_all_of_the_memory(opened):
    mine = opened.within(THE_OWNER)

    assert mine.search("where does the gateway run?").hits[0].path == "MEMORY.md"
    assert mine.search("where does the group meet?").hits[0].path == LOG
    assert "Mac Studio" in mine.get("MEMORY.md").text
    assert [found.path for found in mine.list()] == [found.path for found in opened.list()]
    assert mine.status()["workspaceDir"] == opened.workspace
    assert mine.status()["scope"] == {"chatType": "direct", "sees": ["*"], "writes": "private", "withheld": 0}


def test_a_group_finds_its_own_and_nothing_else(group):
    assert [hit.path for hit in group.search("where does the group meet?").hits] == [LOG]
    assert {hit.path for hit in group.search("gateway Mac Studio hall", min_score=0.0).hits} <= {LOG}
    assert [found.path for found in group.list()] == [LOG]
    assert group.status()["files"] == 1
    assert "workspaceDir" not in group.status()


def test_whoever_is_not_known_is_told_so_and_not_that_nothing_was_found(opened):
    nobody = opened.within(UNKNOWN)

    for ask in (
        lambda: nobody.search("gateway"),
        lambda: nobody.get("MEMORY.md"),
        nobody.list,
        lambda: nobody.append("text"),
        lambda: nobody.forget("gateway", dry_run=True),
        nobody.status,
        nobody.start_context,
    ):
        with pytest.raises(ScopeDenied, match="not known where the answer will be seen"):
            ask()


def test_by_default_a_group_may_not_use_the_memory(memory):
    with pytest.raises(ScopeDenied, match="group chat"):
        memory.within(GROUP).search("gateway")


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "./MEMORY.md",
        "MEMORY.md#L1-L3",
        "MEMORY.md:1",
        "memory.md",
        "memory/../MEMORY.md",
        "memory/shared-with/telegram/group--100/../../../MEMORY.md",
        "memory/shared-with/telegram/group--100/./2026-02-10.md",
        "memory/shared-with/telegram//group--100/2026-02-10.md",
        "memory/2026-02-10.md",
        "memory/no-such-file.md",
        "memory/shared-with/telegram/group--200/2026-02-10.md",
        "memory/shared-with/telegram/GROUP--100/2026-02-10.md",
        "Memory/shared-with/telegram/group--100/2026-02-10.md",
        "memory/shared-with/loose.md",
        "sessions/x.jsonl",
        "sessions/x.jsonl#L7",
        "elsewhere/x.md",
        "/etc/passwd",
        "",
        "\x00",
        "memory\\shared-with\\telegram\\group--100\\x.md",
    ],
)
def test_what_may_not_be_read_is_denied_in_the_same_words_whether_it_exists_or_not(group, path):
    with pytest.raises(ScopeDenied) as denied:
        group.get(path)

    assert str(denied.value) == "that file is not for this conversation"
    assert "MEMORY" not in (denied.value.hint or "")


def test_an_absolute_path_is_denied_even_to_its_own_file(group, opened):
    with pytest.raises(ScopeDenied):
        group.get(f"{opened.workspace}/{LOG}")


@pytest.mark.parametrize("path", [LOG, f"./{LOG}", f"{LOG}#L3-L4", f"{LOG}:3"])
def test_a_group_reads_its_own_log(group, path):
    assert "bakery" in group.get(path).text


def test_a_file_of_its_own_that_does_not_exist_is_not_found_without_names_of_others(group):
    with pytest.raises(NotFound) as error:
        group.get("memory/shared-with/telegram/group--100/2026-02-11.md")

    assert error.value.hint is None
    assert error.value.__cause__ is None
    assert "2026" not in str(error.value)


def test_wrong_numbers_are_explained_to_anybody(group):
    with pytest.raises(PlainmindError, match="cannot read 0 lines"):
        group.get(LOG, line_count=0)


def test_a_note_of_a_group_goes_to_the_group_and_is_found_by_it_and_by_the_owner(group, opened):
    remembered = group.append("the cake is for Tuesday")

    assert remembered.path.startswith("memory/shared-with/telegram/group--100/")
    assert group.search("when is the cake for?").hits[0].path == remembered.path
    assert opened.search("when is the cake for?").hits[0].path == remembered.path
    other = opened.within(SearchContext("bob", "group", "", group="-200"))
    assert other.search("when is the cake for?", min_score=0.0).hits == ()


def test_a_note_with_an_id_is_written_once(group):
    assert group.append("text", note_id="flush-1") == group.append("text", note_id="flush-1")


def test_who_may_only_see_what_is_shared_can_write_nothing(workspace, home):
    rules = {"scope": {"rules": [{"action": "allow", "match": {"keyPrefix": "cron:"}}]}}
    with Memory(workspace, home=home, config=rules) as memory:
        job = memory.within(SearchContext("anna", "", "cron:daily"))

        with pytest.raises(ScopeDenied, match="nothing can be written"):
            job.append("text")
        with pytest.raises(ScopeDenied, match="nothing can be written"):
            job.forget("gateway", dry_run=True)
        assert job.start_context().text == ""


def test_a_group_forgets_its_own_lines_and_no_others(group, opened, workspace):
    (workspace / "MEMORY.md").write_text("# Memory\n\n- the bakery is where we buy bread\n")

    planned = group.forget("bakery", dry_run=True)
    assert [lines.path for lines in planned.lines] == [LOG]
    assert group.forget(planned).applied

    assert "bakery" not in (workspace / LOG).read_text()
    assert "bakery" in (workspace / "MEMORY.md").read_text()
    assert opened.search("bakery").hits[0].path == "MEMORY.md"


@pytest.mark.parametrize("what", ["MEMORY.md#L1-L3", "memory/people.md#L3", "memory/none.md#L3"])
def test_lines_of_others_cannot_be_chosen(group, what):
    with pytest.raises(ScopeDenied):
        group.forget(what, dry_run=True)


def test_a_text_that_only_others_have_is_not_found(group, opened):
    opened.edit("MEMORY.md", "Mac Studio", "Mac mini")  # it is in the history now, too

    for what in ("Mac Studio", "Mac mini", "Anna feeds"):
        with pytest.raises(NotFound) as error:
            group.forget(what, dry_run=True)
        assert error.value.hint is None


def test_a_choice_that_somebody_made_up_is_refused(group, opened, workspace):
    mine = Forgetting(opened).select("Mac Studio")
    before = (workspace / "MEMORY.md").read_text()

    for chosen in (mine, Forgotten((ForgottenLines("MEMORY.md", 1, 1, "# Memory", "0" * 64),))):
        for dry_run in (True, False):
            with pytest.raises(ScopeDenied):
                group.forget(chosen, dry_run=dry_run)
    assert (workspace / "MEMORY.md").read_text() == before


def test_forgetting_in_a_group_leaves_the_history_of_others_whole(group, opened, workspace):
    line = "- 10:00 the group meets in the bakery"
    (workspace / "MEMORY.md").write_text(f"# Memory\n\n{line}\nmore\n")
    opened.edit("MEMORY.md", "more", "less")  # keeps the version with the line
    opened.edit(LOG, "11:00", "11:30")

    group.forget("the group meets in the bakery")

    versions = {
        version.path: opened.read_version(version.id) for version in opened.history() if version.available
    }
    assert line.encode() in versions["MEMORY.md"]
    assert b"bakery" not in versions[LOG]


def test_the_owner_forgets_in_every_scope(opened, workspace):
    assert opened.within(THE_OWNER).forget("bring chairs").applied
    assert "chairs" not in (workspace / LOG).read_text()


def test_citations_are_for_direct_chats_unless_the_settings_say_otherwise(workspace, home):
    for wanted, direct, group in (("auto", True, False), ("on", True, True), ("off", False, False)):
        with Memory(workspace, home=home, config={**OPEN, "citations": wanted}) as memory:
            assert memory.within(THE_OWNER).shows_citations is direct
            assert memory.within(GROUP).shows_citations is group


def test_limits_are_those_of_the_settings(workspace, home):
    config = {"limits": {"maxResults": 1, "maxSnippetChars": 50, "maxInjectedChars": 60, "timeoutMs": 700}}
    with Memory(workspace, home=home, config=config) as memory:
        mine = memory.within(THE_OWNER)

        limits = mine.limits
        assert (limits.max_results, limits.max_snippet_chars) == (1, 50)
        assert (limits.max_injected_chars, limits.timeout_ms) == (60, 700)
        assert len(mine.search("gateway or backups or cat", min_score=0.0).hits) == 1
        assert len(mine.search("gateway or backups or cat", max_results=2, min_score=0.0).hits) == 2


def test_a_session_begins_with_what_is_for_it(opened, group, workspace):
    now = opened.now().date()
    for day, text in ((now, "today we swim"), (now - timedelta(days=1), "yesterday we ran")):
        (workspace / "memory" / f"{day}.md").write_text(f"- {text}\n")
        (workspace / LOG).with_name(f"{day}.md").write_text(f"- {text} in the group\n")

    mine, theirs = opened.within(THE_OWNER).start_context(), group.start_context()

    assert mine.paths[0] == "MEMORY.md"
    assert "today we swim\n" in mine.text
    assert "yesterday we ran\n" in mine.text
    assert "in the group" not in mine.text
    assert theirs.text.count("in the group") == 2
    assert "Mac Studio" not in theirs.text


def test_a_private_file_that_cannot_be_indexed_is_no_news_for_a_group(group, opened, workspace):
    (workspace / "memory" / "secret-plan.md").write_bytes(b"x" * 100)
    (workspace / "memory" / "secret-plan.md").chmod(0o000)
    (workspace / "memory" / "secret-link.md").symlink_to("people.md")

    assert "secret" not in repr(group.search("where does the group meet?"))
    assert "secret" not in json.dumps(group.status())


def test_errors_name_no_place_on_disk_to_others(group, opened, workspace, caplog):
    workspace.rename(workspace.with_name("gone"))

    with pytest.raises(PlainmindError) as error:
        group.append("text")

    assert "workspace" not in str(error.value)
    assert str(workspace) not in str(error.value)
    assert error.value.__cause__ is None
    assert str(workspace) in caplog.text  # the owner finds it there


class OddFailure(EmbeddingError):
    """A failure that is not made like others."""

    def __init__(self, status):
        super().__init__(f"/home/me: {status}")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LockTimeout("/home/me/state/locks/x.lock is held", hint="/home/me"), LockTimeout),
        (OddFailure(503), EmbeddingError),
    ],
)
def test_an_error_keeps_its_kind_and_tells_nothing_else(group, monkeypatch, error, kind):
    def failing(*_args, **_more):
        raise error

    monkeypatch.setattr("plainmind.memory.memory.Notes.require_workspace", failing)

    with pytest.raises(kind) as raised:
        group.list()
    assert "/home/me" not in f"{raised.value} {raised.value.hint}"


def test_what_is_no_longer_shared_is_no_longer_found(workspace, home, tmp_path):
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "rules.md").write_text("The kettle is descaled on Mondays.\n")
    extra = {"path": str(tmp_path / "handbook")}
    found = {}
    for scope in ("shared", "private", "shared"):
        config = {**OPEN, "extraPaths": [{**extra, "scope": scope}]}
        with Memory(workspace, home=home, config=config) as memory:
            hits = memory.within(GROUP).search("when is the kettle descaled?").hits
            assert [hit.path for hit in hits] == (["handbook/rules.md"] if scope == "shared" else [])
            assert memory.search("when is the kettle descaled?").hits[0].path == "handbook/rules.md"
            assert memory.policy.checkpoint.withheld == 0  # the index knows of it, too
            found[scope] = memory.within(GROUP).status()["files"]
    assert found == {"shared": 1, "private": 0}


def test_a_conversation_that_becomes_a_groups_is_found_by_it(workspace, home):
    with Memory(workspace, home=home, config={**OPEN, "sources": ["memory", "sessions"]}) as memory:
        memory.sessions.create("k").append({"role": "user", "content": "the violin is in the attic"})
        group = memory.within(GROUP)
        assert group.search("violin", min_score=0.0).hits == ()

        memory.sessions.update("k", groupId="-100")
        hit = group.search("where is the violin?").hits[0]
        assert "attic" in group.get(hit.path).text

        memory.sessions.update("k", groupId="-200")
        assert group.search("violin", min_score=0.0).hits == ()
        assert memory.policy.checkpoint.withheld == 0
        with pytest.raises(ScopeDenied):
            group.get(hit.path)


class LyingReader:
    """A view of the index that forgets who asks."""

    def __init__(self, reader):
        self._reader = reader

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def _ignoring(self, name, *args, where, **more):
        from plainmind.base.model import EVERY_SCOPE, SearchFilter

        return getattr(self._reader, name)(*args, where=SearchFilter(where.sources, EVERY_SCOPE), **more)

    def by_words(self, *args, **more):
        return self._ignoring("by_words", *args, **more)

    def expect_vector(self, *args, **more):
        return self._ignoring("expect_vector", *args, **more)

    def by_vector(self, *args, **more):
        return self._ignoring("by_vector", *args, **more)


class LyingStore:
    """A store whose filter is broken."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def reading(self):
        from contextlib import contextmanager

        @contextmanager
        def view():
            with self._store.reading() as reader:
                yield LyingReader(reader)

        return view()


def test_what_a_broken_store_lets_through_is_withheld_counted_and_reported(opened, caplog):
    vars(opened.index)["store"] = LyingStore(opened.index.store)
    group = opened.within(GROUP)

    with caplog.at_level(logging.ERROR):
        result = group.search("gateway Mac Studio hall bakery", min_score=0.0)

    assert {hit.path for hit in result.hits} == {LOG}
    assert group.status()["scope"]["withheld"] > 0
    assert opened.within(THE_OWNER).status()["scope"]["withheld"] > 0
    assert "withheld" in caplog.text
    assert "Mac Studio" not in caplog.text
    assert "MEMORY.md" not in caplog.text


def test_a_conversation_that_is_no_longer_the_groups_is_withheld_even_before_it_is_indexed_again(
    workspace, home
):
    config = {**OPEN, "sync": {"onSearch": False}, "sources": ["memory", "sessions"]}
    with Memory(workspace, home=home, config=config) as memory:
        key = "agent:main:telegram:group:-100"
        memory.sessions.create(key, groupId="-100").append(
            {"role": "user", "content": "the violin is in the attic"}
        )
        memory.sync()
        group = memory.within(GROUP)
        assert group.search("where is the violin?").hits[0].source == "sessions"

        memory.sessions.update(key, groupId="-200")

        assert group.search("where is the violin?", min_score=0.0).hits == ()


def test_the_memory_tool_of_a_group_is_its_own_folder(group, workspace):
    tool = group.memory_tool()

    assert "bakery" in tool.call({"command": "view", "path": "/memories/2026-02-10.md"}).text
    assert tool.call({"command": "view", "path": "/memories/MEMORY.md"}).is_error
    assert not tool.call(
        {"command": "create", "path": "/memories/plan.md", "file_text": "walnut cake\n"}
    ).is_error
    assert (workspace / LOG).with_name("plan.md").read_text() == "walnut cake\n"
    assert group.search("walnut").hits[0].path.endswith("group--100/plan.md")
    assert not tool.call({"command": "delete", "path": "/memories/plan.md"}).is_error
    assert "plan.md" not in repr(group.search("walnut", min_score=0.0).hits)


HOSTILE = [
    "/memories/../MEMORY.md", "/memories/../../MEMORY.md", "/memories/../../../MEMORY.md", "/memories/../group-B/x.md",
    "/memories/..%2f..%2fMEMORY.md", "/memories/a/../../../people.md", "/memories//../x.md", "/memories/link/x.md",
    "/MEMORY.md", "memory/people.md", "/memories/./../../people.md", "/memories/..", "/memories/\\..\\x.md",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
def test_no_command_of_the_memory_tool_leaves_the_folder_of_its_group(group, workspace, path):
    (workspace / LOG).with_name("link").symlink_to(workspace / "memory")
    own = workspace / "memory" / "shared-with" / "telegram" / "group--100"

    def others():
        return {
            str(file): file.read_bytes()
            for file in workspace.rglob("*")
            if file.is_file() and own not in file.parents
        }

    before, tool = others(), group.memory_tool()
    for command in (
        {"command": "create", "path": path, "file_text": "theirs\n"},
        {"command": "str_replace", "path": path, "old_str": "- ", "new_str": "+ "},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "theirs\n"},
        {"command": "rename", "old_path": "/memories/2026-02-10.md", "new_path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/mine.md"},
        {"command": "delete", "path": path},
    ):
        tool.call(command)

    assert others() == before


def test_the_memory_tool_is_refused_where_nothing_may_be_written(opened):
    answer = opened.within(UNKNOWN).memory_tool().call({"command": "view", "path": "/memories"})

    assert answer.is_error
    assert "not known where the answer will be seen" in answer.text


def test_a_search_context_says_who_asks(opened):
    with pytest.raises(TypeError):
        opened.within()
    assert opened.within(SearchContext(OWNER, "direct", "")).access.sees_everything
    assert opened.within(ANNA).access.writes == "telegram/person:anna"


def test_scores_tell_nothing_about_what_others_have_written(opened, workspace):
    opened.within(GROUP).append("the zebra brings bread to the bakery")
    questions = ("zebra bakery", "bakery divorce", "zebra of yesterday", "bread")

    def answers():
        found = [opened.within(GROUP).search(question, min_score=0.0) for question in questions]
        return [[(hit.path, hit.score) for hit in result.hits] for result in found]

    before = answers()
    (workspace / "memory" / "secret.md").write_text("a divorce, zebra and bread\n" * 40)

    assert opened.search("divorce").hits
    assert answers() == before
    assert all(before)


def test_a_linked_memory_is_missed_at_the_beginning_and_not_only_when_it_is_needed(opened, workspace):
    curated = workspace / "MEMORY.md"
    curated.rename(workspace / "elsewhere.md")
    curated.symlink_to(workspace / "elsewhere.md")

    assert "`MEMORY.md` is not read: a symbolic link" in opened.within(THE_OWNER).start_context().text
    assert "MEMORY.md" not in opened.within(GROUP).start_context().text


def test_a_group_of_the_same_id_in_another_channel_is_another_group(opened, workspace):
    elsewhere = opened.within(SearchContext("anna", "group", "agent:main:slack:group:-100", "slack", "-100"))
    opened.within(GROUP).append("the pelican is in the shed")

    assert "pelican" in opened.within(GROUP).search("pelican").hits[0].snippet
    assert elsewhere.search("pelican", min_score=0.0).hits == ()
    assert elsewhere.list() == ()
    with pytest.raises(ScopeDenied):
        elsewhere.get(LOG)
    assert elsewhere.start_context().text == ""
    with pytest.raises(PlainmindError):
        elsewhere.forget("pelican", dry_run=True)


def test_a_folder_without_a_channel_is_for_that_id_in_every_one_but_only_the_owner_changes_it(
    opened, workspace
):
    old = workspace / "memory" / "shared-with" / "group--100" / "2026-02-09.md"
    old.parent.mkdir()
    old.write_text("- 09:00 the old kettle whistles\n")
    elsewhere = opened.within(SearchContext("anna", "group", "", "slack", "-100"))

    for group in (opened.within(GROUP), elsewhere):
        assert group.search("kettle").hits[0].path == "memory/shared-with/group--100/2026-02-09.md"
        with pytest.raises(PlainmindError):
            group.forget("the old kettle whistles", dry_run=True)
    assert opened.within(THE_OWNER).forget("the old kettle whistles", dry_run=True).lines
