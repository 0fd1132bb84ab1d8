"""LanceDB in an object store that speaks S3: the same promises, without a lock to hold.

`PLAINMIND_TEST_S3` names the endpoint of another server than the one of the tests, moto's or a real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
import uuid

import pytest
from tests.support.index_contents import fingerprint, found_texts, near_texts, put
from tests.support.s3_server import ObjectStore, running_object_store

from plainmind.base.errors import ConflictError, IndexCorrupt, IndexUnavailable, LockTimeout
from plainmind.guests.lancedb.place import RemotePlace, RemoteTurn
from plainmind.guests.lancedb.store import LanceStore

ENDPOINT = os.environ.get("PLAINMIND_TEST_S3")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def server():
    """An object store of this test."""
    with running_object_store() as server:
        yield server


@pytest.fixture
def options(server):
    return server.options if ENDPOINT is None else ObjectStore(ENDPOINT).options


@pytest.fixture
def bucket(options):
    name = f"test-{uuid.uuid4().hex[:12]}"
    made = urllib.request.Request(f"{options['aws_endpoint']}/{name}", method="PUT")
    urllib.request.urlopen(made, timeout=10).close()
    return name


@pytest.fixture
def store(bucket, options):
    store = LanceStore(f"s3://{bucket}/memory", storage_options=options)
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    yield store
    store.close()


def objects(bucket, options):
    """Every object of a bucket, with its bytes."""
    from pyarrow import fs

    server = fs.S3FileSystem(
        endpoint_override=options["aws_endpoint"],
        scheme="http",
        access_key=options["aws_access_key_id"],
        secret_key=options["aws_secret_access_key"],
        region=options["aws_region"],
    )
    for found in server.get_file_info(fs.FileSelector(bucket, recursive=True)):
        if found.type == fs.FileType.File:
            with server.open_input_stream(found.path) as stream:
                yield found.path, stream.read()


def test_an_index_in_an_object_store_answers_and_changes(store, bucket, options):
    put(store, "a.md", "the gateway runs on a Mac Studio")
    put(store, "a.md", "the gateway moved to Hetzner")
    put(store, "b.md", "something else")
    store.remove_file("memory", "b.md")

    other = LanceStore(f"s3://{bucket}/memory", storage_options=options)
    assert found_texts(other, "gateway") == ["the gateway moved to Hetzner"]
    assert near_texts(other, "the gateway moved to Hetzner") == ["the gateway moved to Hetzner"]
    assert other.digest() == store.digest()
    other.close()


def test_erased_text_is_in_no_object(store, bucket, options):
    put(store, "a.md", "the word is zanzibar")
    put(store, "b.md", "the gateway")
    assert any(b"zanzibar" in data for _, data in objects(bucket, options))
    store.erase("memory", "a.md")

    assert found_texts(store, "gateway", "zanzibar") == ["the gateway"]
    assert [name for name, data in objects(bucket, options) if b"zanzibar" in data] == []


def test_hosts_that_write_at_once_lose_nothing(store, bucket, options):
    errors: list[BaseException] = []

    def write(name):
        own = LanceStore(f"s3://{bucket}/memory", storage_options=options)
        try:
            for turn in range(3):
                put(own, f"{name}-{turn}.md", f"{name} gateway {turn}")
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            errors.append(error)
        own.close()

    hosts = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join()

    assert errors == []
    assert len(found_texts(store, "gateway", limit=20)) == 6
    store.digest()


def test_who_was_overtaken_publishes_nothing(bucket, options):
    place = RemotePlace(f"s3://{bucket}/memory", options)
    with place.turn("change the index") as turn:
        overtaken = {"holder": "another host", "until": time.time() + 600}
        place.database().open_table("current").update(values=overtaken)
        with pytest.raises(ConflictError, match="another host"):
            turn.publish(turn.pointer)

    assert place.database().open_table("current").search().to_list()[0]["holder"] == "another host"


HOST = textwrap.dedent(
    """
    import sys, time
    from plainmind.guests.lancedb import place

    place._LEASE_S = 3.0
    uri, *options = sys.argv[1:]
    with place.RemotePlace(uri, dict(each.split("=", 1) for each in options)).turn("change the index"):
        print("taken", flush=True)
        time.sleep(600)
    """
)


@pytest.mark.slow
def test_a_host_that_died_in_its_turn_is_waited_for_and_no_longer(store, options):
    told = [f"{name}={value}" for name, value in options.items()]
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, store.driver.place.uri, *told], stdout=subprocess.PIPE
    )
    try:
        assert host.stdout.readline() == b"taken\n"
    finally:
        host.kill()
        host.communicate()
    put(store, "a.md", "the gateway")

    assert found_texts(store, "gateway") == ["the gateway"]


def test_whoever_waits_too_long_for_another_host_is_told(bucket, options, monkeypatch):
    monkeypatch.setattr("plainmind.guests.lancedb.place._TIMEOUT_S", 0.3)
    first, second = (RemotePlace(f"s3://{bucket}/memory", options) for _ in range(2))
    with (
        first.turn("change the index"),
        pytest.raises(LockTimeout, match="another host"),
        second.turn("change the index"),
    ):
        pass


def test_a_rebuild_in_an_object_store_is_published_at_once(store):
    put(store, "a.md", "old gateway")
    with store.rebuild(fingerprint(model="other"), reason="a test") as fresh:
        put(fresh, "a.md", "new gateway")
        assert found_texts(store, "gateway") == ["old gateway"]
    assert found_texts(store, "gateway") == ["new gateway"]


def test_a_turn_that_takes_longer_than_its_lease_is_kept(bucket, options, monkeypatch):
    monkeypatch.setattr("plainmind.guests.lancedb.place._LEASE_S", 3.0)
    place = RemotePlace(f"s3://{bucket}/memory", options)
    with place.turn("change the index") as turn:
        began = time.time()
        row = place.database().open_table("current")
        while row.search().to_list()[0]["until"] < began + 7.0:
            time.sleep(0.05)
            row.checkout_latest()
        turn.publish(turn.pointer)
    assert RemotePlace(f"s3://{bucket}/memory", options).pointer() == turn.pointer


def test_a_damaged_pointer_in_an_object_store_asks_for_a_rebuild(store, bucket, options):
    put(store, "a.md", "the gateway")
    RemotePlace(f"s3://{bucket}/memory", options).database().open_table("current").update(
        values={"state": "{"}
    )

    with store.reading() as reader:
        assert reader.fingerprint() is None
    assert store.describe()["recovered"]
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway again")
    assert found_texts(store, "gateway") == ["the gateway again"]


def test_a_rebuild_that_was_published_before_the_network_failed_answers(store, bucket, options, monkeypatch):
    give_back = RemoteTurn.give_back

    def fail(turn):
        if turn.pointer.revision:
            raise RuntimeError("error sending request")
        give_back(turn)

    def build():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")

    with monkeypatch.context() as patched:
        patched.setattr(RemoteTurn, "give_back", fail)
        with pytest.raises(IndexUnavailable):
            build()
    assert found_texts(LanceStore(f"s3://{bucket}/memory", storage_options=options), "gateway") == [
        "the gateway"
    ]


ours = pytest.mark.skipif(ENDPOINT is not None, reason="only the server of the tests fails on request")


@ours
@pytest.mark.parametrize("answer", [-1, 403, pytest.param(500, marks=pytest.mark.slow)])
def test_an_object_store_that_does_not_answer_is_no_damage(store, server, answer):
    put(store, "a.md", "the gateway")
    cold = LanceStore(store.driver.place.uri, storage_options=server.options)
    server.fault = lambda _, key: answer if "gen_" in key and "/data/" in key else None
    with pytest.raises(IndexUnavailable, match="refused"), cold.reading() as reader:
        reader.files()
    server.fault = None

    assert found_texts(cold, "gateway") == ["the gateway"]


@ours
def test_an_object_that_is_gone_is_damage_that_a_sync_mends(store, server):
    put(store, "a.md", "the gateway")
    for key in [key for key in server.objects if "gen_" in key and "/data/" in key]:
        del server.objects[key]

    cold = LanceStore(store.driver.place.uri, storage_options=server.options)
    with pytest.raises(IndexCorrupt, match="damaged"), cold.reading() as reader:
        reader.files()
    with store.reading() as reader:
        assert reader.fingerprint() is None


@ours
def test_a_search_of_what_is_known_already_asks_the_object_store_once(store, server):
    put(store, "a.md", "the gateway")
    assert found_texts(store, "gateway") == ["the gateway"]
    before = len(server.requests)
    assert found_texts(store, "gateway") == ["the gateway"]

    assert len(server.requests) - before == 1


@ours
def test_a_listing_of_several_pages_is_read_to_its_end(store, server):
    server.page = 2
    for number in range(4):
        put(store, f"{number}.md", f"gateway {number}")
    store.erase("memory", "0.md")

    assert len(found_texts(store, "gateway")) == 3
    assert server.holding("gateway 0") == []
    assert len({key.split("/")[2] for key in server.objects}) == 2  # that of the pointer, and one more


@pytest.mark.slow
@ours
def test_what_is_too_large_for_one_request_comes_in_parts(store, server):
    put(store, "large.md", *(f"{number} " + "gateway " * 120_000 for number in range(14)))

    assert any(request.startswith("POST") and "/data/" in request for request in server.requests)
    assert server.uploads == {}
    cold = LanceStore(store.driver.place.uri, storage_options=server.options)
    assert len(found_texts(cold, "gateway", limit=20)) == 14
    assert cold.digest() == store.digest()
