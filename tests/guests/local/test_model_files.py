from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.hub_server import HubServer
from tests.support.model_files import encoder_facts, need_onnxruntime, write_gguf, write_onnx_folder

from plainmind.base.errors import ConfigError, EmbeddingError, TransientEmbeddingError
from plainmind.base.model import Progress
from plainmind.guests.local.llama import LocalEmbedder, LocalSettings
from plainmind.guests.local.model_files import Hub, HubFile, is_hub_name, is_hub_uri, parse_uri
from plainmind.guests.local.onnx import OnnxEmbedder, OnnxSettings

MODEL = random.Random(1).randbytes(3_000_000)
FILE = HubFile("org/repo", "model-Q8_0.gguf")
NAME = "org/repo/model-Q8_0.gguf"


@pytest.fixture
def server() -> Iterator[HubServer]:
    with HubServer({NAME: MODEL, "org/repo/config.json": b'{"a": 1}'}, stored={NAME}) as made:
        yield made


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def hub(server: HubServer, tmp_path: Path, pauses: list[float]) -> Hub:
    return Hub(str(tmp_path / "models"), server.endpoint, token="hf_secret", sleep=pauses.append)


def parts(hub: Hub) -> list[str]:
    return [name for _, _, names in os.walk(hub.cache_dir) for name in names if name.endswith(".part")]


def test_a_model_is_downloaded_once_and_kept_for_its_owner_alone(hub: Hub, server: HubServer) -> None:
    path = hub.fetch(FILE)
    again = hub.fetch(FILE)

    assert path == again == hub.path_of(FILE)
    assert Path(hub.path_of(FILE)).read_bytes() == MODEL
    assert stat.S_IMODE(os.stat(hub.path_of(FILE)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(hub.path_of(FILE))).st_mode) == 0o700
    assert len(server.downloads()) == 1
    assert parts(hub) == []


def test_a_small_file_is_checked_by_its_git_hash(hub: Hub, server: HubServer) -> None:
    path = hub.fetch(HubFile("org/repo", "config.json"))
    assert path is not None
    assert Path(path).read_bytes() == b'{"a": 1}'

    server.files["org/repo/other.json"] = b'{"b": 2}'
    server.delivers = b'{"b": 3}'
    with pytest.raises(EmbeddingError, match="its hash is another"):
        hub.fetch(HubFile("org/repo", "other.json"))


def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(hub: Hub, server: HubServer) -> None:
    hub.fetch(FILE)

    assert {(one.server, one.authorization) for one in server.asked} == {
        ("hub", "Bearer hf_secret"),
        ("store", None),
    }
    assert "hf_secret" not in repr(hub)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    hub: Hub, server: HubServer, pauses: list[float]
) -> None:
    server.breaks_after = [1_000_000, 500_000]

    hub.fetch(FILE)

    assert Path(hub.path_of(FILE)).read_bytes() == MODEL
    assert [one.range for one in server.downloads()] == [None, "bytes=1000000-", "bytes=1500000-"]
    assert pauses == [1.0, 2.0]


def test_the_next_program_goes_on_where_the_last_one_was_stopped(hub: Hub, server: HubServer) -> None:
    server.breaks_after = [700_000, 0, 0, 0]
    with pytest.raises(TransientEmbeddingError, match="broke off at 700,000") as caught:
        hub.fetch(FILE)
    assert "goes on from there" in str(caught.value.hint)
    assert not os.path.exists(hub.path_of(FILE))
    server.asked.clear()

    hub.fetch(FILE)

    assert [one.range for one in server.downloads()] == ["bytes=700000-"]
    assert Path(hub.path_of(FILE)).read_bytes() == MODEL


def test_a_server_without_ranges_sends_everything_again(hub: Hub, server: HubServer) -> None:
    server.breaks_after = [1_000_000]
    server.ignores_ranges = True

    hub.fetch(FILE)

    assert Path(hub.path_of(FILE)).read_bytes() == MODEL


