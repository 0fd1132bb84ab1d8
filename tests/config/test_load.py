"""Layers of configuration: which one wins, what is accepted, and what the errors say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.settings import load_settings

from plainmind.base.errors import ConfigError
from plainmind.config.keys import all_keys
from plainmind.config.kinds import ExtraPath, ProviderAccess, ScopeRule
from plainmind.config.load import Loaded, Origin, load_here, resolve_secret, user_file
from plainmind.config.settings import Settings
from plainmind.guests.chat.config import FlushConfig
from plainmind.guests.qmd.config import QmdConfig
from plainmind.guests.remote.config import RemoteConfig


class Places:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()

    def user(self, text: str | bytes, name: str = "plainmind.json5") -> Path:
        return _write(self.home / name, text)

    def project(self, text: str | bytes, name: str = ".plainmind.json5") -> Path:
        return _write(self.workspace / name, text)

    def load(self, flags: dict[str, Any] | None = None, **environ: str) -> Loaded:
        return load_settings(
            home=str(self.home), workspace=str(self.workspace), flags=flags or {}, environ=environ
        )

    def error(self, flags: dict[str, Any] | None = None, **environ: str) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(flags, **environ)
        return caught.value


def _write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path)


def test_without_any_configuration_everything_is_default(places):
    loaded = places.load()

    assert loaded.settings == Settings()
    assert {loaded.origins[name] for name in all_keys()} == {Origin("default")}
    assert loaded.notes == ()


def test_flags_beat_environment_beats_project_beats_user_beats_defaults(places):
    user = places.user(
        "{query: {maxResults: 2, minScore: 0.1, hybrid: {candidateMultiplier: 2}}, citations: 'on'}"
    )
    project = places.project("{query: {maxResults: 3, minScore: 0.2, hybrid: {candidateMultiplier: 3}}}")

    loaded = places.load(
        {"query.maxResults": 5},
        PLAINMIND_QUERY_MAXRESULTS="4",
        PLAINMIND_QUERY_MINSCORE="0.3",
    )

    assert loaded.settings.query.max_results == 5
    assert loaded.settings.query.min_score == 0.3
    assert loaded.settings.query.hybrid.candidate_multiplier == 3
    assert loaded.settings.citations == "on"
    assert loaded.origins["query.maxResults"] == Origin("flag")
    assert loaded.origins["query.minScore"] == Origin("environment", "PLAINMIND_QUERY_MINSCORE")
    assert loaded.origins["query.hybrid.candidateMultiplier"] == Origin("project", str(project))
    assert loaded.origins["citations"] == Origin("user", str(user))
    assert loaded.origins["cache.enabled"] == Origin("default")


@pytest.mark.parametrize(
    ("user", "sources", "kind"), [("", ("a", "b"), "program"), ("{sources: ['memory']}", ("memory",), "user")]
)
def test_what_a_program_assumes_is_weaker_than_all_that_a_person_set(places, user, sources, kind):
    if user:
        places.user(user)

    loaded, _ = load_here(
        workspace_flag=None,
        cwd=str(places.workspace),
        flags={},
        environ={"PLAINMIND_HOME": str(places.home)},
        assumed={"sources": ("a", "b")},
    )

    assert loaded.settings.sources == sources
    assert loaded.origins["sources"].kind == kind


def test_a_block_pasted_from_openclaw_means_the_same_as_the_bare_keys(places):
    places.user(
        "{memorySearch: {query: {maxResults: 9, hybrid: {mmr: {enabled: true}}}, provider: 'gemini'}}"
    )
    pasted = places.load().settings

    places.user("{query: {maxResults: 9, mmr: {enabled: true}}, provider: 'gemini'}")

    assert pasted == places.load().settings
    assert pasted.query.max_results == 9


def test_a_pasted_memory_block_sets_backend_citations_and_limits(places):
    places.user(
        """{
          memory: {
            backend: "qmd",
            citations: "off",
            qmd: {
              includeDefaultMemory: false,
              update: { interval: "10m", debounceMs: 1000 },
              limits: { maxResults: 3 },
              scope: { default: "deny", rules: [{ action: "allow", match: { channel: "x" } }] },
              paths: [{ name: "docs", path: "~/notes", pattern: "**/*.md" }],
            },
          },
        }"""
    )

    settings = places.load().settings

    assert (settings.backend, settings.citations, settings.limits.max_results) == ("qmd", "off", 3)
    assert settings.section(QmdConfig).update_interval_s == 600
    assert settings.section(QmdConfig).include_default_memory is False
    assert settings.section(QmdConfig).paths == (ExtraPath("~/notes", "**/*.md", "docs"),)
    assert settings.scope.rules == (ScopeRule("allow", channel="x"),)


def test_settings_of_openclaw_without_meaning_here_are_noted(places):
    places.user(
        "{memorySearch: {store: {vector: {extensionPath: '/x.so'}}, experimental: {sessionMemory: true}}}"
    )

    loaded = places.load()

    assert loaded.settings == Settings()
    assert len(loaded.notes) == 2
    assert "memorySearch.store.vector.extensionPath" in loaded.notes[0]


def test_numbers_out_of_range_move_to_the_nearest_and_say_so(places):
    places.user("{query: {maxResults: 5000, minScore: -1}, chunking: {tokens: 1, overlap: 0}}")

    loaded = places.load(PLAINMIND_QUERY_HYBRID_CANDIDATEMULTIPLIER="99")

    assert loaded.settings.query.max_results == 200
    assert loaded.settings.query.min_score == 0
    assert loaded.settings.chunking.tokens == 8
    assert loaded.settings.query.hybrid.candidate_multiplier == 20
    assert len(loaded.notes) == 4


def test_weights_are_scaled_to_sum_to_one(places):
    loaded = places.load({"query": {"hybrid": {"vectorWeight": 6, "textWeight": 2}}})

    assert loaded.settings.query.hybrid.vector_weight == 0.75
    assert loaded.settings.query.hybrid.text_weight == 0.25


def test_a_weight_that_another_one_moved_has_the_origin_of_that_one(places):
    loaded = places.load({"query.hybrid.textWeight": 0.75})

    assert loaded.settings.query.hybrid.vector_weight == 0.25
    assert loaded.origins["query.hybrid.vectorWeight"] == Origin("flag")


def test_a_weight_alone_is_a_share_and_never_more_than_the_whole(places):
    loaded = places.load({"query.hybrid.vectorWeight": 3})

    assert loaded.settings.query.hybrid.vector_weight == 1
    assert loaded.settings.query.hybrid.text_weight == 0


def test_two_weights_of_zero_mean_the_defaults(places):
    loaded = places.load({"query": {"hybrid": {"vectorWeight": 0, "textWeight": 0}}})

    assert loaded.settings.query.hybrid.vector_weight is None
    assert loaded.origins["query.hybrid.textWeight"] == Origin("default")
    assert len(loaded.notes) == 1


def test_the_overlap_stays_below_the_size(places):
    loaded = places.load({"chunking.tokens": 50})

    assert loaded.settings.chunking.overlap == 10
    assert loaded.origins["chunking.overlap"] == Origin("flag")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("{query: {maxResults: }}", 1, 22),
        ('{\n  // remark\n  "query": {\n    minScore: 0.5 maxResults: 3\n  }\n}', 4, 19),
        ('{"query": {"maxResults": 3}', 1, 28),
        ('{"a": 1}{"b": 2}', 1, 9),
    ],
)
def test_a_syntax_error_names_file_line_and_column(places, text, line, column):
    path = places.user(text)

    error = places.error()

    assert str(error) == f"{path} is not valid JSON5 at line {line}, column {column}"
    assert error.hint is not None


def test_a_syntax_error_quotes_nothing_of_the_file(places):
    places.user('{remote: {apiKey: "sk-hush" oops}}')

    assert "hush" not in str(places.error())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"[1, 2]", "must hold an object"),
        (b"\xff\xfe{}", "is not UTF-8 text, at line 1"),
        (b"[" * 5_000, "is nested too deeply"),
        (b"{" + b'"memorySearch":{' * 40 + b"}" * 41, "nested too deeply"),
        (b"{}" + b" " * 600_000, "too large"),
        (b'{"query": {"maxResults": ' + b"9" * 5000 + b"}}", "not valid JSON5"),
    ],
)
def test_a_file_that_is_no_configuration_says_what_it_is(places, text, message):
    places.user(text)

    assert message in str(places.error())


def test_a_byte_order_mark_does_no_harm(places):
    places.user(b'\xef\xbb\xbf{"citations": "off"}')

    assert places.load().settings.citations == "off"


@pytest.mark.parametrize(
    ("name", "key", "nearest"),
    [
        ("query: {maxResult: 3}", "query.maxResult", "query.maxResults"),
        ("apiKey: 'x'", "apiKey", "remote.apiKey"),
        ("memorySearch: {querry: {minScore: 1}}", "memorySearch.querry", None),
        ("chunking: {Tokens: 3}", "chunking.Tokens", "chunking.tokens"),
        ("'query.minscore': 1", "query.minscore", "query.minScore"),
    ],
)
def test_an_unknown_key_names_its_path_and_the_nearest_valid_one(places, name, key, nearest):
    path = places.user("{" + name + "}")

    error = places.error()

    assert str(error) == f"unknown setting `{key}` (in {path})"
    assert error.key == key
    if nearest is not None:
        assert error.hint == f"did you mean `{nearest}`?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "query: {maxResults: 'x'}",
            "`query.maxResults` must be a whole number from 1 to 200, not the text 'x'",
        ),
        (
            "limits: {maxResults: 2.5}",
            "`limits.maxResults` must be a whole number from 1 to 200, not the num",
        ),
        ("query: {maxResults: true}", "`query.maxResults` must be a whole number from 1 to 200, not true"),
        ("query: {minScore: NaN}", "`query.minScore` must be a number from 0 to 1, not the number nan"),
        ("query: {minScore: null}", "`query.minScore` must be a number from 0 to 1, not null"),
        ("query: 3", "`query` must be an object of settings, not a number"),
        ("sync: {watch: 'yes'}", "`sync.watch` must be true or false, not the text 'yes'"),
        ("sources: []", "`sources` must be a list with one or more of memory, sessions, not a list"),
        (
            "agentId: '../b'",
            "`agentId` must be letters, digits, `-` and `_`, at most 64, not the text '../b'",
        ),
        ("extraPaths: [{path: 'a', glob: 'b'}]", "`extraPaths` must be a list of paths, each as text or as"),
        ("scope: {rules: [{action: 'allow', match: {chat: 'x'}}]}", "`scope.rules` must be a list of rules"),
        ("store: {path: '{hom}/x'}", "`store.path` must be a path in which nothing but {home} and {agentId}"),
        ("remote: {baseUrl: 'file:///x'}", "`remote.baseUrl` must be an http:// or https:// address"),
        ("workspace: 'a\\u0000b'", "`workspace` must be a path, not the text 'a\\x00b'"),
        ("extraPaths: 'docs'", "`extraPaths` must be a list of paths"),
        ("extraPaths: [{name: 'x'}]", "`extraPaths` must be a list of paths"),
        ("extraPaths: [{path: ''}]", "`extraPaths` must be a list of paths"),
        ("extraPaths: [{path: 'a', scope: 'public'}]", "`extraPaths` must be a list of paths"),
        ("extraPaths: [{path: 'a', scope: 'Shared'}]", "`extraPaths` must be a list of paths"),
        ("scope: {rules: {}}", "`scope.rules` must be a list of rules"),
        ("scope: {rules: ['allow']}", "`scope.rules` must be a list of rules"),
        ("scope: {rules: [{action: 'maybe'}]}", "`scope.rules` must be a list of rules"),
        ("models: {providers: []}", "`models.providers` must be an object of providers by name"),
        ("workspace: '\\ud800'", "`workspace` must be a path, not the text '\\ud800'"),
        ("qmd: {update: {interval: 5}}", "`qmd.update.interval` must be a duration"),
    ],
)
def test_a_wrong_value_says_what_is_expected_and_what_was_found(places, text, message):
    places.user("{" + text + "}")

    assert str(places.error()).startswith(message)


def test_a_misspelt_choice_gets_the_nearest_one(places):
    places.user("{provider: 'opneai'}")

    assert places.error().hint == "did you mean `openai`?"


@pytest.mark.parametrize(
    "text",
    [
        "remote: {apiKey: ['hush']}",
        "remote: {apiKey: 47110815}",
        "remote: {headers: {Authorization: 47110815}}",
        "remote: {headers: 'hush'}",
        "remote: {headers: {X: 'hush\\nhush'}}",
        "models: {providers: {openai: {apiKey: 47110815}}}",
        "models: {providers: {openai: 'hush'}}",
        "remote: 'hush'",
    ],
)
def test_an_error_never_shows_what_may_be_a_secret(places, text):
    places.user("{" + text + "}")

    error = places.error()

    assert "hush" not in f"{error} {error.hint}"
    assert "4711" not in f"{error} {error.hint}"


def test_a_secret_in_the_environment_is_not_shown_either(places):
    error = places.error(PLAINMIND_REMOTE_HEADERS="Bearer hush")

    assert "PLAINMIND_REMOTE_HEADERS" in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"query": {"maxResults": 1,\n"maxResults": 2}}', "`query.maxResults` stands twice in"),
        ("{query: {maxResults: 1,\nmaxResults: 2}}", "`query.maxResults` stands twice in"),
        ("{extraPaths: [{path: 'a', path: 'b'}]}", "`path` stands twice in"),
    ],
)
def test_a_key_that_stands_twice_in_one_object_is_an_error(places, text, message):
    path = places.user(text)

    error = str(places.error())

    assert error.startswith(message)
    assert str(path) in error
    if "\n" in text:
        assert error.endswith("on lines 1 and 2")


def test_one_setting_in_two_spellings_is_an_error(places):
    places.user("{memorySearch: {query: {maxResults: 1}}, query: {maxResults: 2}}")

    assert "as `memorySearch.query.maxResults` and as `query.maxResults`" in str(places.error())


def test_two_files_of_the_user_are_an_error(places):
    places.user("{}")
    places.user("{}", "plainmind.json")

    assert str(places.error()).startswith("there are ")


def test_a_plain_json_file_counts_too(places):
    path = places.user('{"citations": "off"}', "plainmind.json")

    assert places.load().settings.citations == "off"
    assert user_file(str(places.home)) == str(path)


def test_a_folder_in_place_of_the_file_is_an_error(places):
    (places.home / "plainmind.json5").mkdir()

    assert "it is not a regular file" in str(places.error())


def test_a_link_to_nothing_in_place_of_the_file_is_an_error(places):
    (places.home / "plainmind.json5").symlink_to("gone")

    assert "it is a link to nothing" in str(places.error())


def test_a_named_pipe_in_place_of_the_project_file_does_not_make_us_wait(places):
    os.mkfifo(places.workspace / ".plainmind.json5")

    assert "it is not a regular file" in str(places.error())


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_is_an_error(places):
    places.user("{}").chmod(0)

    assert "permission denied" in str(places.error())


def test_the_environment_may_write_names_with_or_without_underscores(places):
    loaded = places.load(PLAINMIND_QUERY_MAX_RESULTS="7", PLAINMIND_MEMORYFLUSH_ENABLED="off")

    assert loaded.settings.query.max_results == 7
    assert loaded.settings.section(FlushConfig).enabled is False


def test_the_environment_gives_lists_by_comma_or_as_json(places):
    loaded = places.load(
        PLAINMIND_SOURCES="memory, sessions",
        PLAINMIND_EXTRAPATHS='[{"path": "docs", "name": "d"}]',
        PLAINMIND_REMOTE_HEADERS='{"X-A": "b"}',
    )

    assert loaded.settings.sources == ("memory", "sessions")
    assert loaded.settings.extra_paths == (ExtraPath("docs", name="d"),)
    assert loaded.settings.section(RemoteConfig).headers == {"X-A": "b"}


def test_an_empty_variable_is_as_good_as_none(places):
    assert places.load(PLAINMIND_QUERY_MAXRESULTS="").settings == Settings()


def test_a_variable_that_misspells_a_setting_is_an_error(places):
    error = places.error(PLAINMIND_QUERY_MAXRESULT="4")

    assert "PLAINMIND_QUERY_MAXRESULT" in str(error)
    assert error.hint == "did you mean `query.maxResults`?"


def test_a_variable_of_somebody_else_is_only_noted(places):
    loaded = places.load(PLAINMIND_HOME="/x", PLAINMIND_FAULTS="full", PATH="/bin")

    assert loaded.settings == Settings()
    assert loaded.notes == ("the environment variable PLAINMIND_FAULTS sets nothing",)


def test_flags_may_be_nested_typed_or_text_and_none_is_not_given(places):
    flags = {
        "query": {"maxResults": "8"},
        "sync.watch": "no",
        "provider": None,
        "workspace": places.workspace,
        "extraPaths": (ExtraPath("a"), "b"),
    }

    settings = places.load(flags).settings

    assert settings.query.max_results == 8
    assert settings.sync.watch is False
    assert settings.provider == "auto"
    assert settings.workspace == str(places.workspace)
    assert settings.extra_paths == (ExtraPath("a"), ExtraPath("b"))


def test_a_flag_that_holds_itself_is_an_error_and_no_endless_loop(places):
    flags: dict[str, Any] = {}
    flags["memorySearch"] = flags

    assert "nested too deeply" in str(places.error(flags))


def test_keys_by_provider_are_kept_as_references(places):
    places.user(
        "{models: {providers: {openai: {apiKey: 'env:OPENAI_API_KEY', baseUrl: 'https://a.example'}}}}"
    )

    access = places.load().settings.provider_access

    assert access == {"openai": ProviderAccess("env:OPENAI_API_KEY", "https://a.example")}


def test_a_reference_is_resolved_only_when_asked_for():
    environ = {"KEY": "sk-1"}

    assert resolve_secret("env:KEY", environ) == "sk-1"
    assert resolve_secret("${KEY}", environ) == "sk-1"
    assert resolve_secret("sk-2", environ) == "sk-2"
    assert resolve_secret(None, environ) is None
    with pytest.raises(ConfigError, match="OTHER, which is not set"):
        resolve_secret("env:OTHER", environ)


def test_settings_of_openclaw_count_just_above_the_defaults(places, tmp_path):
    other = tmp_path / "openclaw.json"
    other.write_text('{"memory": {"search": {"query": {"maxResults": 11, "minScore": 0.2}, "odd": 1}}}')
    places.user("{openclawConfig: '../openclaw.json', query: {minScore: 0.9}}")

    loaded = places.load()

    assert loaded.settings.query.max_results == 11
    assert loaded.settings.query.min_score == 0.9
    assert loaded.origins["query.maxResults"] == Origin("openclaw", str(other))
    assert loaded.notes == ("`memory.search.odd` is not known here",)


def test_an_openclaw_file_that_is_not_there_is_an_error(places):
    assert "there is no" in str(places.error({"openclawConfig": "/nowhere/openclaw.json"}))


def test_loading_where_one_stands_finds_workspace_and_project_file(tmp_path):
    workspace = tmp_path / "notes"
    (workspace / "deep").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("x")
    (workspace / ".plainmind.json5").write_text("{citations: 'off'}")
    environ = {"HOME": str(tmp_path), "PLAINMIND_HOME": str(tmp_path / "state")}

    loaded, found = load_here(workspace_flag=None, cwd=str(workspace / "deep"), flags={}, environ=environ)

    assert found.path == str(workspace)
    assert found.origin == Origin("found", str(workspace / "MEMORY.md"))
    assert loaded.settings.citations == "off"


def test_a_workspace_of_the_users_file_counts_from_the_home_folder(tmp_path):
    home = tmp_path / "state"
    home.mkdir()
    (home / "plainmind.json5").write_text("{workspace: 'mine'}")
    environ = {"HOME": str(tmp_path), "PLAINMIND_HOME": str(home)}

    _, found = load_here(workspace_flag=None, cwd=str(tmp_path), flags={}, environ=environ)

    assert found.path == str(home / "mine")
    assert found.origin == Origin("user", str(home / "plainmind.json5"))


def test_a_workspace_given_as_a_setting_by_flag_counts_from_the_working_directory(tmp_path):
    environ = {"HOME": str(tmp_path), "PLAINMIND_HOME": str(tmp_path / "state")}

    _, found = load_here(workspace_flag=None, cwd=str(tmp_path), flags={"workspace": "here"}, environ=environ)

    assert found.path == str(tmp_path / "here")


@pytest.mark.parametrize("text", ["null", "2000"])
def test_a_number_that_may_be_missing_can_be_unset_by_text(text):
    loaded = load_settings(
        home="/nonexistent", workspace=None, flags={}, environ={"PLAINMIND_REMOTE_MAXTOKENSPERDAY": text}
    )

    assert loaded.settings.section(RemoteConfig).max_tokens_per_day == (None if text == "null" else 2000)
    assert loaded.notes == ()
