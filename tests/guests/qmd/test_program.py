"""What is said to the program: never a command that hangs, never an environment that breaks it."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.qmd.program import (
    Homes,
    environment,
    find_program,
    in_one_line,
    present_models,
    search_arguments,
)
from plainmind.memory.backend import BackendFailed

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