def test_part_of_another_version_is_never_continued(hub: Hub, server: HubServer) -> None:
    server.breaks_after = [700_000, 0, 0, 0]
    with pytest.raises(TransientEmbeddingError):
        hub.fetch(FILE)
    server.files[NAME] = newer = random.Random(2).randbytes(2_000_000)
    server.asked.clear()

    hub.fetch(FILE)

    assert Path(hub.path_of(FILE)).read_bytes() == newer
    assert [one.range for one in server.downloads()] == [None]
    assert parts(hub) == []


def test_bytes_that_are_not_what_was_promised_are_thrown_away(hub: Hub, server: HubServer) -> None:
    server.delivers = bytes(len(MODEL))

    with pytest.raises(EmbeddingError, match="its hash is another"):
        hub.fetch(FILE)

    assert not os.path.exists(hub.path_of(FILE))
    assert parts(hub) == []


def test_more_bytes_than_promised_are_not_written(hub: Hub, server: HubServer) -> None:
    server.delivers = MODEL + bytes(5_000_000)

    with pytest.raises(EmbeddingError, match="more of"):
        hub.fetch(FILE)

    assert not os.path.exists(hub.path_of(FILE))


def test_a_busy_server_is_asked_again_a_few_times(hub: Hub, server: HubServer, pauses: list[float]) -> None:
    server.statuses = [503, 429]
    hub.fetch(FILE)
    assert pauses == [1.0, 2.0]

    server.statuses = [503] * 9
    server.files["org/repo/other.gguf"] = MODEL
    server.stored.add("org/repo/other.gguf")
    with pytest.raises(TransientEmbeddingError, match="status 503"):
        hub.fetch(HubFile("org/repo", "other.gguf"))
    assert len(server.statuses) == 5


def test_a_file_that_the_hub_does_not_have_is_named(hub: Hub) -> None:
    with pytest.raises(EmbeddingError, match=r"there is no hf:org/repo/nothing\.gguf on http") as caught:
        hub.fetch(HubFile("org/repo", "nothing.gguf"))

    assert "spelling" in str(caught.value.hint)
    assert hub.fetch(HubFile("org/repo", "nothing.gguf"), optional=True) is None


def test_a_model_behind_an_account_is_said_to_be_one(hub: Hub, server: HubServer) -> None:
    server.private = True

    with pytest.raises(EmbeddingError, match="does not give this model to everyone") as caught:
        hub.fetch(FILE)

    assert "local.modelPath" in str(caught.value.hint)


def test_a_redirect_to_an_unencrypted_host_is_not_followed(hub: Hub, server: HubServer) -> None:
    server.redirects_to = "http://models.invalid/file"

    with pytest.raises(EmbeddingError, match=r"redirects to models\.invalid, which is not encrypted"):
        hub.fetch(FILE)


def test_an_unencrypted_hub_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not the address of a model hub"):
        Hub(str(tmp_path), "http://models.invalid").fetch(FILE)


def test_a_machine_that_is_offline_is_told_at_once_what_to_do(tmp_path: Path, pauses: list[float]) -> None:
    with HubServer({}) as gone:
        endpoint = gone.endpoint

    with pytest.raises(TransientEmbeddingError, match="cannot be reached") as caught:
        Hub(str(tmp_path), endpoint, sleep=pauses.append).fetch(FILE)

    assert "local.modelPath" in str(caught.value.hint)
    assert pauses == []


def test_a_model_that_the_disk_has_no_room_for_is_not_begun(hub: Hub, server: HubServer) -> None:
    server.promised_size = 10**18

    with pytest.raises(EmbeddingError, match="needs 1,000,000,000,000 MB more") as caught:
        hub.fetch(FILE)

    assert "modelCacheDir" in str(caught.value.hint)
    assert server.downloads() == []


def test_a_cache_that_cannot_be_written_is_named(server: HubServer, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file, not a folder")

    with pytest.raises(EmbeddingError, match=str(tmp_path)):
        Hub(str(tmp_path / "models"), server.endpoint).fetch(FILE)


def test_many_who_want_a_model_at_once_get_it_from_one_download(hub: Hub, server: HubServer) -> None:
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(hub.fetch, [FILE] * 6))

    assert set(paths) == {hub.path_of(FILE)}
    assert len(server.downloads()) == 1


