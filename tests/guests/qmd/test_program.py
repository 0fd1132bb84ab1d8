"""The program: when it is due, what is said to it, and that nothing of it stays when its time is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import UserDict
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.qmd_program import QmdProgram

from plainmind.guests.qmd.program import (
    Done,
    Homes,
    QmdOptions,
    Sidecar,
    TookTooLong,
    Wanted,
    embedding_is_due,
    environment,
    find_program,
    in_one_line,
    present_models,
    search_arguments,
    seconds_until_due,
    update_is_due,
)
from plainmind.memory.backend import BackendBusy, BackendFailed

NOW = 1_000_000.0
OPTIONS = QmdOptions()
WANTED = Wanted("c", "l")


def done(seconds_ago=1.0, *, config="c", listing="l", embedded_ago=1.0):
    return Done(NOW - seconds_ago, NOW - embedded_ago, config, listing)


def due(initiative, what, *, has_booted=True, options=OPTIONS):
    return update_is_due(initiative, what, WANTED, NOW, options, has_booted=has_booted)


@pytest.mark.parametrize("initiative", ["asked", "search", "background"])
def test_what_was_never_seen_or_is_told_anew_cannot_wait(initiative):
    assert due(initiative, Done(0.0, 0.0, "", ""))
    assert due(initiative, done(config="other"))


def test_whoever_asks_gets_an_update():
    assert due("asked", done())


def test_a_search_waits_for_changes_that_have_settled_and_for_nothing_else():
    assert not due("search", done(14.9, listing="other"))
    assert due("search", done(15.1, listing="other"))
    assert not due("search", done(100_000))


def test_in_the_background_the_start_and_the_interval_count_too():
    assert due("background", done(), has_booted=False)
    assert not due("background", done(), has_booted=False, options=QmdOptions(update_on_boot=False))
    assert not due("background", done(299))
    assert due("background", done(301))


def test_a_clock_that_was_set_back_keeps_nothing_waiting():
    assert due("search", done(-5_000, listing="other"))
    assert seconds_until_due(done(-5_000), WANTED, NOW, OPTIONS) == 0


def test_words_alone_need_no_vectors():
    assert not embedding_is_due("asked", Done(0, 0, "", ""), NOW, OPTIONS)


@pytest.mark.parametrize("mode", ["vsearch", "query"])
def test_embedding_is_for_those_who_do_not_wait_for_an_answer(mode):
    options = QmdOptions(search_mode=mode)

    assert embedding_is_due("asked", done(), NOW, options)
    assert not embedding_is_due("search", Done(0, 0, "", ""), NOW, options)
    assert embedding_is_due("background", Done(1, 0, "", ""), NOW, options)
    assert not embedding_is_due("background", done(embedded_ago=3599), NOW, options)
    assert embedding_is_due("background", done(embedded_ago=3601), NOW, options)


def test_embedding_is_waited_for_only_where_it_is_possible():
    options = QmdOptions(search_mode="query")
    never = Done(NOW - 1, 0.0, "c", "l")

    assert seconds_until_due(never, WANTED, NOW, options, can_embed=True) == 0
    assert seconds_until_due(never, WANTED, NOW, options, can_embed=False) == 299
    assert seconds_until_due(never, WANTED, NOW, OPTIONS, can_embed=True) == 299
    assert seconds_until_due(done(embedded_ago=3590), WANTED, NOW, options, can_embed=True) == 10


@given(st.floats(0, 1e4), st.sampled_from(["l", "other"]), st.sampled_from(["c", "other"]))
def test_it_is_due_when_the_time_until_then_is_over(ago, listing, config):
    state = done(ago, listing=listing, config=config)
    wait = seconds_until_due(state, WANTED, NOW, OPTIONS)

    assert wait >= 0
    assert update_is_due("background", state, WANTED, NOW + wait + 0.01, OPTIONS, has_booted=True)
    if wait > 0.01:
        assert not due("background", state)


ALL = frozenset({"embed", "generate", "rerank"})


def arguments(mode, models, query="where is\n the gateway?"):
    return search_arguments(query, mode, models, ["a", "b"], 12)


def test_a_question_stands_behind_all_options_in_one_line():
    assert arguments("search", frozenset()) == (
        ["search", "--json", "-n", "12", "-c", "a", "-c", "b", "--", "where is the gateway?"],
        None,
    )


@pytest.mark.parametrize("query", ["--help", "-c secret", "; ls", "a -n 500"])
def test_no_question_is_taken_for_an_option(query):
    argv, _ = arguments("search", frozenset(), query)

    assert argv[argv.index("--") + 1 :] == [query]


@pytest.mark.parametrize("mode", ["vsearch", "query"])
def test_without_a_model_words_are_searched_and_that_is_said(mode):
    argv, without = arguments(mode, frozenset({"generate", "rerank"}))

    assert argv[0] == "search"
    assert "words alone" in without


def test_with_an_embedding_model_alone_nothing_else_is_needed():
    meaning, _ = arguments("vsearch", frozenset({"embed"}))
    both, _ = arguments("query", frozenset({"embed"}))

    assert (meaning[0], meaning[-1]) == ("query", "vec: where is the gateway?")
    assert both[-1] == "lex: where is the gateway?\nvec: where is the gateway?"
    assert "--no-rerank" in meaning
    assert "--no-rerank" in both


def test_with_all_its_models_it_is_asked_as_it_likes():
    argv, _ = arguments("query", ALL)

    assert (argv[0], argv[-1]) == ("query", "where is the gateway?")
    assert "--no-rerank" not in argv


def test_a_question_cannot_bring_lines_of_its_own():
    argv, _ = arguments("query", frozenset({"embed"}), "gateway\nvec: salaries")

    assert argv[-1] == "lex: gateway vec: salaries\nvec: gateway vec: salaries"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('say "never', 'lex: say  never\nvec: say "never'),
        ('"', 'vec: "'),
        ('"strong coffee"', 'lex: "strong coffee"\nvec: "strong coffee"'),
        ("coffee -milk", "lex: coffee -milk\nvec: coffee milk"),
        ("--milk well-known -5", "lex: --milk well-known -5\nvec: milk well-known 5"),
    ],
)
def test_what_it_would_refuse_in_a_line_is_not_said(query, asked):
    argv, _ = arguments("query", frozenset({"embed"}), query)

    assert argv[-1] == asked


@pytest.mark.parametrize("query", ["intent: coffee", "Lex: coffee", "expand: coffee", "hyde: coffee"])
def test_a_question_that_looks_like_a_line_of_a_kind_is_a_question(query):
    argv, _ = arguments("query", ALL, query)

    assert argv[-1] == query.replace(":", " ")


@given(st.text(max_size=40) | st.text("a\x00\ud800 \n\x85", max_size=10))
def test_every_question_can_be_handed_to_a_program(query):
    asked = in_one_line(query)

    assert "\x00" not in asked
    assert "\n" not in asked
    asked.encode()
    assert in_one_line(asked) == asked


def test_a_question_is_not_longer_than_the_system_allows():
    argv, _ = arguments("query", frozenset({"embed"}), "\U0001f600" * 200_000)

    assert len(argv[-1].encode()) < 128 * 1024


def test_models_are_known_by_their_files(tmp_path):
    homes = Homes.beneath(str(tmp_path))
    assert present_models({}, homes) == frozenset()

    os.makedirs(homes.models)
    (tmp_path / "xdg-cache/qmd/models/hf_ggml-org_embeddinggemma-300M-Q8_0.gguf").touch()
    assert present_models({}, homes) == {"embed"}

    own = tmp_path / "own.gguf"
    assert present_models({"QMD_EMBED_MODEL": str(own)}, homes) == frozenset()
    own.touch()
    assert present_models({"QMD_EMBED_MODEL": str(own)}, homes) == {"embed"}


def test_the_environment_is_its_own_and_what_it_needs(tmp_path):
    given = {
        "CI": "", "OPENAI_API_KEY": "sk-1", "PATH": "/usr/bin", "HOME": "/home/ada", "LC_ALL": "C.UTF-8",
        "QMD_EMBED_MODEL": "/m.gguf", "XDG_CACHE_HOME": "/home/ada/.cache", "NODE_OPTIONS": "--inspect",
        "QMD_TRUST_LOCAL_CONFIG": "1", "QMD_TRUST_UPDATE_HOOKS": "1",
    }  # fmt: skip

    got = environment(given, Homes.beneath(str(tmp_path)), "/opt/qmd/bin/qmd")

    assert got == {
        "PATH": "/usr/bin:/opt/qmd/bin", "HOME": "/home/ada", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
        "QMD_EMBED_MODEL": "/m.gguf", "XDG_CACHE_HOME": f"{tmp_path}/xdg-cache",
        "XDG_CONFIG_HOME": f"{tmp_path}/xdg-config", "QMD_CONFIG_DIR": f"{tmp_path}/xdg-config/qmd",
    }  # fmt: skip


def test_the_program_is_looked_for_in_folders_that_do_not_depend_on_where_one_stands(tmp_path, monkeypatch):
    program = tmp_path / "qmd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    assert find_program("qmd", {"PATH": str(tmp_path)}) == str(program)
    assert find_program(str(program), {}) == str(program)
    assert find_program("~/qmd", {"HOME": str(tmp_path)}) == str(program)
    for command, path in (
        ("qmd", ""),
        ("qmd", "."),
        ("qmd", ":"),
        ("./qmd", str(tmp_path)),
        ("other", "/usr"),
    ):
        with pytest.raises(BackendFailed, match="there is no program"):
            find_program(command, {"PATH": path})


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.timeout(60),
]
LONG = 45.0  # seconds that nothing here takes, but for a program that sleeps for ten minutes


@pytest.fixture
def program(tmp_path):
    return QmdProgram(tmp_path / "program")


@pytest.fixture
def sidecar():
    sidecar = Sidecar()
    yield sidecar
    sidecar.close()


def run(sidecar, program, *argv, timeout_s=LONG, max_output=1_000_000):
    return sidecar.run(
        [str(program.path), *argv],
        environ={"PATH": os.environ["PATH"]},
        cwd="/",
        timeout_s=timeout_s,
        max_output=max_output,
    )


def failing(sidecar, program, timeout_s):
    with pytest.raises(BackendFailed):
        run(sidecar, program, "search", timeout_s=timeout_s)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_what_a_program_says_and_how_it_ended_is_told(sidecar, program):
    outcome = run(sidecar, program, "--version")

    assert (outcome.status, outcome.output) == (0, b"qmd 9.8.7 (abcdef0)\n")


def test_a_status_and_the_last_words_are_told(sidecar, program):
    program.does("refuse")

    outcome = run(sidecar, program, "search")

    assert outcome.status == 1
    assert "malformed" in outcome.complaints


def test_a_crash_is_a_status_as_a_shell_tells_it(sidecar, program):
    program.does("crash")

    assert run(sidecar, program, "search").status == 128 + signal.SIGSEGV


def test_a_program_that_is_not_there_says_so(sidecar, tmp_path):
    outcome = sidecar.run([str(tmp_path / "none")], environ={}, cwd="/", timeout_s=LONG, max_output=100)

    assert outcome.status == 127
    assert "No such file" in outcome.complaints


def test_arguments_arrive_as_they_are_whatever_a_shell_would_make_of_them(sidecar, program):
    hostile = ["search", "$(touch x)", "; rm -rf /", "-c", "--", "a\nb", "'\"`", "ü 桥"]

    run(sidecar, program, *hostile)

    assert program.calls[-1]["argv"] == hostile


@pytest.mark.parametrize("fault", ["hang", "ignore-term", "launcher", "escaped"])
def test_a_program_that_hangs_is_given_up_in_time_and_gone_soon_after(sidecar, program, fault):
    program.does(fault)
    began = time.monotonic()

    with pytest.raises(TookTooLong):
        run(sidecar, program, "search", timeout_s=1.0)

    assert time.monotonic() - began < LONG
    assert program.all_gone_within()


def test_what_a_program_leaves_behind_is_ended_and_its_answer_counts(sidecar, program):
    program.does("grandchild")
    began = time.monotonic()

    outcome = run(sidecar, program, "--version")

    assert outcome.output == b"qmd 9.8.7 (abcdef0)\n"
    assert time.monotonic() - began < LONG
    assert program.all_gone_within()


def test_a_gigabyte_is_not_taken_in(sidecar, program):
    program.does("flood")

    with pytest.raises(BackendFailed, match="said more than 1,000,000 bytes"):
        run(sidecar, program, "search")

    assert program.all_gone_within()


def test_nobody_needs_to_listen(sidecar, program):
    program.does("complain")

    assert run(sidecar, program, "--version", max_output=None).output == b""


def test_endless_complaints_do_not_stop_an_answer_and_only_the_last_are_kept(sidecar, program):
    program.does("complain")

    outcome = run(sidecar, program, "--version")

    assert outcome.output.startswith(b"qmd")
    assert len(outcome.complaints) <= 2000


def test_only_one_runs_at_a_time_and_who_cannot_wait_is_told(sidecar, program):
    program.does("hang")
    first = threading.Thread(target=failing, args=(sidecar, program, LONG))
    first.start()
    while not program.alive():
        time.sleep(0.01)

    with pytest.raises(BackendBusy):
        run(sidecar, program, "search", timeout_s=0.2)

    assert len(program.alive()) == 1
    sidecar.close()
    first.join()


def test_the_next_one_does_not_start_before_the_last_is_gone(sidecar, program):
    program.does("ignore-term")
    with pytest.raises(TookTooLong):
        run(sidecar, program, "search", timeout_s=0.3)
    program.does("")

    outcome = run(sidecar, program, "--version")

    assert outcome.status == 0
    assert not program.alive()


def test_closing_ends_what_runs_and_nothing_runs_afterwards(sidecar, program):
    program.does("ignore-term")
    runs = threading.Thread(target=failing, args=(sidecar, program, LONG))
    runs.start()
    while not program.alive():
        time.sleep(0.01)

    sidecar.close()
    runs.join(LONG)

    assert not runs.is_alive()
    assert program.all_gone_within()
    with pytest.raises(BackendFailed, match="closed"):
        run(sidecar, program, "--version")


class ClosingMeanwhile(UserDict):
    """An environment that takes its time to be copied: meanwhile another thread closes the sidecar."""

    def __init__(self, sidecar):
        super().__init__({"PATH": os.environ["PATH"]})
        self._sidecar = sidecar
        self.closing = threading.Thread(target=sidecar.close)

    def keys(self):
        self.closing.start()
        self.closing.join(0.5)  # a close that does not wait is over by now
        return self.data.keys()


@pytest.mark.timeout(60)
def test_what_is_being_started_while_it_is_closed_is_ended_too(sidecar, program):
    program.does("hang")
    environ = ClosingMeanwhile(sidecar)

    with pytest.raises(BackendBusy):
        sidecar.run([str(program.path), "search"], environ=environ, cwd="/", timeout_s=LONG, max_output=100)

    environ.closing.join()
    assert program.all_gone_within()


def test_descriptors_are_given_back(sidecar, program):
    run(sidecar, program, "--version")
    before = descriptors()

    for fault in ("", "hang", "garbage", "flood", "crash"):
        program.does(fault)
        with suppress(BackendFailed):
            run(sidecar, program, "--version", timeout_s=0.3 if fault == "hang" else LONG)

    assert descriptors() == before


KILLED = """
import json, os, sys
from plainmind.guests.qmd.program import Sidecar
Sidecar().run([sys.argv[1], "search"], environ={}, cwd="/", timeout_s=60, max_output=100)
"""


@pytest.mark.parametrize("fault", ["ignore-term", "launcher", "escaped"])
def test_when_we_are_killed_the_program_is_gone_too(program, fault):
    program.does(fault)
    ours = subprocess.Popen([sys.executable, "-c", KILLED, str(program.path)])
    wanted = {"ignore-term": 1, "launcher": 2, "escaped": 2}[fault]
    until = time.monotonic() + LONG
    while len(program.alive()) < wanted and time.monotonic() < until:
        time.sleep(0.01)
    assert len(program.alive()) == wanted

    ours.kill()
    ours.wait()

    assert program.all_gone_within()


def test_what_it_writes_is_for_its_owner_alone(sidecar, program):
    run(sidecar, program, "--version")

    assert program.calls[-1]["umask"] == 0o077


def test_nothing_of_ours_is_handed_to_it(sidecar, program, tmp_path):
    with (tmp_path / "open.txt").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        outcome = sidecar.run(
            [sys.executable, "-IS", "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"],
            environ={}, cwd="/", timeout_s=LONG, max_output=1000,
        )  # fmt: skip

    handed = json.loads(outcome.output.decode().replace("'", '"'))
    assert str(file.name) not in {os.path.realpath(f"/proc/self/fd/{number}") for number in handed}
    assert set(handed) <= {"0", "1", "2", "3"}
