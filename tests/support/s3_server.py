"""An object store on the loopback, in memory: it speaks as much S3 as LanceDB asks for, and fails on request."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

REGION = "us-east-1"
_STAMP = "2026-01-01T00:00:00.000Z"
_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"

# Told the method and the key of a request before it is carried out; a status to refuse it with, -1 to break off
# in the middle of the answer, or None.
Fault = Callable[[str, str], "int | None"]


@dataclass
class ObjectStore:
    """Objects by key, where the bucket is the first part of a key."""

    endpoint: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)  # "GET bucket/key"
    fault: Fault | None = None
    page: int = 1_000  # objects in one answer to a listing
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, str]:
        """What LanceDB needs to be told to reach it."""
        return {
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
            "aws_access_key_id": "testing",
            "aws_secret_access_key": "testing",
            "aws_region": REGION,
        }

    def holding(self, word: str) -> list[str]:
        """The keys of objects, and of unfinished uploads, with a word in them."""
        parts = [(key, part) for key, upload in self.uploads.items() for part in upload.values()]
        return [key for key, data in [*self.objects.items(), *parts] if word.encode() in data]


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """Serve an empty object store on a port of its own during a block."""
    store = ObjectStore()
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        store.endpoint = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever, name="object store")
        serving.start()
        try:
            yield store
        finally:
            server.shutdown()
            serving.join()


class _Handler(BaseHTTPRequestHandler):
    store: ObjectStore
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _prepared(self) -> bool:
        """Read the request; whether it is to be carried out."""
        split = urlsplit(self.path)
        self.key = unquote(split.path).lstrip("/")
        self.asked = {
            name: values[0] for name, values in parse_qs(split.query, keep_blank_values=True).items()
        }
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.is_cut = False
        self.store.requests.append(f"{self.command} {self.key}")
        refused = self.store.fault(self.command, self.key) if self.store.fault else None
        if refused == -1:
            self.is_cut = True
        elif refused is not None:
            self._answer(refused, b"<Error><Code>Refused</Code></Error>")
            return False
        return True

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        self.end_headers()
        if self.is_cut:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        if self._prepared():
            if "list-type" in self.asked:
                self._list()
            else:
                self._object()

    def do_HEAD(self) -> None:
        if self._prepared():
            self._object()

    def do_PUT(self) -> None:
        if not self._prepared():
            return
        if "uploadId" in self.asked:
            self.store.uploads[self.asked["uploadId"]][int(self.asked["partNumber"])] = self.body
        else:
            with self.store.guard:
                if self.headers.get("If-None-Match") == "*" and self.key in self.store.objects:
                    self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                    return
                if "/" in self.key:  # else a bucket is made, and they are all there
                    self.store.objects[self.key] = self.body
        self._answer(200, ETag=_etag(self.body))

    def do_POST(self) -> None:
        if not self._prepared():
            return
        if "delete" in self.asked:
            named = [each.text or "" for each in ET.fromstring(self.body).iter() if each.tag.endswith("Key")]
            for name in named:
                self.store.objects.pop(f"{self.key.rstrip('/')}/{name}", None)
            gone = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in named)
            self._answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())
        elif "uploads" in self.asked:
            upload = uuid.uuid4().hex
            self.store.uploads[upload] = {}
            said = f"<UploadId>{upload}</UploadId>"
            self._answer(
                200, f"<InitiateMultipartUploadResult>{said}</InitiateMultipartUploadResult>".encode()
            )
        else:
            parts = self.store.uploads.pop(self.asked["uploadId"])
            whole = b"".join(parts[number] for number in sorted(parts))
            self.store.objects[self.key] = whole
            said = f"<ETag>{escape(_etag(whole))}</ETag>"
            self._answer(
                200, f"<CompleteMultipartUploadResult>{said}</CompleteMultipartUploadResult>".encode()
            )

    def do_DELETE(self) -> None:
        if self._prepared():
            self.store.uploads.pop(self.asked.get("uploadId", ""), None)
            self.store.objects.pop(self.key, None)
            self._answer(204)

    def _object(self) -> None:
        data = self.store.objects.get(self.key)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        facts = {"ETag": _etag(data), "Last_Modified": _DATE}
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, data, **facts, **({"length": str(len(data))} if self.command == "HEAD" else {}))
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if first:
            start, end = int(first), min(int(last) + 1 if last else len(data), len(data))
        else:
            start, end = max(0, len(data) - int(last)), len(data)
        if start >= len(data):
            self._answer(416, b"<Error><Code>InvalidRange</Code></Error>")
            return
        self._answer(206, data[start:end], Content_Range=f"bytes {start}-{end - 1}/{len(data)}", **facts)

    def _list(self) -> None:
        bucket = self.key.rstrip("/") + "/"
        prefix, delimiter = self.asked.get("prefix", ""), self.asked.get("delimiter", "")
        after = self.asked.get("continuation-token") or self.asked.get("start-after", "")
        entries: dict[str, str] = {}
        for key in sorted(self.store.objects):
            name = key.removeprefix(bucket)
            if name == key or not name.startswith(prefix):
                continue
            folder, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if cut:
                entries.setdefault(prefix + folder + cut, "")
            else:
                entries[name] = key
        names = [name for name in sorted(entries) if name > after]
        page, rest = names[: self.store.page], names[self.store.page :]
        said = "".join(_entry(name, self.store.objects.get(entries[name])) for name in page)
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        is_cut = f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
        self._answer(200, f"<ListBucketResult>{is_cut}{more}{said}</ListBucketResult>".encode())


def _entry(name: str, data: bytes | None) -> str:
    if data is None:
        return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
    facts = f"<LastModified>{_STAMP}</LastModified><ETag>{escape(_etag(data))}</ETag><Size>{len(data)}</Size>"
    return f"<Contents><Key>{escape(name)}</Key>{facts}</Contents>"


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
