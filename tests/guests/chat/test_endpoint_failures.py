"""Every way in which an endpoint fails: asked again, given up, or kept for what it had said."""

from __future__ import annotations

import threading
import time

import pytest
from tests.support.scripted_chat_model import KEY, Call, Say, in_order

from plainmind.agent.tools import APPEND, SEARCH
from plainmind.base.errors import ConfigError
from plainmind.guests.chat.endpoint import EndpointModel, create_chat_model, dialect_of
from plainmind.guests.chat.model import ABORTED, ChatFailure, ChatModelSettings, Request
from plainmind.guests.net.failures import RetryPolicy
from plainmind.guests.net.transport import Patience

QUICK = RetryPolicy(first_pause_s=0.001, longest_pause_s=0.001)
HELLO = Request("Be brief.", ({"role": "user", "content": "Which wood?"},), (SEARCH, APPEND))


@pytest.mark.parametrize(
    "trouble",
    [
        Say(status=503, body={"error": {"message": "overloaded"}}),
        Say(status=429, body={"error": {"message": "slow down"}}, headers={"Retry-After": "0"}),
        Say(
            status=529, body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        ),
    ],
)
def test_a_passing_trouble_is_asked_again(dialect, serve, trouble):
    model, server = serve(dialect, in_order(trouble, trouble, Say("Larch.")))

    assert model.reply(HELLO).text == "Larch."
    assert len(server.asked) == 3


def test_an_overload_in_the_stream_before_the_first_word_is_asked_again(serve):
    busy = Say(error_in_stream={"type": "overloaded_error", "message": "Overloaded"})
    model, server = serve("anthropic", in_order(busy, Say("Larch.")))

    assert model.reply(HELLO).text == "Larch."
    assert len(server.asked) == 2


def test_an_answer_that_breaks_off_is_not_begun_again_but_kept(dialect, serve):
    model, server = serve(dialect, in_order(Say("Larch lasts. " * 20, breaks_off=True), Say("Oak.")))
    heard: list[str] = []

    with pytest.raises(ChatFailure) as failure:
        model.reply(HELLO, on_text=heard.append)

    assert len(server.asked) == 1
    assert failure.value.partial is not None
    assert failure.value.partial.text == "".join(heard)
    assert "Larch" in failure.value.partial.text
    assert failure.value.hint


