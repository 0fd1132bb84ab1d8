"""Claude's memory tool on a whole memory: what it writes is found at once, can be undone, and stays in its scope."""

from __future__ import annotations

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, Access, SearchContext
from plainmind.base.model import SHARED

ANNA = SearchContext("anna", "direct", "agent:main:telegram:direct:anna")
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", group="7")
OTHER_GROUP = SearchContext("anna", "group", "agent:main:telegram:group:8", group="8")
EVERYONE_MAY = {"scope": {"default": "allow", "rules": []}}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\nThe safe word is quetzal.\n")
    (folder / "memory" / "diary.md").write_text("A private quetzal.\n")
    return folder


@pytest.fixture
def memory(workspace, tmp_path):
    with Memory(workspace, home=tmp_path / "home", config=EVERYONE_MAY) as memory:
        yield memory


def call(tool, command, **arguments):
    answer = tool.call({"command": command, **arguments})
    assert not answer.is_error, answer.text
    return answer.text


def paths(memory, query):
    return [hit.path for hit in memory.search(query, min_score=0).hits]


def test_what_is_written_is_in_the_index_at_once(memory):
    tool = memory.within(THE_OWNER).memory_tool()

    call(tool, "create", path="/memories/birds.md", file_text="The pelican lands on Tuesday.\n")

    # Without a sync of its own: the tool has done it.
    assert memory.status()["dirty"] is False
    assert "memory/birds.md" in paths(memory, "pelican")
    call(tool, "str_replace", path="/memories/birds.md", old_str="Tuesday", new_str="Friday")
    assert "Friday" in memory.search("when does the pelican land?").hits[0].snippet
    call(tool, "rename", old_path="/memories/birds.md", new_path="/memories/animals/birds.md")
    assert "memory/birds.md" not in paths(memory, "pelican")
    assert "memory/animals/birds.md" in paths(memory, "pelican")
    call(tool, "delete", path="/memories/animals")
    assert not [path for path in paths(memory, "pelican Friday") if "birds" in path]


def test_deleting_the_last_note_is_not_taken_for_a_lost_disk(memory):
    tool = memory.within(THE_OWNER).memory_tool()
    memory.sync()

    call(tool, "delete", path="/memories/diary.md")
    call(tool, "delete", path="/memories/MEMORY.md")

    assert memory.search("quetzal", min_score=0).hits == ()
    call(tool, "create", path="/memories/new.md", file_text="a new beginning\n")
    assert paths(memory, "beginning") == ["memory/new.md"]


def test_a_disk_that_is_not_mounted_is_not_written_beneath(memory, workspace):
    memory.sync()
    workspace.rename(workspace.with_name("elsewhere"))
    workspace.mkdir()

    answer = (
        memory.within(THE_OWNER)
        .memory_tool()
        .call({"command": "create", "path": "/memories/new.md", "file_text": "lost\n"})
    )

    assert answer.is_error
    assert list(workspace.iterdir()) == []


def test_a_deleted_note_comes_back_from_the_history(memory, workspace):
    tool = memory.within(THE_OWNER).memory_tool()
    before = (workspace / "memory/diary.md").read_bytes()

    memory.remember("a note that is deleted with its file")
    (log,) = (found.path for found in memory.list() if found.path.startswith("memory/2"))
    call(tool, "delete", path="/memories/" + log.removeprefix("memory/"))
    call(tool, "delete", path="/memories/diary.md")
    (version,) = [one for one in memory.history("memory/diary.md") if one.available]
    memory.restore(version.id)

    assert (workspace / "memory/diary.md").read_bytes() == before
    assert [check.verdict for check in memory.doctor(verify=True) if check.name == "written notes"] == ["ok"]