def test_progress_grows_to_the_whole(hub: Hub) -> None:
    seen: list[Progress] = []

    hub.fetch(FILE, progress=seen.append)

    assert [one.completed for one in seen] == sorted(one.completed for one in seen)
    assert seen[-1] == Progress(len(MODEL), len(MODEL), "hf:org/repo/model-Q8_0.gguf")


def test_a_local_model_is_fetched_when_it_is_first_needed(tmp_path: Path) -> None:
    content = write_gguf(tmp_path / "tiny.gguf", encoder_facts()).read_bytes()
    with HubServer({"org/repo/tiny.gguf": content}, stored={"org/repo/tiny.gguf"}) as server:
        embedder = LocalEmbedder(
            LocalSettings(model_path="hf:org/repo/tiny.gguf"), hub=Hub(str(tmp_path / "m"), server.endpoint)
        )
        assert not embedder.is_ready
        assert server.asked == []

        assert embedder.identity.dims == 8
        assert embedder.is_ready


def test_an_onnx_model_is_fetched_with_what_is_said_about_it(tmp_path: Path) -> None:
    need_onnxruntime()
    folder = write_onnx_folder(tmp_path / "tiny", pooling="cls_token")
    os.makedirs(folder / "onnx")
    os.rename(folder / "model.onnx", folder / "onnx" / "model.onnx")
    files = {
        f"org/bge-small-en/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*.*")
    }
    with HubServer(files, stored={"org/bge-small-en/onnx/model.onnx"}) as server:
        hub = Hub(str(tmp_path / "models"), server.endpoint)
        embedder = OnnxEmbedder(OnnxSettings(model="org/bge-small-en"), hub=hub)
        assert embedder.describe()["ready"] is False
        vector = embedder.embed_query("a cat")
        asked = len(server.asked)
        assert embedder.describe()["ready"] is True

        again = OnnxEmbedder(OnnxSettings(model="org/bge-small-en"), hub=hub)
        assert again.embed_query("a cat") == vector
        assert len(server.asked) == asked, "what is there is not asked for again"
        assert embedder.identity.model == "org/bge-small-en"

    assert list(vector) == pytest.approx(list(OnnxEmbedder(OnnxSettings(model=str(folder))).embed_query("x")))


def test_a_repository_without_onnx_is_refused(server: HubServer, tmp_path: Path) -> None:
    server.files["org/repo/tokenizer.json"] = b"{}"
    embedder = OnnxEmbedder(OnnxSettings(model="org/repo"), hub=Hub(str(tmp_path / "m"), server.endpoint))

    with pytest.raises(EmbeddingError, match=r"has none of onnx/model\.onnx, model\.onnx"):
        _ = embedder.identity


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("hf:org/repo/model.gguf", HubFile("org/repo", "model.gguf")),
        ("hf:org/repo/sub/model.gguf", HubFile("org/repo", "sub/model.gguf")),
        ("hf:org/repo/model.gguf#v1.0", HubFile("org/repo", "model.gguf", "v1.0")),
    ],
)
def test_a_uri_names_repository_file_and_revision(uri: str, file: HubFile) -> None:
    assert is_hub_uri(uri)
    assert parse_uri(uri) == file
    assert str(file) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "hf:org/repo",
        "hf:org/repo:Q8_0",
        "hf:../../etc/passwd.gguf",
        "hf:org/repo/../model.gguf",
        "hf:org/repo//model.gguf",
        "hf:org/repo/mo\\del.gguf",
        "hf:org/repo/model.gguf#../x",
        "hf:org/repo/a b.gguf",
        "hf:",
    ],
)
def test_a_uri_that_names_no_file_or_leads_elsewhere_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="does not name a file of a model hub") as caught:
        parse_uri(uri)

    assert caught.value.key == "local.modelPath"


def test_a_name_on_the_hub_is_told_from_a_path() -> None:
    assert is_hub_name("BAAI/bge-small-en-v1.5")
    assert not is_hub_name("~/models/bge")
    assert not is_hub_name("./bge")
    assert not is_hub_name("bge")
