"""Whatever stands in a file, the answer is settings or one clear error."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.settings import load_settings

from plainmind.base.errors import ConfigError
from plainmind.config.edit import get_value, rows
from plainmind.config.keys import all_keys
from plainmind.config.load import Loaded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SECTIONS = {name.rpartition(".")[0] for name in all_keys()}
NAMES = st.sampled_from(sorted({*all_keys(), *SECTIONS})) | st.text()


def load(flags=(), environ=(), home="/nonexistent"):
    try:
        return load_settings(home=home, workspace=None, flags=dict(flags), environ=dict(environ))
    except ConfigError as error:
        return error


def check(answer):
    if isinstance(answer, ConfigError):
        assert f"{answer} {answer.hint}".isprintable(), "an error must be fit for any terminal"
    if isinstance(answer, Loaded):
        settings = answer.settings
        hybrid = settings.query.hybrid
        assert (hybrid.vector_weight is None) == (hybrid.text_weight is None)
        if hybrid.vector_weight is not None:
            assert abs(hybrid.vector_weight + hybrid.text_weight - 1) < 1e-9
        assert 0 <= settings.chunking.overlap < settings.chunking.tokens
        assert 1 <= settings.query.max_results <= 200
        json.dumps([row.value for row in rows(answer)], allow_nan=False)


@given(st.dictionaries(NAMES, JSON, max_size=5))
def test_any_json_value_at_any_key_gives_settings_or_a_config_error(found):
    check(load(flags=found))


@given(st.data())
def test_any_value_at_any_known_key_gives_settings_or_a_config_error(data):
    key = data.draw(st.sampled_from(sorted(all_keys())))

    check(load(flags={key: data.draw(JSON)}))


@given(st.data())
def test_any_text_in_any_variable_gives_settings_or_a_config_error(data):
    key = data.draw(st.sampled_from(sorted(all_keys())))
    text = data.draw(st.text() | JSON.map(json.dumps))

    check(load(environ={all_keys()[key].environment_name: text}))


@given(document=st.dictionaries(NAMES, JSON, max_size=5))
def test_any_document_gives_settings_or_a_config_error(tmp_path_factory, document):
    home = tmp_path_factory.mktemp("home")
    (home / "plainmind.json5").write_text(json.dumps(document))

    check(load(home=str(home)))


@given(st.binary(max_size=60))
def test_any_bytes_give_settings_or_a_config_error(tmp_path_factory, data):
    home = tmp_path_factory.mktemp("home")
    (home / "plainmind.json5").write_bytes(data)

    check(load(home=str(home)))


@given(st.data())
def test_a_value_that_is_shown_can_be_set_again(data):
    key = all_keys()[data.draw(st.sampled_from(sorted(all_keys())))]
    answer = load(flags={key.name: data.draw(JSON)})
    if isinstance(answer, Loaded) and not key.secret:
        shown = get_value(answer, key.name)
        if shown is not None and "://" not in str(shown):
            again = load(flags={key.name: shown})
            assert isinstance(again, Loaded)
            assert key.of(again.settings) == key.of(answer.settings) or "Weight" in key.name
