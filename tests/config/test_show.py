"""Showing settings, and changing one in a file that a person wrote."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.settings import load_settings

from plainmind.base.errors import ConfigError
from plainmind.config.edit import get_value, rows, schema_reference, set_user_value
from plainmind.config.load import Origin
from plainmind.guests.qmd.config import QmdConfig
from plainmind.guests.remote.config import RemoteConfig


def load(home, **flags):
    return load_settings(home=str(home), workspace=None, flags=flags, environ={})


@pytest.fixture
def home(tmp_path):
    return tmp_path


def change(home, key, value):
    """Set a value the way the command does, with a writer that checks what it replaces."""

    def write(path, data, base_hash):
        file = home / path
        old = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
        assert base_hash == old
        file.write_bytes(data)

    return set_user_value(str(home), key, value, write=write)


def changed(home, text, key, value, name="plainmind.json5"):
    (home / name).write_bytes(text.encode())
    change(home, key, value)
    return (home / name).read_bytes().decode()


def test_every_setting_is_listed_once_with_value_origin_and_meaning(home):
    listed = rows(load(home, **{"query.maxResults": 9}))

    assert len({row.key for row in listed}) == len(listed) == len(schema_reference())
    row = next(row for row in listed if row.key == "query.maxResults")
    assert (row.value, row.origin) == (9, Origin("flag"))
    assert row.doc == "Most results of a search."


def test_secrets_are_shown_as_set_or_unset(home):
    loaded = load(home, remote={"apiKey": "sk-hush", "headers": {"X": "hush"}})

    shown = {row.key: row.value for row in rows(loaded)}

    assert shown["remote.apiKey"] == "set"
    assert shown["remote.headers"] == "set"
    assert shown["models.providers"] == "unset"
    assert "hush" not in json.dumps(shown)


def test_a_reference_is_shown_because_it_is_no_secret(home):
    assert get_value(load(home, **{"remote.apiKey": "env:MY_KEY"}), "remote.apiKey") == "set (env:MY_KEY)"


def test_credentials_in_an_address_are_not_shown(home):
    loaded = load(home, **{"remote.baseUrl": "https://ann:hush@a.example/v1?key=hush"})

    assert get_value(loaded, "remote.baseUrl") == "https://…a.example/v1…"


def test_a_section_is_shown_as_an_object(home):
    assert get_value(load(home), "query.mmr") == {"enabled": False, "lambda": 0.7}
    assert get_value(load(home), "memorySearch.query.maxResults") == 6


@pytest.mark.parametrize("name", ["query.maxResult", "", "nonsense"])
def test_asking_for_an_unknown_setting_is_an_error(home, name):
    with pytest.raises(ConfigError, match="unknown setting"):
        get_value(load(home), name)


def test_the_reference_says_everything_about_a_setting():
    reference = {entry.key: entry for entry in schema_reference()}

    entry = reference["query.maxResults"]
    assert entry.expected == "a whole number from 1 to 200"
    assert (entry.default, entry.environment) == (6, "PLAINMIND_QUERY_MAXRESULTS")
    assert entry.project == ""
    assert reference["remote.apiKey"].secret
    json.dumps([entry.default for entry in reference.values()])


def test_an_empty_secret_is_called_empty(home):
    with pytest.raises(ConfigError, match=r"`chat\.apiKey` must be text, not an empty text"):
        change(home, "chat.apiKey", "")


def test_setting_a_value_makes_the_file_when_there_is_none(home):
    done = change(home, "query.maxResults", "8")

    assert done.path == str(home / "plainmind.json5")
    assert (done.key, done.value) == ("query.maxResults", 8)
    assert load(home).settings.query.max_results == 8
    assert "// " in (home / "plainmind.json5").read_text()


def test_replacing_a_value_changes_nothing_else(home):
    text = "{\n  // how many\n  query: { maxResults: 3, /* low */ minScore: .2 }, // end\n}\n"

    assert changed(home, text, "query.maxResults", 8) == text.replace("3", "8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "{ query: { maxResults: 8 } }"),
        ("{ /* none yet */ }", "{ /* none yet */ query: { maxResults: 8 } }"),
        ("{\n  // none yet\n}\n", "{\n  // none yet\n  query: { maxResults: 8 }\n}\n"),
        ("{ citations: 'on' }", "{ citations: 'on', query: { maxResults: 8 } }"),
        ("{\n  citations: 'on' // why\n}\n", "{\n  citations: 'on', // why\n  query: { maxResults: 8 }\n}\n"),
        ("{\n  citations: 'on', // why\n}", "{\n  citations: 'on', // why\n  query: { maxResults: 8 },\n}"),
        (
            "{\n\tcitations: 'on', /* a\nb */ }",
            "{\n\tcitations: 'on',\n\tquery: { maxResults: 8 }, /* a\nb */ }",
        ),
        ("{\r\n  citations: 'on'\r\n}\r\n", "{\r\n  citations: 'on',\r\n  query: { maxResults: 8 }\r\n}\r\n"),
        (
            "{\n  query: {\n    minScore: 0,\n  },\n}",
            "{\n  query: {\n    minScore: 0,\n    maxResults: 8,\n  },\n}",
        ),
        ('{"query": {"minScore": 0}}', '{"query": {"minScore": 0, "maxResults": 8}}'),
        ("{memorySearch: {query: {minScore: 0}}}", "{memorySearch: {query: {minScore: 0, maxResults: 8}}}"),
        ("{memorySearch: {query: {maxResults: 1}}}", "{memorySearch: {query: {maxResults: 8}}}"),
        ("{'query.maxResults': 1}", "{'query.maxResults': 8}"),
        ("{query: {'max\\u0052esults': 1}}", "{query: {'max\\u0052esults': 8}}"),
        ("\ufeff{\n  citations: 'on'\n}", "\ufeff{\n  citations: 'on',\n  query: { maxResults: 8 }\n}"),
        (
            "{\n  extraPaths: ['}', \"{ // \"],\n}",
            "{\n  extraPaths: ['}', \"{ // \"],\n  query: { maxResults: 8 },\n}",
        ),
    ],
)
def test_adding_a_value_keeps_comments_order_and_style(home, text, expected):
    assert changed(home, text, "query.maxResults", 8) == expected
    assert load(home).settings.query.max_results == 8


def test_a_plain_json_file_stays_plain_json(home):
    text = changed(home, '{\n  "citations": "on"\n}\n', "store.vector.enabled", "off", "plainmind.json")

    assert json.loads(text) == {"citations": "on", "store": {"vector": {"enabled": False}}}


def test_an_empty_json_file_becomes_plain_json(home):
    text = changed(home, "", "citations", "off", "plainmind.json")

    assert json.loads(text) == {"citations": "off"}


def test_lists_and_objects_can_be_set(home):
    changed(home, "{sources: ['memory'], extraPaths: []}", "sources", "memory,sessions")
    change(home, "extraPaths", ["a", {"path": "b", "name": "n"}])

    settings = load(home).settings
    assert settings.sources == ("memory", "sessions")
    assert [extra.path for extra in settings.extra_paths] == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1500ms", 1.5), ("90s", 90), ("5m", 300), ("2h", 7200), ("0s", 0), ("3d", 259_200)],
)
def test_durations_are_kept_in_seconds_and_shown_as_written(home, written, seconds):
    change(home, "qmd.update.interval", written)

    loaded = load(home)
    assert loaded.settings.section(QmdConfig).update_interval_s == seconds
    assert get_value(loaded, "qmd.update.interval") in {written, "0ms"}


def test_a_value_that_was_wrong_can_be_set_right(home):
    assert (
        changed(home, "{query: {maxResults: 'six'}}", "query.maxResults", "6") == "{query: {maxResults: 6}}"
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("query.maxResult", "8", "unknown setting"),
        ("query.maxResults", "many", "must be a whole number"),
        ("query", "8", "unknown setting"),
    ],
)
def test_a_wrong_name_or_value_writes_nothing(home, key, value, message):
    with pytest.raises(ConfigError, match=message):
        change(home, key, value)
    assert not (home / "plainmind.json5").exists()


@pytest.mark.parametrize("text", ["{query: 5}", "{q\\u0075ery: {'max\\x52esults': 3}}", "{query: {mmr: 3}}"])
def test_a_file_that_cannot_be_changed_safely_is_left_alone(home, text):
    (home / "plainmind.json5").write_text(text)

    with pytest.raises(ConfigError) as caught:
        change(home, "query.mmr.enabled", True)

    assert (home / "plainmind.json5").read_text() == text
    assert caught.value.hint == 'add this line yourself: "query": { "mmr": { "enabled": true } }'


def test_the_line_to_add_by_hand_does_not_show_a_secret(home):
    (home / "plainmind.json5").write_text("{remote: 5}")

    with pytest.raises(ConfigError) as caught:
        change(home, "remote.apiKey", "sk-hush")

    assert "hush" not in f"{caught.value} {caught.value.hint}"


def test_a_change_that_leaves_another_error_in_the_file_writes_nothing(home):
    (home / "plainmind.json5").write_text("{nonsense: 5}")

    with pytest.raises(ConfigError, match="nonsense"):
        change(home, "citations", "on")
    assert (home / "plainmind.json5").read_text() == "{nonsense: 5}"


def test_a_secret_is_written_but_not_shown(home):
    done = change(home, "remote.apiKey", "sk-hush")

    assert done.value == "set"
    assert load(home).settings.section(RemoteConfig).api_key == "sk-hush"


GAPS = st.sampled_from(["", " ", "\n", "\n  ", " // remark, with: {signs}\n", "/* a\n} */", "\r\n\t"])


@st.composite
def written_by_hand(draw):
    """A valid configuration with gaps, comments, quotes and commas wherever they may stand."""

    def gap():
        return draw(GAPS)

    def key(name):
        return draw(st.sampled_from([name, f"'{name}'", f'"{name}"']))

    def an_object(members):
        body = f"{gap()},{gap()}".join(f"{key(name)}{gap()}:{gap()}{value}" for name, value in members)
        comma = "," if members and draw(st.booleans()) else ""
        return f"{{{gap()}{body}{gap()}{comma}{gap()}}}"

    inner = [("minScore", ".5"), ("mmr", an_object([("enabled", "true")])), ("maxResults", "+3")]
    query = an_object(draw(st.lists(st.sampled_from(inner), unique=True)))
    outer = [
        ("query", query),
        ("citations", "'on'"),
        ("extraPaths", "['a',/* ] */\"}\"]"),
        ("sources", "['memory']"),
    ]
    return (
        gap() + an_object(draw(st.lists(st.sampled_from(outer), unique_by=lambda member: member[0]))) + gap()
    )


CHANGES = st.sampled_from([("query.maxResults", 8), ("query.mmr.lambda", 0.5), ("citations", "off")])


@given(text=written_by_hand(), setting=CHANGES)
def test_any_file_can_be_changed_and_only_that_value_changes(tmp_path_factory, text, setting):
    home = tmp_path_factory.mktemp("home")
    (home / "plainmind.json5").write_bytes(text.encode())
    before = {row.key: row.value for row in rows(load(home))}

    change(home, *setting)

    after = {row.key: row.value for row in rows(load(home))}
    assert after == {**before, setting[0]: setting[1]}
    new = (home / "plainmind.json5").read_bytes().decode()
    assert new.count("remark") == text.count("remark")
    assert new.count("/* a\n} */") == text.count("/* a\n} */")
