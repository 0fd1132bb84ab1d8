"""The files and batch jobs of OpenAI, Voyage and Gemini as they look from the network, on a loopback port.

`BatchRoutes` answers requests and keeps what a provider keeps; `serving` puts it behind a real HTTP server.
What a test wants to go wrong it says in `faults`; `at` is called with the name of each moment, before the answer.
"""

from __future__ import annotations

import email
import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.providers.server import DIMS, KEY, Provider, answer_to, vector_for
from tests.support.providers.server import _read as read_request

FINAL = {"completed", "failed", "expired", "cancelled"}


@dataclass
class Batch:
    """One job as the provider sees it."""

    id: str
    input_file: str
    mark: str  # metadata or display name
    params: Mapping[str, Any]
    script: list[str]
    created: float = field(default_factory=time.time)
    polls: int = 0
    cancelled: bool = False
    output_file: str | None = None
    error_file: str | None = None
    complaint: str | None = None

    @property
    def state(self) -> str:
        """Where the job has come to; each look brings it one state further."""
        if self.cancelled:
            return "cancelled"
        return self.script[min(self.polls, len(self.script) - 1)]


@dataclass
class Reply:
    """What goes back; `halfway` names the moment when half of the body is out."""

    status: int
    body: bytes
    content_type: str = "application/json"
    halfway: str | None = None


