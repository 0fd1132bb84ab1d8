"""What LanceDB says of itself and what is wrong with its settings, in words that a user understands."""

from __future__ import annotations

import os

import pytest

from plainmind.base.errors import ConfigError
from plainmind.guests.lancedb.library import first_line
from plainmind.guests.lancedb.store import open_lance_store

SERVER_IS_GONE = (
    'Invalid input, Failed to connect to namespace: IO { source: Generic { store: "S3", source: ListRequest { source: '
    "RetryError(RetryErrorImpl { method: GET, uri: Some(http://127.0.0.1:9/notes?list-type=2&prefix=memory%2F), "
    "retries: 3, inner: Http(HttpError { kind: Connect, source: hyper_util::client::legacy::Error(Connect, "
    'ConnectError("tcp connect error", 127.0.0.1:9, Os { code: 111, kind: ConnectionRefused, message: "Connection '
    'refused" })) }) }) } }, location: Location { file: "/src/lance-io/src/object_store.rs", line: 1506, column: 92 } }'
)


def test_of_an_error_that_shows_the_inside_of_a_library_the_reason_and_the_server_are_told():
    assert first_line(ValueError(SERVER_IS_GONE)) == "Connection refused, at http://127.0.0.1:9"


def test_without_a_server_the_reason_is_enough():
    said = 'IO { source: Os { code: 13, kind: PermissionDenied, message: "Permission denied" } }'
    assert first_line(OSError(said)) == "Permission denied"


def test_a_plain_error_is_told_without_the_place_in_the_source():
    said = "Table 'gen_000001' was not found, /src/lancedb/src/table.rs:12:34\nbacktrace"
    assert first_line(ValueError(said)) == "Table 'gen_000001' was not found"
    assert first_line(ValueError()) == "ValueError"


@pytest.mark.parametrize("uri", ["s3:/my-bucket", "my-bucket/memory", "./index"])
def test_a_place_that_depends_on_where_a_program_is_started_is_refused(tmp_path, monkeypatch, uri):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="neither an address nor a whole path") as caught:
        open_lance_store(str(tmp_path / "main" / "notes"), uri=uri)

    assert caught.value.key == "store.uri"
    assert "s3://" in str(caught.value.hint)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("within", ["~/shared", "{home}/shared"])
def test_a_whole_path_may_begin_with_the_home_folder(tmp_path, monkeypatch, within):
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_lance_store("/nowhere/main/notes", uri=within.format(home=tmp_path))

    assert store.driver.place.uri.startswith(str(tmp_path / "shared" / "main" / "notes"))
    store.close()
