"""A hook answers as each host wants it, says only what is certain and new, keeps what was said, and never fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plainmind.agent import recall as recalled_text
from plainmind.agent.recall import without_recalled
from plainmind.agent.recalls import mark_of
from plainmind.base.errors import PlainmindError
from plainmind.files.system import try_lock
from plainmind.guests.hosts import health, hook, turns
from plainmind.guests.hosts.turns import Session, Turns
from plainmind.memory.memory import Memory

SESSION = Session("claude-code", "s1", "/work/app")
FACT = "The billing gateway runs at Hetzner in Falkenstein, behind Caddy."
ASKED = "Where does the billing gateway run?"


@pytest.fixture
def memory(home):
    with Memory(home=home, config={"sources": "memory,sessions"}) as opened:
        opened.create_workspace()
        opened.remember(FACT)
        yield opened


@pytest.fixture
def around(memory):
    return Turns(memory)


def test_a_prompt_is_answered_by_what_is_certain_once_in_a_session(around):
    recalled = around.recall(SESSION, ASKED)

    assert "Falkenstein" in recalled
    assert recalled.startswith("<recalled-memory ")
    assert around.recall(SESSION, ASKED) == ""
    assert "Falkenstein" in around.recall(Session("claude-code", "s2"), ASKED)


@pytest.mark.parametrize(
    "prompt",
    ["", "yes", "continue", "gateway", "/compact", "!ls billing gateway", "<task>billing gateway</task>"],
)
def test_commands_and_single_words_recall_nothing(around, prompt):
    assert around.recall(SESSION, prompt) == ""


def test_what_has_nothing_to_do_with_the_memory_recalls_nothing(around):
    assert around.recall(SESSION, "Write a haiku about autumn leaves and the smell of rain") == ""


def test_what_a_session_began_with_is_not_recalled_again_until_it_is_compacted(around):
    assert "Falkenstein" in around.start(SESSION)
    assert around.recall(SESSION, ASKED) == ""
    assert around.start(SESSION, goes_on=True) == ""

    assert "Falkenstein" in around.start(SESSION)


def test_what_is_too_unsure_can_be_judged_though_only_its_line_was_looked_at(around, memory):
    asked = "Which colour does the gateway of the harbour have?"

    assert around.recall(SESSION, asked) == ""
    (recall,) = memory.recalls.page(1).recalls
    (line,) = recall.withheld

    assert line.reason == "too unsure"
    assert line.mark == mark_of(line_of(memory, line))


def line_of(memory, line):
    return memory.get(line.path).text.splitlines()[(line.best_line or line.start_line) - 1]


def keep_asked(around, session, *more):
    around.keep_messages(session, [{"role": "user", "text": ASKED}, *more])


def test_a_question_that_was_asked_before_is_no_answer(around):
    keep_asked(around, Session("opencode", "earlier"))

    recalled = around.recall(SESSION, ASKED.upper().removesuffix("?"))

    assert "Falkenstein" in recalled
    assert "WHERE DOES" not in recalled.upper()


def test_what_was_said_in_this_conversation_neither_is_recalled_nor_hides_what_is_known(around):
    here = Session("opencode", "o1")
    keep_asked(around, here, {"role": "assistant", "text": "I do not know where the billing gateway runs."})

    recalled = around.recall(here, "So where does the billing gateway run?")

    assert "Falkenstein" in recalled
    assert "I do not know" not in recalled


def test_a_memory_that_was_made_just_now_has_nothing_to_say(home):
    with Memory(home=home) as fresh:
        fresh.create_workspace()

        assert Turns(fresh).start(SESSION) == ""
        assert Turns(fresh).recall(SESSION, "What do I know about people, preferences and decisions?") == ""


def test_recall_stays_within_its_tokens(memory, monkeypatch):
    from plainmind.text.chunking import estimated_tokens

    monkeypatch.setattr(recalled_text, "LIKELY", 0.05)
    for number in range(8):
        memory.remember(f"The billing gateway, part {number}: " + "it runs at Hetzner behind Caddy. " * 20)

    recalled = Turns(memory).recall(SESSION, ASKED)

    assert recalled
    assert estimated_tokens(recalled) <= recalled_text.RECALL_TOKENS


def test_a_start_is_no_longer_than_its_host_reads(memory):
    for number in range(40):
        memory.remember(f"{number}. " + "Something that was said on this day, and is worth a line. " * 8)

    assert 4000 < len(Turns(memory).start(SESSION)) <= turns.START_CHARS
    assert len(Turns(memory).start(SESSION, max_chars=8000)) <= 8000


def transcript(folder: Path, *lines: dict) -> str:
    path = folder / ".claude" / "projects" / "app" / "s1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def said(role: str, text: str, number: int) -> dict:
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": f"2026-11-16T09:00:0{number}.000Z",
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    }


def kept(memory) -> str:
    return "".join(Path(row.path).read_text() for row in memory.sessions.list())


def test_a_transcript_is_kept_without_secrets_private_words_and_what_was_recalled(around, memory, tmp_path):
    nonce = "0123456789abcdef"
    path = transcript(
        tmp_path,
        said("user", "The codeword is heliotrope. <private>my salary is 4711</private> Good.", 1),
        said("assistant", f"<recalled-memory {nonce}>\nRECALLED\n</recalled-memory {nonce}> I see.", 2),
        said("user", "the key is AKIAIOSFODNN7EXAMPLF, and a password: hunter2-Very-Secret", 3),
    )

    assert around.keep_transcript(SESSION, "claude-code", path) == 3

    text = kept(memory)
    assert "heliotrope" in text
    assert "I see." in text
    for hidden in ("4711", "RECALLED", "AKIAIOSFODNN7EXAMPLF", "<private>"):
        assert hidden not in text
    assert around.keep_transcript(SESSION, "claude-code", path) == 0


def test_another_session_recalls_what_was_said_and_the_same_one_does_not(around, tmp_path):
    path = transcript(tmp_path, said("user", "The codeword for the migration is heliotrope.", 1))
    around.keep_transcript(SESSION, "claude-code", path)

    asked = "What is the codeword for the migration?"

    assert around.recall(SESSION, asked) == ""
    assert "heliotrope" in around.recall(Session("codex", "s9"), asked)


def test_a_summary_becomes_one_note_of_its_own(around, memory):
    place = around.keep_summary(SESSION, "We moved the gateway. <private>x</private>")
    assert around.keep_summary(SESSION, "We moved the gateway. <private>x</private>") == place

    (note,) = [found for found in memory.list() if "claude-code" in found.path]
    assert note.path == place
    assert "We moved the gateway." in memory.text_of(note)
    assert "<private>" not in memory.text_of(note)


def test_of_a_summary_only_what_sums_up_is_kept(around, memory):
    told = "<analysis>\nFirst I think aloud.\n</analysis>\n\n<summary>\n1. The hull is of larch.\n</summary>"

    act(around, hook_event_name="PostCompact", session_id="s1", compact_summary=told)
    act(around, hook_event_name="PostCompact", session_id="s2", compact_summary="The keel <is> of oak.")

    notes = [memory.text_of(found) for found in memory.list() if "claude-code" in found.path]
    assert sorted(note.split("\n\n", 1)[1] for note in notes) == [
        "1. The hull is of larch.\n",
        "The keel <is> of oak.\n",
    ]


def test_messages_of_a_host_without_transcripts_are_kept_once(around, memory):
    session = Session("gemini", "g1")
    said_there = [{"role": "user", "text": "hello there"}, {"role": "assistant", "text": "good morning"}]

    around.keep_messages(session, said_there)
    around.keep_messages(session, said_there)

    assert kept(memory).count("good morning") == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <PRIVATE>b", "a "),
        ("a <recalled-memory 0123456789abcdef>x</recalled-memory 0123456789abcdef> b", "a  b"),
        ("&lt;recalled-memory 0123456789abcdef&gt;x&lt;/recalled-memory 0123456789abcdef&gt;b", "b"),
        ("<recalled-memory 0123456789abcdef>x</recalled-memory fedcba9876543210> y", ""),
        ("nothing of that", "nothing of that"),
    ],
)
def test_what_is_recalled_or_private_is_not_kept(text, left):
    assert without_recalled(text) == left


@pytest.mark.parametrize(
    ("payload", "environ", "host"),
    [
        ({"transcript_path": "/h/.claude/projects/a/b.jsonl"}, {"COPILOT_CLI": "1"}, "claude-code"),
        ({"transcript_path": "/h/.codex/sessions/a.jsonl", "turn_id": "1"}, {}, "codex"),
        ({"turn_id": "1", "transcript_path": None}, {"CLAUDECODE": "1"}, "codex"),
        ({"hook_event_name": "BeforeAgent"}, {"CLAUDECODE": "1"}, "gemini"),
        ({"hook_event_name": "SessionStart"}, {"GEMINI_SESSION_ID": "1"}, "gemini"),
        ({"hook_event_name": "SessionStart"}, {"COPILOT_CLI": "1"}, "copilot"),
        ({"conversation_id": "1", "hook_event_name": "stop"}, {}, "cursor"),
        ({"host": "opencode", "hook_event_name": "Stop"}, {}, "opencode"),
        ({"hook_event_name": "Stop"}, {}, "claude-code"),
        ([], {}, "claude-code"),
    ],
)
def test_a_host_is_recognised_by_what_it_says_and_then_by_its_surroundings(payload, environ, host):
    assert hook.event_of(payload, environ).host == host


@pytest.mark.parametrize(
    ("payload", "shape"),
    [
        ({"hook_event_name": "UserPromptSubmit", "turn_id": "1"}, ["hookSpecificOutput"]),
        ({"hook_event_name": "BeforeAgent"}, ["hookSpecificOutput"]),
        ({"hook_event_name": "UserPromptSubmit", "host": "copilot"}, ["additionalContext"]),
        (
            {"hook_event_name": "beforeSubmitPrompt", "conversation_id": "c"},
            ["continue", "additional_context"],
        ),
        ({"hook_event_name": "UserPromptSubmit", "host": "opencode"}, ["context"]),
    ],
)
def test_an_answer_has_the_shape_that_its_host_reads(payload, shape, around):
    event = hook.event_of({"session_id": "s", "prompt": ASKED, **payload}, {})

    answer = hook.act(event, around)

    assert list(answer) == shape
    assert "Falkenstein" in json.dumps(answer)


def act(around, **payload):
    return hook.act(hook.event_of(payload, {}), around)


def test_gemini_and_copilot_are_kept_from_their_own_transcripts_as_an_import_would(around, memory, tmp_path):
    gemini = tmp_path / ".gemini" / "tmp" / "app" / "chats" / "session-1.jsonl"
    copilot = tmp_path / ".copilot" / "session-state" / "c1" / "events.jsonl"
    lines = {
        gemini: [
            {"sessionId": "g1", "startTime": "2026-11-16T09:00:00.000Z"},
            {"id": "m1", "type": "user", "content": [{"text": "yes"}]},
            {"id": "m2", "type": "gemini", "content": "Which one?"},
            {"id": "m3", "type": "user", "content": [{"text": "yes"}]},
        ],
        copilot: [
            {"type": "session.start", "id": "e0", "data": {"sessionId": "c1"}},
            {"type": "user.message", "id": "e1", "data": {"content": "Which wood?"}},
            {"type": "assistant.message", "id": "e2", "data": {"content": "Larch."}},
        ],
    }
    for path, found in lines.items():
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in found))

    for _ in range(2):
        act(around, hook_event_name="AfterAgent", session_id="g1", transcript_path=str(gemini), prompt="yes")
        act(around, hook_event_name="Stop", session_id="c1", transcript_path=str(copilot))
    again = [
        memory.import_sessions(program, str(path))
        for program, path in (("gemini", gemini), ("copilot", copilot))
    ]

    assert sorted(row.key for row in memory.sessions.list()) == ["copilot:c1", "gemini:g1"]
    assert kept(memory).count('"text":"yes"') == 2
    assert [report.messages for report in again] == [0, 0]


def test_what_copilot_answers_after_a_tool_is_waited_for(around, memory, tmp_path, monkeypatch):
    copilot = tmp_path / ".copilot" / "session-state" / "c1" / "events.jsonl"
    copilot.parent.mkdir(parents=True)
    call = {"content": "", "toolRequests": [{"toolCallId": "t1", "name": "memory_search", "arguments": {}}]}
    answer = json.dumps({"type": "assistant.message", "id": "e3", "data": {"content": "Larch."}}) + "\n"
    written = [
        {"type": "session.start", "id": "e0", "data": {"sessionId": "c1"}},
        {"type": "user.message", "id": "e1", "data": {"content": "Which wood?"}},
        {"type": "assistant.message", "id": "e2", "data": call},
    ]
    copilot.write_text("".join(json.dumps(line) + "\n" for line in written))
    parts = [answer[:30], answer[30:]]  # Copilot writes on while we wait

    def write_on(_seconds):
        with copilot.open("a") as file:
            file.write(parts.pop(0))

    monkeypatch.setattr(hook.time, "sleep", write_on)
    act(around, hook_event_name="Stop", session_id="c1", transcript_path=str(copilot))

    assert '"text":"Larch."' in kept(memory)


def test_a_conversation_that_its_user_keeps_nowhere_is_kept_nowhere(around, memory):
    told = {"session_id": "s1", "transcript_path": "/nowhere/.claude/s1.jsonl"}
    act(around, hook_event_name="Stop", last_assistant_message="At Hetzner.", **told)

    assert not memory.sessions.list()


def test_what_gemini_gives_back_of_ours_is_no_prompt():
    assert hook.without_own_context("<hook_context>ours</hook_context>\n\nmine") == "mine"
    assert hook.without_own_context("mine <hook_context>") == "mine <hook_context>"


def run(data: bytes, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "plainmind", "hook", *words],
        input=data,
        capture_output=True,
        env=os.environ | environ,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ()),
        (b"no JSON at all", ()),
        (b"[]", ()),
        (b'{"hook_event_name": "Stop", "transcript_path": 7, "session_id": ["x"]}', ()),
        (
            b'{"hook_event_name": "UserPromptSubmit", "prompt": "where is the gateway?"}',
            ("--home", "/dev/null/x"),
        ),
        (b"{}", ("--no-such-option",)),
    ],
)
def test_whatever_comes_the_exit_status_is_0_and_nothing_is_printed(data, words):
    done = run(data, *words)

    assert done.returncode == 0
    assert done.stdout == b""


def test_a_host_that_leaves_its_side_open_is_not_waited_for(memory):
    started = subprocess.Popen(
        [sys.executable, "-m", "plainmind", "hook", "--home", memory.home],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "open", "prompt": ASKED}
    started.stdin.write(json.dumps(event).encode())
    started.stdin.flush()
    answer = started.stdout.read()  # which ends when the hook has ended, not its input
    started.stdin.close()
    started.stdout.close()

    assert started.wait() == 0
    assert b"Falkenstein" in answer


def test_who_does_not_want_conversations_searched_gets_none(home, around, memory, tmp_path):
    around.keep_transcript(
        SESSION,
        "claude-code",
        transcript(tmp_path, said("user", "The codeword for the migration is heliotrope.", 1)),
    )
    (home / "plainmind.json").write_text('{"sources": ["memory"]}')
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s7",
        "prompt": "What is the codeword for the migration?",
    }

    assert run(json.dumps(event).encode()).stdout == b""
    (home / "plainmind.json").unlink()
    assert b"heliotrope" in run(json.dumps(event).encode()).stdout


def is_indexed(memory) -> bool:
    return not memory.status()["dirty"]


def test_when_a_conversation_starts_the_notes_are_read_for_its_first_prompt(home):
    with Memory(home=home, config={"sources": hook.SOURCES}) as memory:
        memory.create_workspace()
        (Path(memory.workspace) / "memory" / "hull.md").write_text("The hull is of larch.\n")
        assert not is_indexed(memory)

        run(b'{"hook_event_name": "SessionStart", "session_id": "s1"}', "--home", memory.home)

        deadline = time.monotonic() + 30
        while not is_indexed(memory) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert is_indexed(memory)


def test_one_process_at_a_time_brings_the_index_up_to_date(memory):
    (Path(memory.workspace) / "memory" / "hull.md").write_text("The hull is of larch.\n")
    busy = try_lock(hook._catch_up_lock(memory), operation="another")

    hook.catch_up(lambda: Memory(home=memory.home))
    assert not is_indexed(memory)
    busy.release()
    hook.catch_up(lambda: Memory(home=memory.home))

    assert is_indexed(memory)


def test_while_an_index_is_made_a_prompt_waits_little_and_is_not_made_to_wait_for_a_second_one(
    memory, monkeypatch, capsys, home
):
    monkeypatch.setattr(hook, "_CATCH_UP_S", 0.05)
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": ASKED}).encode()
    with try_lock(hook._catch_up_lock(memory), operation="catch up"):
        hook.answer_once(event, lambda: Memory(home=memory.home))
    assert capsys.readouterr().out == ""
    assert hook.last_failure(str(home / "hosts")) is None

    hook.answer_once(event, lambda: Memory(home=memory.home))

    assert "Falkenstein" in capsys.readouterr().out


def test_a_recall_that_was_given_up_has_the_index_brought_up_to_date(memory, monkeypatch, home):
    begun = []
    monkeypatch.setattr(hook, "catch_up_later", lambda _, sources: begun.append(sources))
    monkeypatch.setattr(Turns, "recall", lambda *_: time.sleep(5))
    monkeypatch.setitem(hook._LONGEST_S, "recall", 0.05)

    hook.answer_once(
        json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": ASKED}).encode(), lambda: memory
    )

    assert begun == [memory.sources]
    assert "took too long" in hook.last_failure(str(home / "hosts"))


def test_what_a_hook_could_not_do_is_told_by_doctor(home, cli):
    Memory(home=home).create_workspace()
    run(b"no JSON at all")

    (check,) = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "hooks"]

    assert check["verdict"] == "warning"
    assert "JSONDecodeError" in check["detail"]


def test_a_plugin_can_keep_it_running(memory):
    asked = [
        {
            "id": 1,
            "hook_event_name": "UserPromptSubmit",
            "host": "opencode",
            "session_id": "o",
            "prompt": ASKED,
        },
        {"id": 2, "hook_event_name": "Search", "query": "billing gateway"},
        {"id": 3, "hook_event_name": "Read", "path": "memory/none.md"},
        {"id": 4, "hook_event_name": "Status"},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in asked)

    done = run(lines.encode(), "--serve", "--home", memory.home)

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4]
    assert "Falkenstein" in answers[0]["result"]["context"]
    assert "Falkenstein" in answers[1]["result"]["hits"][0]["snippet"]
    assert answers[2]["error"]["type"] == "NotFound"
    assert answers[3]["result"]["files"] == 2


def test_an_agent_whose_workspace_its_host_has_not_made_yet_has_no_files(tmp_path, home):
    line = json.dumps({"id": 1, "hook_event_name": "Index"}) + "\n"

    done = run(line.encode(), "--serve", "--workspace", str(tmp_path / "later"))

    assert json.loads(done.stdout)["result"]["files"] == 0
    assert not (tmp_path / "later").exists()


def served(home, *words: str):
    """A server as a host starts it."""
    program = [sys.executable, "-m", "plainmind", "mcp", "--home", str(home), *words]
    return health._talk_with(program, os.environ, str(home))


def test_a_host_can_call_it_as_a_tool_that_no_model_sees(memory):
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "m", "prompt": ASKED}
    with served(memory.home) as talk:
        talk.ask(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}
        )
        listed = talk.ask("tools/list", {})["tools"]
        first = talk.ask("tools/call", {"name": "hook", "arguments": event})
        again = talk.ask("tools/call", {"name": "hook", "arguments": event})

    assert "hook" not in [tool["name"] for tool in listed]
    answer = json.loads(first["content"][0]["text"])
    assert "Falkenstein" in answer["hookSpecificOutput"]["additionalContext"]
    assert again["content"][0]["text"] == ""


def test_where_nothing_may_be_written_no_host_can_call_it(memory):
    with (
        served(memory.home, "--read-only") as talk,
        pytest.raises(PlainmindError, match="there is no tool `hook`"),
    ):
        talk.ask("tools/call", {"name": "hook", "arguments": {"hook_event_name": "Stop"}})