class BatchRoutes:
    """What a provider keeps, and what it has been asked. `dialect` is openai, voyage or gemini."""

    def __init__(self, dialect: str, *, key: str = KEY, dims: int = DIMS) -> None:
        self.dialect = dialect
        self.key = key
        self.dims = dims
        self.script = ["validating", "in_progress", "completed"]
        self.faults: set[str] = set()
        self.at: Callable[[str], None] = str
        self.files: dict[str, tuple[str, bytes]] = {}  # id → name, content
        self.batches: dict[str, Batch] = {}
        self.requests: list[tuple[str, str]] = []
        self.lock = threading.RLock()
        self.single = Provider(dialect, key=key, dims=dims)  # answers and records single requests
        self._count = 0

    # What tests ask about.

    @property
    def created(self) -> int:
        """How many jobs were ever submitted."""
        return len(self.batches)

    def asked(self, method: str, part: str) -> int:
        """How many requests had this method and `part` in their path."""
        return sum(1 for did, path in list(self.requests) if did == method and part in path)

    @property
    def texts_submitted(self) -> list[str]:
        """Every text of every job, as often as it was submitted."""
        return [text for batch in self.batches.values() for _, text in batch.params["items"]]

    # One request.

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer like the provider."""
        with self.lock:
            self.requests.append((method, target))
            if not self._authorised(headers):
                return _error(401, "Incorrect API key provided", "invalid_api_key")
            url = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if url.path.endswith(("/embeddings", ":batchEmbedContents", ":embedContent")):
                seen = read_request(self.dialect, url.path, dict(headers), json.loads(body))
                self.single.seen.append(seen)
                return _json(answer_to(self.single, seen))
            if "no-batches" in self.faults:
                return _error(404, "not found", "not_found")
            if self.dialect == "gemini":
                return self._gemini(method, url.path, query, headers, body)
            return self._openai(method, url.path, query, headers, body)

    def _authorised(self, headers: Mapping[str, str]) -> bool:
        if self.dialect == "gemini":
            return headers.get("x-goog-api-key") == self.key
        return headers.get("authorization") == f"Bearer {self.key}"

    def _openai(  # noqa: C901, PLR0911 - a table of routes
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Reply:
        match method, path.removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                return self._upload(headers, body)
            case "GET", ["files"]:
                if "no-list" in self.faults:
                    return _error(404, "not found", "not_found")
                return _json(self._page([self._file_object(file_id) for file_id in self.files], query))
            case "GET", ["files", file_id, "content"]:
                return self._content(file_id)
            case "DELETE", ["files", file_id]:
                return self._delete(file_id)
            case "POST", ["batches"]:
                return self._create_openai(json.loads(body))
            case "GET", ["batches"]:
                if "no-list" in self.faults:
                    return _error(405, "method not allowed", "method_not_allowed")
                newest_first = [self._batch_object(batch) for batch in reversed(self.batches.values())]
                return _json(self._page(newest_first, query))
            case "GET", ["batches", job_id]:
                return self._poll(job_id, self._batch_object)
            case "POST", ["batches", job_id, "cancel"]:
                return self._cancel(job_id, self._batch_object)
        return _error(404, f"no {method} {path}", "not_found")

    def _gemini(  # noqa: PLR0911 - a table of routes
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Reply:
        if method == "POST" and path == "/upload/v1beta/files" and query.get("uploadType") == "multipart":
            return self._upload(headers, body)
        if method == "GET" and (found := re.fullmatch(r"/download/v1beta/(files/[\w-]+):download", path)):
            return self._content(found[1]) if query.get("alt") == "media" else _error(400, "no alt=media")
        rest = path.removeprefix("/v1beta/")
        if method == "POST" and (found := re.fullmatch(r"models/([\w.-]+):asyncBatchEmbedContent", rest)):
            return self._create_gemini(found[1], json.loads(body))
        if rest in {"batches", "files"} and method == "GET":
            return self._list_gemini(rest, query)
        if method == "GET" and rest.startswith("batches/"):
            return self._poll(rest, self._operation)
        if method == "POST" and rest.startswith("batches/") and rest.endswith(":cancel"):
            return self._cancel(rest.removesuffix(":cancel"), self._operation)
        if method == "DELETE" and rest.startswith("batches/"):
            return _json({})
        if method == "DELETE" and rest.startswith("files/"):
            return self._delete(rest)
        return _error(404, f"no {method} {path}", "NOT_FOUND")

    # Files.

    def _upload(self, headers: Mapping[str, str], body: bytes) -> Reply:
        parts = _parts(headers["content-type"], body)
        if self.dialect == "gemini":
            assert headers["content-type"].startswith("multipart/related"), headers["content-type"]
            name, content = json.loads(parts[0][2])["file"]["displayName"], parts[1][2]
            file_id = self._new_id("files/")
        else:
            assert headers["content-type"].startswith("multipart/form-data"), headers["content-type"]
            fields = {field_name: content for field_name, _, content in parts}
            assert fields["purpose"] == b"batch"
            name, content = next((file, content) for _, file, content in parts if file)
            file_id = self._new_id("file-")
        if "upload-fails" in self.faults:
            return _error(500, "try later", "server_error")
        self.files[file_id] = (name, content)
        self.at("uploaded")
        if "upload-answer-lost" in self.faults:
            self.faults.discard("upload-answer-lost")
            return _error(502, "bad gateway", "bad_gateway")
        return _json(
            {"file": self._file_object(file_id)} if self.dialect == "gemini" else self._file_object(file_id)
        )

    def _file_object(self, file_id: str) -> dict[str, Any]:
        name, content = self.files[file_id]
        if self.dialect == "gemini":
            return {"name": file_id, "displayName": name, "sizeBytes": str(len(content)), "state": "ACTIVE"}
        purpose = "batch_output" if name.endswith((".output", ".errors")) else "batch"
        return {"id": file_id, "object": "file", "bytes": len(content), "filename": name, "purpose": purpose}

    def _content(self, file_id: str) -> Reply:
        if file_id not in self.files:
            return _error(404, "No such File object", "not_found")
        self.at("downloaded")
        if "download-fails" in self.faults:
            return _error(503, "overloaded", "server_error")
        return Reply(200, self.files[file_id][1], "application/octet-stream", halfway="downloading")

    def _delete(self, file_id: str) -> Reply:
        self.at("deleting")
        if self.files.pop(file_id, None) is None:
            return _error(404, "No such File object", "not_found")
        return _json({} if self.dialect == "gemini" else {"id": file_id, "object": "file", "deleted": True})

    # Jobs.

    def _create_openai(self, request: Mapping[str, Any]) -> Reply:
        assert request["endpoint"] == "/v1/embeddings"
        assert request["completion_window"] == {"openai": "24h", "voyage": "12h"}[self.dialect]
        params = request.get("request_params", {})
        if self.dialect == "voyage":
            assert params["model"]
            assert params["input_type"] == "document"
        return self._create(
            request["input_file_id"], json.dumps(request["metadata"]), params, self._batch_object, "batch_"
        )

    def _create_gemini(self, model: str, request: Mapping[str, Any]) -> Reply:
        batch = request["batch"]
        file = batch["inputConfig"]["fileName"]
        return self._create(file, batch["displayName"], {"model": model}, self._operation, "batches/")

    def _create(
        self,
        input_file: str,
        mark: str,
        params: Mapping[str, Any],
        shown: Callable[[Batch], dict[str, Any]],
        prefix: str,
    ) -> Reply:
        self.at("creating")
        if "create-refused" in self.faults:
            return _error(400, "batch jobs are not enabled for this project", "invalid_request")
        if "create-busy" in self.faults:
            return _error(429, "too many batches", "rate_limit_exceeded")
        if input_file not in self.files:
            return _error(404, "No such File object", "not_found")
        items, complaint = self._read_input(self.files[input_file][1])
        batch = Batch(self._new_id(prefix), input_file, mark, {**params, "items": items}, list(self.script))
        if complaint:
            batch.script, batch.complaint = ["failed"], complaint
        self.batches[batch.id] = batch
        self.at("created")
        if "create-answer-lost" in self.faults:
            self.faults.discard("create-answer-lost")
            return _error(500, "internal error", "server_error")
        return _json(shown(batch))

    def _read_input(self, content: bytes) -> tuple[list[tuple[str, str]], str | None]:
        items: list[tuple[str, str]] = []
        for number, line in enumerate(content.decode().splitlines(), 1):
            try:
                items.append(self._read_line(json.loads(line)))
            except (AssertionError, KeyError, TypeError, ValueError) as error:
                return items, f"line {number} is not a request: {error!r}"
        names = [name for name, _ in items]
        return items, None if len(names) == len(set(names)) else "custom_id must be unique"

    def _read_line(self, line: dict[str, Any]) -> tuple[str, str]:
        if self.dialect == "gemini":
            assert set(line) == {"key", "request"}
            assert line["request"]["taskType"] == "RETRIEVAL_DOCUMENT"
            (part,) = line["request"]["content"]["parts"]
            return line["key"], part["text"]
        if self.dialect == "voyage":
            assert set(line) == {"custom_id", "body"}
            assert set(line["body"]) == {"input"}
        else:
            assert line["method"] == "POST"
            assert line["url"] == "/v1/embeddings"
            assert line["body"]["model"]
        given = line["body"]["input"]
        (text,) = [given] if isinstance(given, str) else given
        return line["custom_id"], text

    def _poll(self, job_id: str, shown: Callable[[Batch], dict[str, Any]]) -> Reply:
        batch = self.batches.get(job_id)
        if batch is None or "job-vanishes" in self.faults:
            return _error(404, "No such batch", "not_found")
        if "poll-fails" in self.faults:
            return _error(503, "overloaded", "server_error")
        batch.polls += 1
        self._finish(batch)
        self.at("polled")
        if batch.state in FINAL:
            self.at("completed")
        return _json(shown(batch))

    def _cancel(self, job_id: str, shown: Callable[[Batch], dict[str, Any]]) -> Reply:
        batch = self.batches[job_id]
        if "cancel-fails" in self.faults:
            return _error(500, "try later", "server_error")
        if batch.state not in FINAL and "uncancellable" not in self.faults:
            batch.cancelled = True
            self._finish(batch)
        return _json(shown(batch) if self.dialect != "gemini" else {})

    def _finish(self, batch: Batch) -> None:
        """Write the result files of a job that has just ended, as far as its state allows."""
        if batch.output_file or batch.error_file or batch.state not in FINAL or batch.complaint:
            return
        if batch.state == "failed" or (self.dialect == "gemini" and batch.state != "completed"):
            return
        if "all-refused" in self.faults:
            lines, errors = (
                [],
                [self._error_line(name, "content_refused") for name, _ in batch.params["items"]],
            )
        else:
            lines, errors = self._results(batch)
        name = f"plainmind-{batch.id.rpartition('/')[2]}"
        if lines or self.dialect == "gemini":
            batch.output_file = self._new_id("files/" if self.dialect == "gemini" else "file-")
            self.files[batch.output_file] = (name + ".output", _jsonl(lines))
        if errors:
            batch.error_file = self._new_id("files/" if self.dialect == "gemini" else "file-")
            self.files[batch.error_file] = (name + ".errors", _jsonl(errors))

    def _results(self, batch: Batch) -> tuple[list[Any], list[Any]]:
        items = list(batch.params["items"])
        lines, errors = [], []
        half_done = batch.state in {"expired", "cancelled"} or "partial" in self.faults
        for number, (name, text) in enumerate(items):
            if half_done and number % 2:
                if "silent" not in self.faults:
                    errors.append(self._error_line(name, "batch_expired"))
                continue
            lines.append(self._line(name, vector_for(text, self.dims)))
        if self.dialect == "gemini":
            lines, errors = lines + errors, []  # one file holds both
        random.Random(batch.id).shuffle(lines)
        return self._spoilt(lines), errors

    def _spoilt(self, lines: list[Any]) -> list[Any]:
        if "foreign" in self.faults:
            lines.append(self._line("f" * 64, vector_for("somebody else's text", self.dims)))
        if "duplicate" in self.faults:
            first = dict(lines[0])
            name = first.get("custom_id") or first.get("key")
            lines.append(self._line(name, vector_for("another text", self.dims)))
        if "garbage" in self.faults:
            lines[1:1] = ["{not json", 17, None, {"custom_id": 5, "key": 5}, {}]
        if "bad-vectors" in self.faults:
            bad: list[Any] = [
                [math.nan] * self.dims,
                [0.0] * self.dims,
                [1.0],
                [None] * self.dims,
                [],
                "no",
                None,
            ]
            for number, vector in enumerate(bad):
                old = lines[number]
                lines[number] = self._line(old.get("custom_id") or old.get("key"), vector)
        if "all-bad" in self.faults:
            lines = [self._line(old.get("custom_id") or old.get("key"), [0.0] * self.dims) for old in lines]
        return lines

    def _line(self, name: Any, vector: Any) -> dict[str, Any]:
        if self.dialect == "gemini":
            return {"key": name, "response": {"embedding": {"values": vector}}}
        body = {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": vector}],
            "model": "m",
            "usage": {"prompt_tokens": 3, "total_tokens": 3},
        }
        return {"id": "r", "custom_id": name, "response": {"status_code": 200, "body": body}, "error": None}

    def _error_line(self, name: str, code: str) -> dict[str, Any]:
        if self.dialect == "gemini":
            return {"key": name, "error": {"code": 8, "message": code}}
        return {"id": "r", "custom_id": name, "response": None, "error": {"code": code, "message": code}}

    # How jobs are shown.

    def _batch_object(self, batch: Batch) -> dict[str, Any]:
        complaint = {"object": "list", "data": [{"code": "invalid", "message": batch.complaint}]}
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/embeddings",
            "errors": complaint if batch.complaint else None,
            "input_file_id": batch.input_file,
            "status": batch.state,
            "output_file_id": batch.output_file,
            "error_file_id": batch.error_file,
            "created_at": int(batch.created),
            "metadata": json.loads(batch.mark),
        }

    def _operation(self, batch: Batch) -> dict[str, Any]:
        state = {
            "validating": "BATCH_STATE_PENDING",
            "in_progress": "BATCH_STATE_RUNNING",
            "completed": "BATCH_STATE_SUCCEEDED",
            "failed": "BATCH_STATE_FAILED",
            "expired": "BATCH_STATE_EXPIRED",
            "cancelled": "BATCH_STATE_CANCELLED",
        }.get(batch.state, "BATCH_STATE_UNSPECIFIED")
        operation: dict[str, Any] = {
            "name": batch.id,
            "metadata": {
                "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.EmbedContentBatch",
                "name": batch.id,
                "displayName": batch.mark,
                "state": state,
                "inputConfig": {"fileName": batch.input_file},
            },
            "done": batch.state in FINAL,
        }
        if batch.output_file:
            operation["metadata"]["output"] = {"responsesFile": batch.output_file}
            operation["response"] = {"responsesFile": batch.output_file}
        if batch.complaint:
            operation["error"] = {"code": 3, "message": batch.complaint}
        return operation

    def _page(self, objects: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
        """A page of two, so that everybody who lists must turn pages."""
        ids = [shown["id"] for shown in objects]
        start = ids.index(query["after"]) + 1 if "after" in query else 0
        page = objects[start : start + 2]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": start + 2 < len(objects),
        }

    def _list_gemini(self, kind: str, query: Mapping[str, str]) -> Reply:
        if "no-list" in self.faults:
            return _error(404, "not found", "NOT_FOUND")
        if kind == "batches":
            shown = [self._operation(batch) for batch in reversed(self.batches.values())]
        else:
            shown = [self._file_object(file_id) for file_id in self.files]
        start = int(query.get("pageToken", "0"))
        page: dict[str, Any] = {"operations" if kind == "batches" else "files": shown[start : start + 2]}
        if start + 2 < len(shown):
            page["nextPageToken"] = str(start + 2)
        return _json(page if shown else {})

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count:04d}"


@contextmanager
def serving(routes: BatchRoutes) -> Iterator[str]:
    """Serve on a port of this machine; gives the base URL."""
    handler = type("Handler", (_Handler,), {"routes": routes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="loopback-provider")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{'v1beta' if routes.dialect == 'gemini' else 'v1'}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    routes: BatchRoutes
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length // 2)
            if self.command == "POST" and "/files" in self.path:
                self.routes.at("uploading")
            body += self.rfile.read(length - len(body))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(self.routes.answer(self.command, self.path, headers, body))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        half = len(reply.body) // 2
        self.wfile.write(reply.body[:half])
        if reply.halfway:
            self.wfile.flush()
            self.routes.at(reply.halfway)
        self.wfile.write(reply.body[half:])

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing: tests read what the routes have recorded."""


def _parts(content_type: str, body: bytes) -> list[tuple[str | None, str | None, bytes]]:
    """Field name, file name and content of each part of a multipart body."""
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    assert message.is_multipart(), content_type
    parts = []
    for part in message.get_payload():
        name = part.get_param("name", header="content-disposition")
        parts.append((name, part.get_filename(), part.get_payload(decode=True)))
    return parts


def _json(payload: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(payload).encode())


def _error(status: int, message: str, code: str = "error") -> Reply:
    return _json({"error": {"message": message, "code": code, "type": code}}, status)


def _jsonl(lines: list[Any]) -> bytes:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
