"""`chat` and `flush` from the command line: pipes, terminals, failures, and what they leave behind."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest
from tests.cli.terminal import COMMAND
from tests.support.person_at_terminal import Person
from tests.support.scripted_chat_model import KEY, Call, Say, in_order, scripted_model

from plainmind.sessions.store import SessionStore


@pytest.fixture
def model(monkeypatch, home, workspace):
    """A scripted model, which the settings name."""
    with scripted_model(in_order(Say("Larch."))) as server:
        monkeypatch.setenv("PLAINMIND_CHAT_BASEURL", server.openai_url)
        monkeypatch.setenv("PLAINMIND_CHAT_APIKEY", KEY)
        monkeypatch.setenv("PLAINMIND_CHAT_MODEL", "larch-1")
        monkeypatch.setenv("PLAINMIND_PROVIDER", "none")
        yield server


@pytest.fixture
def store(home):
    return SessionStore(home / "agents" / "main" / "sessions")


def saving(*texts):
    """Save texts when asked to, one flush after the other; answer everything else."""
    left = list(texts)

    def script(asked):
        if asked.kind == "flush":
            return Say("NO_REPLY") if "Noted" in asked.last or not left else _append(left.pop(0))
        return Say("In short.") if asked.kind == "compaction" else Say("Larch.", usage=(200, 5))

    return script


def _append(text):
    return Say(calls=[Call("memory_append", {"text": text})])


def test_once_prints_the_answer_and_nothing_else(cli, model, store):
    model.script = in_order(Say(calls=[Call("memory_search", {"query": "printer"})]), Say("VLAN 40.\n"))

    answer = cli("chat", "--once", "Which VLAN is the printer on?")

    assert (answer.status, answer.out) == (0, "VLAN 40.\n")
    assert "memory_search printer" in answer.err
    assert "VLAN 40" in model.asked[1].text
    messages = [entry["message"]["role"] for entry in store.open("agent:main:main").entries()]
    assert messages == ["user", "assistant", "toolResult", "assistant"]


def test_the_next_run_goes_on_where_the_last_one_ended(cli, model):
    cli("chat", "--once", "Which wood?")
    cli("chat", "--once", "Why?")

    assert "Which wood?" in model.asked[1].text
    cli("chat", "--once", "Hello", "--session", "agent:main:other")
    assert "Which wood?" not in model.asked[2].text


def test_new_archives_the_conversation_before(cli, model, store):
    cli("chat", "--once", "Which wood?")
    cli("chat", "--new", "--once", "Hello")

    assert "Which wood?" not in model.asked[1].text
    assert len(store.archives()) == 1
    assert cli("chat", "--new", "--once", "Hello", "--session", "fresh").status == 0


def test_new_puts_nothing_away_before_it_is_clear_that_there_is_a_model(cli, model, store):
    cli("chat", "--once", "Which wood?")

    assert cli("chat", "--new", "--once", "Hello", "--config", "chat.provider=nobody").status == 1

    assert store.archives() == ()
    assert cli("chat", "--once", "Why?", "--session", "other", "--config", "chat.provider=nobody").status == 1
    assert [row.key for row in store.list()] == ["agent:main:main"]


def test_each_line_of_a_pipe_is_a_turn(cli, model):
    model.script = lambda asked: Say(f"Heard {asked.last}")

    answer = cli("chat", stdin="one\n\n  \ntwo é\r\nthree")

    assert answer.out == "Heard one\nHeard two é\nHeard three\n"


def test_programs_get_one_json_object_a_turn(cli, model):
    model.script = in_order(
        Say("Look.", [Call("memory_search", {"query": "x"})]), Say("Larch.", usage=(50, 5))
    )

    answer = cli("chat", "--json", stdin="Which wood?\nAnd?\n")

    first, second = map(json.loads, answer.out.splitlines())
    assert first["schema_version"] == 1
    assert first["text"] == "Larch."
    assert first["tools"] == [{"name": "memory_search", "arguments": {"query": "x"}, "isError": False}]
    assert first["usage"] == {"input": 50, "output": 5, "totalTokens": 55}
    assert second["stopReason"] == "stop"


def test_without_a_model_it_says_what_to_set(cli, workspace):
    answer = cli("chat", "--once", "Hello")

    assert answer.status == 1
    assert "no chat model is chosen" in answer.err
    assert "chat.model" in answer.err


@pytest.mark.parametrize(
    ("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]
)
def test_without_a_key_it_says_which_one(cli, workspace, monkeypatch, provider, variable):
    monkeypatch.delenv(variable, raising=False)

    answer = cli("chat", "--model", "m", "--config", f"chat.provider={provider}", "--once", "Hello")

    assert answer.status == 1
    assert f"no API key for {provider}" in answer.err
    assert variable in answer.err


def test_a_key_of_the_environment_is_not_sent_to_another_address(cli, model, monkeypatch):
    monkeypatch.delenv("PLAINMIND_CHAT_APIKEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-alone")

    assert cli("chat", "--once", "Hello").status == 0
    assert "authorization" not in model.asked[0].headers

    cli("chat", "--once", "Hello", "--config", "chat.apiKey=env:OPENAI_API_KEY")
    assert model.asked[1].headers["authorization"] == "Bearer sk-of-openai-alone"


def test_anthropic_s_language_is_a_setting(cli, model):
    answer = cli(
        *["chat", "--once", "Hello", "--config", "chat.provider=anthropic"],
        *["--config", f"chat.baseUrl={model.anthropic_url}"],
    )

    assert answer.out == "Larch.\n"
    assert model.asked[0].dialect == "anthropic"


def test_a_turn_that_fails_is_kept_and_resumed(cli, model, store):
    model.script = in_order(Say(status=401, body={"error": {"message": "bad key"}}), Say("Larch."))

    answer = cli("chat", stdin="Which wood?\nnever asked\n")
    assert answer.status == 1
    assert "error:" in answer.err
    assert "chat.apiKey" in answer.err
    assert KEY not in answer.err

    assert "`plainmind chat --resume` asks again" in answer.err

    resumed = cli("chat", "--resume", stdin="")
    assert (resumed.status, resumed.out) == (0, "Larch.\n")
    texts = [entry["message"]["content"] for entry in store.open("agent:main:main").entries()]
    assert texts[0] == "Which wood?"
    assert "never asked" not in str(texts)


def test_a_context_that_is_full_is_saved_and_shortened_by_the_way(cli, model, workspace, home):
    model.script = saving("They chose larch.")
    full = in_order(Say("Larch.", usage=(181_000, 5)), Say("Yes.", usage=(100, 5)))
    quiet = model.script
    model.script = lambda asked: full(asked) if asked.kind == "turn" else quiet(asked)
    window = ("--config", "chat.contextWindow=200000", "--config", "chat.keepMessages=0")

    answer = cli("chat", *window, stdin="Which wood?\nSure?\n")

    assert answer.out == "Larch.\nYes.\n"
    assert "saved to memory/" in answer.err
    assert [asked.kind for asked in model.asked] == ["turn", "flush", "flush", "compaction", "turn"]
    status = cli("status", "--json").json["lastFlush"]
    assert status["ok"] is True
    assert status["session"] == "agent:main:main"
    assert status["note"].startswith("memory/")
    assert "flushed" in cli("status").out
    assert "They chose larch." in cli("search", "larch").out


def test_flush_by_hand_says_what_was_saved(cli, model, workspace):
    model.script = saving("They chose larch.", "The mast is spruce.")
    cli("chat", "--once", "Which wood?")

    first = cli("flush")
    assert first.status == 0
    assert "saved to memory/" in first.out
    assert "They chose larch." in first.out
    assert cli("flush").out == "nothing new was worth saving\n"

    cli("chat", "--once", "And the mast?")
    again = cli("flush", "--json", "--session", "agent:main").json
    assert again["outcome"] == "saved"
    assert again["text"] == "The mast is spruce."
    assert again["note"]["path"].startswith("memory/")


def test_a_flush_that_fails_says_why_and_status_too(cli, model):
    cli("chat", "--once", "Which wood?")
    model.script = in_order(Say(status=403, body={"error": {"message": "not for you"}}))

    answer = cli("flush")

    assert answer.status == 1
    assert "not for you" in answer.err
    assert cli("status", "--json").json["lastFlush"]["ok"] is False
    assert "failed" in cli("status").out


def test_an_archive_is_not_flushed(cli, model, store):
    cli("chat", "--once", "Which wood?")
    cli("chat", "--new", "--once", "Hello")
    asked = len(model.asked)

    answer = cli("flush", "--session", store.archives()[0])

    assert answer.status == 1
    assert "is an archive" in answer.err
    assert len(model.asked) == asked


def test_flush_without_a_conversation_says_so(cli, model):
    answer = cli("flush")

    assert answer.status == 1
    assert "no session" in answer.err


def test_a_conversation_of_another_program_is_counted_from_then_on(cli, model, store):
    session = store.create("agent:main:main", chatType="direct")
    session.append({"role": "user", "content": "Hello"})
    registry = store.folder + "/sessions.json"
    with open(registry) as file:
        entry = json.load(file)["agent:main:main"]
    entry.pop("plainmind")
    with open(registry, "w") as file:
        json.dump({"agent:main:main": entry | {"totalTokens": 7, "inputTokens": 1000}}, file)

    cli("chat", "--once", "Which wood?")

    found = store.entry("agent:main:main")
    assert (found["totalTokens"], found["inputTokens"], found["contextTokens"]) == (110, 1100, 128_000)


def test_a_pipe_that_is_closed_ends_it_quietly(model, process):
    import subprocess

    model.script = in_order(Say("word " * 100_000))
    running = subprocess.Popen(
        [COMMAND, "chat", "--once", "Hello"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.read(10)
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()

    assert running.wait(timeout=60) == 141
    assert errors == b""


def test_a_person_talks_asks_for_help_and_leaves(model, home):
    with Person([COMMAND, "chat"]) as person:
        person.read_until("larch-1 · agent:main:main")
        person.read_until("› ")
        person.type("Which wood?")
        person.read_until("Larch.")
        person.read_until("› ")
        person.type("/help")
        person.read_until("/compact")
        person.read_until("› ")
        person.type("/status")
        person.read_until("110 of 128,000 tokens")
        person.read_until("› ")
        person.type("/nonsense")
        person.read_until("there is no command /nonsense")
        person.read_until("› ")
        person.type("two \\")
        person.read_until("… ")
        person.type("lines")
        person.read_until("Larch.")
        person.read_until("› ")
        person.press(b"\x04")
        assert person.end() == 0

    assert model.asked[-1].last == "two \nlines"
    kept = home / "chat-history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text().splitlines()[:2] == ["Which wood?", "/help"]


def test_what_was_typed_is_there_again_and_what_begins_with_a_space_is_not(model, home):
    home.mkdir(exist_ok=True)
    (home / "chat-history").write_text("Which wood?\n")
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type(" my password is larch")
        person.read_until("Larch.")
        person.read_until("› ")
        person.press(b"\x1b[A\r")
        person.read_until("Larch.")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0

    assert model.asked[-1].last == "Which wood?"
    assert "password" not in (home / "chat-history").read_text()


def test_ctrl_c_stops_the_answer_and_not_the_program(model, store):
    model.script = in_order(Say("Larch lasts. " * 40, pause_s=60), Say("Yes."))
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type("Which wood?")
        person.read_until("Larch lasts.")
        person.press(b"\x03")
        person.read_until("› ")
        person.press(b"half a li")
        person.read_until("half a li")
        person.insist(b"\x03", "› ")
        person.type("Sure?")
        person.read_until("Yes.")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0

    stops = [entry["message"].get("stopReason") for entry in store.open("agent:main:main").entries()]
    assert stops == [None, "aborted", None, "stop"]


def test_after_ctrl_c_the_prompt_begins_a_line_of_its_own(model):
    waiting = threading.Event()
    model.script = lambda _: Say("", pause_s=60)
    model.at = lambda moment, _: waiting.set() if moment == "speaking" else None
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type("Which wood?")
        assert waiting.wait(30)
        person.press(b"\x03")
        assert person.read_until("› ").endswith("\n› ")
        person.type("/quit")
        assert person.end() == 0


def test_a_person_sees_an_error_and_retries(model):
    model.script = in_order(Say(status=400, body={"error": {"message": "no"}}), Say("Larch."))
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type("Which wood?")
        person.read_until("error:")
        person.read_until("› ")
        person.type("/retry")
        person.read_until("Larch.")
        person.read_until("› ")
        person.type("/new")
        person.read_until("› ")
        person.type("Hello")
        person.read_until("Larch.")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0

    assert "Which wood?" not in model.asked[-1].text


def test_a_command_that_has_nothing_to_do_says_so(model, workspace):
    model.script = saving("They chose larch.")
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type("Which wood?")
        person.read_until("Larch.")
        person.read_until("› ")
        for command, said in (
            ("/retry", "has its answer"),
            ("/compact", "nothing to shorten"),
            ("/status", "nothing yet"),
            ("/flush", "saved to memory/"),
            ("/status", "saved     memory/"),
            ("/flush", "nothing new was worth saving"),
            ("/status", "nothing new at the last look"),
            ("/new", "a new conversation"),
        ):
            person.type(command)
            person.read_until(said)
            person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0


@pytest.mark.parametrize("option", ["--once", "--session"])
def test_an_empty_text_is_refused_before_anything_is_opened(cli, model, store, option):
    answer = cli("chat", option, "  ")

    assert answer.status == 2
    assert f"argument {option}: it is empty" in answer.err
    assert store.list() == []


def test_at_a_terminal_a_turn_without_answer_is_answered_first(model, store):
    session = store.create("agent:main:main", chatType="direct")
    session.append({"role": "user", "content": "Which wood?"})

    with Person([COMMAND, "chat"]) as person:
        person.read_until("got no answer")
        person.read_until("Larch.")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0


def test_escape_sequences_of_a_model_do_not_reach_the_terminal(model):
    model.script = in_order(Say("\x1b]0;owned\x07 red \x1b[31m"))
    with Person([COMMAND, "chat"]) as person:
        person.read_until("› ")
        person.type("Hello")
        shown = person.read_until("red ")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0

    assert "\x1b]0;" not in shown
    assert "\x1b[31m" not in person.seen


def test_flushing_and_compacting_by_hand_at_a_terminal(model, workspace, store):
    model.script = saving("They chose larch.")
    with Person([COMMAND, "chat", "--config", "chat.keepMessages=0"]) as person:
        person.read_until("› ")
        person.type("Which wood?")
        person.read_until("› ")
        person.type("/flush")
        person.read_until("saved to memory/")
        person.read_until("› ")
        person.type("/compact")
        person.read_until("was shortened")
        person.read_until("› ")
        person.type("/quit")
        assert person.end() == 0

    assert store.open("agent:main:main").context().summary == "In short."
