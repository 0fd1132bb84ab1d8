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
    bucket = [
        word
        for said in ("store.driver=lancedb", "store.uri=s3://nobody/notes", "store.workspace=boats")
        for word in ("--config", said)
    ]
    answer = cli("status", *bucket)

    assert lines_of(answer)["index"].startswith("s3://nobody/notes")
    assert "Connection refused, at http://127.0.0.1:9" in answer.err


def test_without_the_variable_that_says_where_the_server_is_notes_are_read_and_written(cli, workspace):
    there = ("--config", "store.driver=postgres", "--config", "store.dsn=env:NOBODY_SETS_THIS")

    assert cli("remember", "the tide turns at six", *there).status == 0
    assert cli("list", *there).status == 0
    told = cli("status", *there)
    assert told.status == 0
    assert lines_of(told)["indexed"] == "not known while the index cannot be asked"
    assert "NOBODY_SETS_THIS, which is not set" in told.err
    searched = cli("search", "tide", *there)
    assert searched.status == 1
    assert "NOBODY_SETS_THIS, which is not set" in searched.err
    assert "hint: set it where this program" in searched.err
    examined = cli("doctor", *there).out
    assert examined.count("NOBODY_SETS_THIS") == 1
    prepared = cli("migrate-store", "--prepare", *there)
    assert prepared.status == 1
    assert "NOBODY_SETS_THIS, which is not set" in prepared.err


def test_an_index_on_a_server_is_said_to_be_there_and_not_in_a_folder(cli, workspace):
    def place(dsn):
        answer = cli("status", "--config", "store.driver=postgres", "--config", f"store.dsn={dsn}")
        assert "hunter2" not in answer.out + answer.err
        return lines_of(answer)["index"]

    here = place("postgresql://me:hunter2@127.0.0.1:1/notes")
    assert here == "a server on this machine, not reached (postgres, agent main)"
    there = place("postgresql://me:hunter2@db.invalid/notes")
    assert there == "db.invalid, not reached (postgres, agent main)"


def test_a_bucket_without_a_name_is_not_searched_and_notes_are_kept(cli, workspace):
    there = ("--config", "store.driver=lancedb", "--config", "store.uri=s3://nobody/notes")

    assert cli("remember", "the tide turns at six", *there).status == 0
    assert cli("list", *there).status == 0
    searched = cli("search", "tide", *there)
    assert searched.status == 1
    assert "needs a name" in searched.err
    assert "store.workspace NAME" in searched.err
    told = cli("status", *there)
    assert told.status == 0
    assert "needs a name" in told.err
