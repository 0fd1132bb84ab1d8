"""LanceDB in an object store that speaks S3: the same promises, without a lock to hold.

Runs where `COMMONPLACE_TEST_S3` names an endpoint, or where `moto_server` is on the path.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
import uuid

import pytest
from tests.support.index_contents import fingerprint, found_texts, near_texts, put

from commonplace.errors import ConflictError, LockTimeout
from commonplace.store.lancedb.remote_place import RemotePlace
from commonplace.store.lancedb.store import LanceStore

ENDPOINT = os.environ.get("COMMONPLACE_TEST_S3")
MOTO = shutil.which("moto_server")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not (ENDPOINT or MOTO), reason="no S3: set COMMONPLACE_TEST_S3 or install moto[server]"
    ),
]


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


@pytest.fixture(scope="module")
def endpoint():
    if ENDPOINT:
        yield ENDPOINT
        return
    address = f"http://127.0.0.1:{(port := free_port())}"
    server = subprocess.Popen([MOTO, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def options(endpoint):
    return {
        "aws_endpoint": endpoint,
        "allow_http": "true",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": "testing",
        "aws_region": "us-east-1",
    }


@pytest.fixture
def bucket(endpoint):
    name = f"test-{uuid.uuid4().hex[:12]}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT"), timeout=10).close()
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


def test_who_was_overtaken_publishes_nothing(bucket, options, monkeypatch):
    monkeypatch.setattr("commonplace.store.lancedb.remote_place._LEASE_S", 0.0)
    first, second = (RemotePlace(f"s3://{bucket}/memory", options) for _ in range(2))
    with first.turn("change the index") as mine:
        with second.turn("change the index") as theirs:
            theirs.publish(theirs.pointer)
        with pytest.raises(ConflictError, match="another host"):
            mine.publish(mine.pointer)


def test_whoever_waits_too_long_for_another_host_is_told(bucket, options, monkeypatch):
    monkeypatch.setattr("commonplace.store.lancedb.remote_place._TIMEOUT_S", 0.3)
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
