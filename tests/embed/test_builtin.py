from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.embed import builtin
from plainmind.embed.builtin import BUNDLED, BuiltinEmbedder, create
from plainmind.embed.protocol import EmbeddingSettings

FILES = ("vectors.i8", "scales.f32", "pieces", "ends.u32")

IN_A_FRESH_PROCESS = """
import sys

def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise RuntimeError(f"the builtin embedder reached for the network: {event}")

sys.addaudithook(refuse)
from plainmind.embed.builtin import BuiltinEmbedder

embedder = BuiltinEmbedder()
assert len(embedder.embed_query("where does the gateway run?")) == 256
edited = [f"note {number}: the gateway runs in the cellar, ünd wärmt ihn" for number in range(40)]
few = [embedder.embed_documents([text])[0] for text in edited]
assert "numpy" not in sys.modules, "a query or an edit loaded numpy"
many = embedder.embed_documents(edited * 20)
assert "numpy" in sys.modules, "plain Python embedded a whole workspace"
assert many == few * 20, "the two ways differ"
print("done")
"""


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.fixture
def copied_model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BUNDLED, tmp_path / "model"))


def test_a_query_and_an_edit_need_neither_network_nor_numpy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS], capture_output=True, text=True, check=False
    )

    assert (run.stdout, run.stderr) == ("done\n", "")


def test_queries_and_documents_are_embedded_alike(embedder: BuiltinEmbedder) -> None:
    @settings(max_examples=examples(200), deadline=None)
    @given(st.text(min_size=1, max_size=400))
    def alike(text: str) -> None:
        (document,) = embedder.embed_documents([text])
        if document is None:
            with pytest.raises(EmbeddingError, match="nothing to embed"):
                embedder.embed_query(text)
        else:
            query = embedder.embed_query(text)
            assert query == document

    alike()


@pytest.mark.parametrize("text", ["printer", "the the the printer's café 東京 😀", "a b " * 3_000, "!", " "])
def test_plain_arithmetic_and_numpy_give_the_same_bytes(embedder: BuiltinEmbedder, text: str) -> None:
    plain = builtin._pool(builtin.open_model(builtin.BUNDLED), text)
    assert [plain] == embedder.embed_documents([text])


def test_texts_about_one_thing_are_nearer_than_texts_about_two(embedder: BuiltinEmbedder) -> None:
    def cosine(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(embedder.embed_query(one), embedder.embed_query(other), strict=True))

    assert cosine("the car needs a new engine", "the vehicle's motor is broken") > 0.15 + cosine(
        "the car needs a new engine", "we planted tomatoes in the garden"
    )


@pytest.mark.parametrize(
    ("one", "other", "unlike"),
    [
        ("Wer füttert die Katze?", "who feeds the cat", "the printer needs toner"),
        ("비밀번호는 어디에 있나요?", "where is the password?", "we planted tomatoes"),
        ("¿Cuándo es el cumpleaños de Ana?", "Ana's birthday is in May", "the server runs in the cellar"),
        ("我的狗叫什么名字？", "what is my dog called?", "when is the rent due?"),
        ("薬を飲む時間", "time to take the medicine", "the train to Hamburg"),
    ],
)
def test_texts_of_two_languages_meet(embedder: BuiltinEmbedder, one: str, other: str, unlike: str) -> None:
    def cosine(left: str, right: str) -> float:
        return sum(
            a * b for a, b in zip(embedder.embed_query(left), embedder.embed_query(right), strict=True)
        )

    assert cosine(one, other) > 0.1 + cosine(one, unlike)


def test_the_model_is_what_its_card_says() -> None:
    card = json.loads((Path(BUNDLED) / "model.json").read_text())
    digest = hashlib.sha256(str(card["format"]).encode())
    for name in FILES:
        digest.update((Path(BUNDLED) / name).read_bytes())

    assert digest.hexdigest() == card["digest"]
    assert card["sizes"] == {name: (Path(BUNDLED) / name).stat().st_size for name in FILES}
    assert sum(card["sizes"].values()) <= 14_000_000


def test_another_model_under_the_same_name_has_another_identity(copied_model: Path) -> None:
    card = json.loads((copied_model / "model.json").read_text())
    (copied_model / "model.json").write_text(json.dumps({**card, "digest": "another"}))

    assert BuiltinEmbedder(str(copied_model)).identity != BuiltinEmbedder().identity


def test_a_missing_model_says_how_to_get_it(tmp_path: Path) -> None:
    embedder = BuiltinEmbedder(str(tmp_path))

    with pytest.raises(EmbeddingError, match="not installed") as caught:
        embedder.embed_query("anything")

    assert "make install" in str(caught.value.hint)


@pytest.mark.parametrize("name", FILES)
def test_a_model_without_one_of_its_files_is_not_used(copied_model: Path, name: str) -> None:
    (copied_model / name).unlink()

    with pytest.raises(EmbeddingError, match=f"cannot be opened.*{name}") as caught:
        BuiltinEmbedder(str(copied_model)).embed_documents(["anything"])

    assert "reinstall" in str(caught.value.hint)


@pytest.mark.parametrize("name", [*FILES, "model.json"])
def test_a_model_with_a_cut_file_is_not_used(copied_model: Path, name: str) -> None:
    content = (copied_model / name).read_bytes()
    (copied_model / name).write_bytes(content[: len(content) // 2])

    with pytest.raises(EmbeddingError, match="builtin embedding model"):
        BuiltinEmbedder(str(copied_model)).embed_query("anything")


def test_a_model_of_another_format_is_not_used(copied_model: Path) -> None:
    card = json.loads((copied_model / "model.json").read_text())
    (copied_model / "model.json").write_text(json.dumps({**card, "format": 99}))

    with pytest.raises(EmbeddingError, match="format 99"):
        BuiltinEmbedder(str(copied_model)).embed_query("anything")


def test_a_text_of_words_that_weigh_nothing_has_no_vector(copied_model: Path) -> None:
    scales = copied_model / "scales.f32"
    scales.write_bytes(bytes(scales.stat().st_size))
    embedder = BuiltinEmbedder(str(copied_model))

    assert embedder.embed_documents(["weightless words"]) == [None]
    with pytest.raises(EmbeddingError, match="nothing to embed"):
        embedder.embed_query("weightless words")


def test_a_closed_embedder_opens_its_model_again_when_asked(embedder: BuiltinEmbedder) -> None:
    before = embedder.embed_documents(["the gateway"])
    embedder.close()

    assert embedder.embed_documents(["the gateway"]) == before


def test_asking_for_a_model_it_does_not_have_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no model `text-embedding-3-small`") as caught:
        create(EmbeddingSettings(provider="builtin", model="text-embedding-3-small"))

    assert caught.value.key == "model"
    assert "plainmind-pieces-2" in str(caught.value.hint)