def test_an_answer_that_breaks_off_before_its_first_word_is_begun_again(serve):
    model, server = serve("openai", in_order(Say("", breaks_off=True), Say("Oak.")))

    assert model.reply(HELLO).text == "Oak."
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("said", "words", "hint"),
    [
        (
            Say(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
            "key",
            "chat.apiKey",
        ),
        (Say(status=404, body={"error": {"message": "model not found"}}), "no such model", "chat.model"),
        (Say(status=400, body={"error": {"message": "bad tools"}}), "refused the request", "chat.model"),
        (Say(status=402, body={"error": {"message": "pay"}}), "no quota", "credit"),
        (Say(status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirect", "chat.baseUrl"),
        (Say(body=b"<html>hello</html>"), "no answer of a chat model", "chat.baseUrl"),
        (Say(body=b"{not json"), "not JSON", "chat.baseUrl"),
        (Say(body={"error": {"message": "no", "code": 400}}), "refused", "chat.model"),
    ],
)
def test_a_failure_is_a_sentence_with_a_hint_and_without_the_key(dialect, serve, said, words, hint):
    model, server = serve(dialect, in_order(said))

    with pytest.raises(ChatFailure) as failure:
        model.reply(HELLO)

    assert words in str(failure.value)
    assert hint in (failure.value.hint or "")
    assert KEY not in str(failure.value)
    assert "remote." not in f"{failure.value} {failure.value.hint}"
    assert len(server.asked) == 1
    assert failure.value.partial is None


def test_a_conversation_that_is_too_long_is_told_apart(dialect, serve):
    said = Say(status=400, body={"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
    model, _ = serve(dialect, in_order(said))

    with pytest.raises(ChatFailure) as failure:
        model.reply(HELLO)

    assert failure.value.is_too_long


def test_an_error_does_not_repeat_what_was_said(dialect, serve):
    secret = "the mooring is behind the third buoy"
    said = Say(status=400, body={"error": {"message": f"cannot take: {secret}"}})
    model, _ = serve(dialect, in_order(said))

    with pytest.raises(ChatFailure) as failure:
        model.reply(Request("", ({"role": "user", "content": f"note that {secret}"},)))

    assert "third buoy" not in str(failure.value)


def test_a_server_that_is_not_there_is_said(dialect):
    settings = ChatModelSettings("m", base_url="http://127.0.0.1:9", api_key=KEY, allow_private=True)
    model = EndpointModel(dialect_of(dialect), settings, policy=QUICK)

    with pytest.raises(ChatFailure, match="cannot be reached") as failure:
        model.reply(HELLO)

    assert "chat.baseUrl" in (failure.value.hint or "")


def test_a_server_that_falls_silent_is_given_up(dialect, serve):
    model, _ = serve(dialect, in_order(Say("Larch " * 10, pause_s=60)), silence_s=0.3)

    with pytest.raises(ChatFailure, match="in time"):
        model.reply(HELLO)


def test_an_event_without_end_is_given_up(serve, monkeypatch):
    monkeypatch.setattr("plainmind.guests.chat.dialects.LARGEST_EVENT", 1000)
    model, _ = serve("openai", in_order(Say(body=b"data: " + b"x" * 5000)))

    with pytest.raises(ChatFailure, match="no end"):
        model.reply(HELLO)


def test_a_stream_without_end_is_given_up(serve, monkeypatch):
    monkeypatch.setattr("plainmind.guests.net.transport.LARGEST_STREAM", 5000)
    model, _ = serve("openai", in_order(Say("Larch " * 5000)))

    with pytest.raises(ChatFailure, match="more than"):
        model.reply(HELLO)


def test_a_server_that_speaks_slowly_is_given_as_long_again_after_each_word(dialect, serve, monkeypatch):
    deadlines = []
    renew = Patience.renew

    def noted(self):
        renew(self)
        deadlines.append(self._deadline)

    monkeypatch.setattr(Patience, "renew", noted)
    model, _ = serve(dialect, in_order(Say("Larch " * 20, pace_s=0.02)), silence_s=60)

    assert model.reply(HELLO).text == "Larch " * 20
    assert max(deadlines) - min(deadlines) >= 10 * 0.02


def test_who_has_heard_enough_gets_what_was_said_so_far(dialect, serve):
    model, _ = serve(
        dialect, in_order(Say("Larch lasts. " * 30, [Call("memory_append", {"text": "x"})], pause_s=60))
    )
    enough = threading.Event()
    began = time.monotonic()

    reply = model.reply(HELLO, on_text=lambda _: enough.set(), stopped=enough.is_set)

    assert reply.stop == ABORTED
    assert reply.text.startswith("Larch")
    assert reply.calls == ()
    assert time.monotonic() - began < 30


def test_a_listener_that_fails_is_no_failure_of_the_model(dialect, serve):
    def closed(_: str) -> None:
        raise BrokenPipeError("stdout is closed")

    model, server = serve(dialect, in_order(Say("Larch.")))

    with pytest.raises(BrokenPipeError):
        model.reply(HELLO, on_text=closed)
    assert len(server.asked) == 1
    assert model.reply(HELLO).text == "Larch."


def test_a_server_that_does_not_know_how_to_report_usage_is_asked_without(serve):
    refused = Say(status=400, body={"error": {"message": "Unknown parameter: stream_options"}})
    model, server = serve(
        "openai", lambda asked: refused if "stream_options" in asked.body else Say("Larch.", usage=None)
    )

    assert model.reply(HELLO).text == "Larch."
    assert model.reply(HELLO).text == "Larch."
    assert ["stream_options" in asked.body for asked in server.asked] == [True, False, False]


DONE = ("[DONE]", '{"type": "message_stop"}')


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        '{"choices": "x", "usage": {"prompt_tokens": "many"}}',
        '{"choices": [7]}',
        '{"choices": [{"delta": {"content": 7, "tool_calls": [null, {"index": "x", "function": 3}]}}]}',
        '{"type": "content_block_delta", "index": 9, "delta": {"partial_json": 1}}',
        '{"type": "message_start", "message": 3}',
        '{"type": "content_block_start", "index": "x", "content_block": {"type": "tool_use"}}',
    ],
)
def test_nonsense_in_a_stream_is_a_failure_or_an_empty_answer_never_a_crash(dialect, serve, data):
    stream = f"data: {data}\n\ndata: {DONE[dialect == 'anthropic']}\n\n".encode()
    model, _ = serve(dialect, in_order(Say(body=stream, headers={"Content-Type": "text/event-stream"})))

    try:
        reply = model.reply(HELLO)
    except ChatFailure:
        return
    assert reply.text == ""


def test_an_address_that_cannot_be_one_names_the_right_setting():
    with pytest.raises(ConfigError) as error:
        create_chat_model("openai", ChatModelSettings("m", base_url="http://user:pw@host/v1"))

    assert error.value.key == "chat.baseUrl"
    assert "`chat." in str(error.value)


def test_an_unknown_provider_is_refused():
    with pytest.raises(ConfigError, match="unknown chat provider"):
        create_chat_model("gopher", ChatModelSettings("m"))