@pytest.mark.parametrize(
    ("context", "folder"),
    [(ANNA, "telegram/person-anna"), (GROUP, "telegram/group-7")],
    ids=["person", "group"],
)
def test_others_have_a_memory_of_their_own(memory, workspace, context, folder):
    tool = memory.within(context).memory_tool()

    call(tool, "create", path="/memories/plans.md", file_text="meet at the pelican\n")

    assert (workspace / "memory/shared-with" / folder / "plans.md").exists()
    assert call(tool, "view", path="/memories").split("\n")[2:] == ["20B\t/memories/plans.md"]
    assert [hit.path for hit in memory.within(context).search("pelican", min_score=0).hits] == [
        f"memory/shared-with/{folder}/plans.md"
    ]


@pytest.mark.parametrize("context", [ANNA, GROUP], ids=["person", "group"])
@pytest.mark.parametrize(
    "path",
    [
        "/memories/MEMORY.md",
        "/memories/diary.md",
        "/memories/memory/diary.md",
        "/memories/../diary.md",
        "/memories/../../diary.md",
        "/memories/../../../MEMORY.md",
        "/memories/../group-8/plans.md",
        "/MEMORY.md",
        "/etc/passwd",
    ],
)
def test_others_reach_nothing_that_is_not_theirs(memory, context, path):
    call(memory.within(OTHER_GROUP).memory_tool(), "create", path="/memories/plans.md", file_text="quetzal\n")
    tool = memory.within(context).memory_tool()
    call(tool, "create", path="/memories/own.md", file_text="own\n")
    private = {found.path for found in memory.list()} - {
        found.path for found in memory.within(context).list()
    }

    for arguments in (
        {"command": "view", "path": path},
        {"command": "str_replace", "path": path, "old_str": "quetzal", "new_str": "parrot"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "parrot"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/mine.md"},
    ):
        answer = tool.call(arguments)
        assert answer.is_error, arguments
        assert "quetzal" not in answer.text.replace("`quetzal`", "")
    assert private <= {found.path for found in memory.list()}
    assert all("parrot" not in file.text for file in memory.export())


@pytest.mark.parametrize(
    "context",
    [
        SearchContext("", "direct", ""),
        SearchContext("", "", ""),
        SearchContext("anna", "group", ""),
        SearchContext("anna", "", "cron:daily"),
    ],
    ids=["unknown person", "unknown", "unknown group", "job of another"],
)
def test_where_nothing_may_be_written_every_command_is_refused(memory, context):
    tool = memory.within(context).memory_tool()

    for arguments in (
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": "/memories/MEMORY.md"},
        {"command": "create", "path": "/memories/x.md", "file_text": "x"},
    ):
        answer = tool.call(arguments)
        assert answer.is_error
        assert answer.text.startswith("The memory cannot be used here: ")


def test_a_scope_that_has_no_folder_does_not_open_all_notes(memory):
    scoped = memory.within(GROUP)
    scoped.access = Access(is_allowed=True, scopes=frozenset({SHARED}), writes="team:blue")

    answer = scoped.memory_tool().call({"command": "view", "path": "/memories"})

    assert answer.is_error
    assert "diary" not in answer.text


def test_a_note_can_be_deleted_before_anything_was_indexed(memory, workspace):
    call(memory.within(THE_OWNER).memory_tool(), "delete", path="/memories/diary.md")

    assert not (workspace / "memory/diary.md").exists()
    assert paths(memory, "quetzal") == ["MEMORY.md"]


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "path": "/memories/new.md", "file_text": "half \ud83d of it \udc80\n"},
        {"command": "str_replace", "path": "/memories/diary.md", "old_str": "private", "new_str": "\ud83d"},
        {"command": "insert", "path": "/memories/diary.md", "insert_line": 0, "insert_text": "\ud83d"},
    ],
    ids=lambda command: command["command"],
)
def test_halves_of_characters_are_written_as_a_sign_that_something_is_missing(memory, workspace, command):
    call(memory.within(THE_OWNER).memory_tool(), **command)

    path = workspace / "memory" / command["path"].removeprefix("/memories/")
    assert "?" in path.read_text(encoding="utf-8")
