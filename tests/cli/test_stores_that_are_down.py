"""`status` while the index is somewhere that does not answer: what it says of the rest is still true."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.timeout(60)


def lines_of(answer):
    return {line[:10].strip(): line[11:] for line in answer.out.splitlines()}


def test_it_does_not_say_that_words_answer_alone(cli, workspace, tmp_path):
    dsn = f"store.dsn=host={tmp_path}/nowhere dbname=notes"
    told = lines_of(cli("status", "--config", "store.driver=postgres", "--config", dsn))

    assert told["indexed"] == "not known while the index cannot be asked"
    assert told["meaning"].startswith("builtin ")


def test_an_index_in_a_bucket_is_said_to_be_there_and_not_in_a_folder(cli, workspace, monkeypatch):
    pytest.importorskip("lancedb")
    for name, said in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "none",
        "AWS_MAX_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, said)
    bucket = ("--config", "store.driver=lancedb", "--config", "store.uri=s3://nobody/notes")
    answer = cli("status", *bucket)

    assert lines_of(answer)["index"].startswith("s3://nobody/notes")
    assert "Connection refused, at http://127.0.0.1:9" in answer.err
