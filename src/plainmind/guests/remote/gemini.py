"""The wire of Gemini, which embeds questions and documents differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from plainmind.guests.net.address import split_base_url
from plainmind.guests.net.failures import NetFailure
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.batch_endpoint import (
    TAG_PREFIX,
    AnswerLine,
    JobView,
    as_unavailable,
    delete,
    id_at,
    jsonl,
    listing_page,
    pages,
    text_at,
    upload_multipart,
)
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.wire import (
    Mode,
    Request,
    Wire,
    WireAnswer,
    field_of,
    in_order,
    numbers,
    tokens_in,
)

_TASK_TYPES = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
# From the second generation on, the task stands in front of the text and `taskType` is not taken.
_TASK_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
_FIRST_GENERATION = ("gemini-embedding-001", "gemini-embedding-exp", "text-embedding-", "embedding-001")


class GeminiWire:
    """One text is asked for by `embedContent` when it is a question; documents go in batches."""

    name = "gemini"
    default_model = "gemini-embedding-001"
    default_base_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variables: tuple[str, ...] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    max_items = 100
    known_dims: Mapping[str, int] = {
        "gemini-embedding-001": 3072,
        "gemini-embedding-2": 3072,
        "gemini-embedding-2-preview": 3072,
        "text-embedding-004": 768,
    }
    prices: Mapping[str, float] = {
        "gemini-embedding-001": 0.15,
        "gemini-embedding-2": 0.20,
        "gemini-embedding-2-preview": 0.20,
    }

    def headers(self, key: str) -> Mapping[str, str]:
        """Show the key in Google's own header; never in the URL, which gets into logs."""
        return {"x-goog-api-key": key}

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:
        """One request in the batch for each text."""
        name = model.removeprefix("models/")
        requests = [embed_request(name, text, mode, dims) for text in texts]
        if mode == "query" and len(requests) == 1:
            return Request(f"models/{name}:embedContent", requests[0])
        return Request(f"models/{name}:batchEmbedContents", {"requests": requests})

    def answer(self, payload: object, count: int) -> WireAnswer:
        """Read `embedding` or `embeddings`, which are in the order of the requests."""
        if isinstance(payload, dict) and "embedding" in payload:
            rows: object = [payload["embedding"]]
        else:
            rows = field_of(payload, "embeddings")
        vectors = [numbers(field_of(row, "values")) for row in in_order(rows, count)]
        usage = payload.get("usageMetadata") if isinstance(payload, dict) else None
        return WireAnswer(vectors, tokens_in(usage, "totalTokenCount", "promptTokenCount"))


def embed_request(model: str, text: str, mode: Mode, dims: int | None) -> dict[str, Any]:
    """What one text is asked with, alone or in a batch; `model` without `models/`."""
    request: dict[str, Any] = {"model": f"models/{model}"}
    if model.startswith(_FIRST_GENERATION):
        request |= {"content": {"parts": [{"text": text}]}, "taskType": _TASK_TYPES[mode]}
    else:
        request |= {"content": {"parts": [{"text": _TASK_PREFIXES[mode] + text}]}}
    if dims is not None:
        request["outputDimensionality"] = dims
    return request


_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})


class GeminiBatches:
    """Jobs from a file of 2 GB at most, done within a day or two at half the price."""

    max_items: int = 50_000
    max_bytes: int = 200 * 1024 * 1024  # ours: the whole file goes up within one deadline
    price_factor: float = 0.5

    def __init__(self, wire: Wire, transport: Transport, settings: RemoteSettings) -> None:
        self._wire = wire
        self._transport = transport
        self._dims = settings.dims
        self._model = (settings.model or wire.default_model).removeprefix("models/")
        # `https://host/v1beta` has its files under `https://host/upload/v1beta` and `https://host/download/v1beta`.
        base = split_base_url(settings.base_url or wire.default_base_url, settings="remote")[1].rstrip("/")
        self._prefix, _, self._version = base.rpartition("/")

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""
        return jsonl({"key": hash, "request": embed_request(self._model, text, "document", self._dims)})

    def upload(self, tag: str, lines: Sequence[bytes], *, deadline: float) -> str:
        """Upload the input file under a name made of `tag`; returns its id."""
        about = {"file": {"displayName": TAG_PREFIX + tag, "mimeType": "application/jsonl"}}
        payload = upload_multipart(
            self._transport,
            f"{self._prefix}/upload/{self._version}/files?uploadType=multipart",
            subtype="related",
            parts=[
                (["Content-Type: application/json; charset=UTF-8"], [jsonl(about)]),
                (["Content-Type: application/jsonl"], lines),
            ],
            deadline=deadline,
        )
        return id_at(payload, "file", "name", what="uploaded file")

    def create(self, tag: str, file_id: str, *, deadline: float) -> JobView:
        """Start the job."""
        payload = {"batch": {"displayName": TAG_PREFIX + tag, "inputConfig": {"fileName": file_id}}}
        path = f"models/{quote(self._model, safe='')}:asyncBatchEmbedContent"
        try:
            shown = self._transport.json("POST", path, payload, deadline=deadline)
        except NetFailure as error:
            raise as_unavailable(error) from error
        return self._view(shown)

    def look(self, job_id: str, *, deadline: float) -> JobView:
        """See how far the job is."""
        return self._view(self._transport.json("GET", quote(job_id), deadline=deadline))

    def find(self, tag: str, file_id: str, *, deadline: float) -> JobView | None:
        """Look through all jobs for the one of this tag or file."""
        for shown in self._rows_of("batches", "operations", deadline):
            if (
                text_at(shown, "metadata", "displayName") == TAG_PREFIX + tag
                or text_at(shown, "metadata", "inputConfig", "fileName") == file_id
            ):
                return self._view(shown)
        return None

    def files_of(self, tag: str, *, deadline: float) -> list[str]:
        """Look through all files for those uploaded under this tag."""
        return [
            id_at(shown, "name", what="file")
            for shown in self._rows_of("files", "files", deadline)
            if text_at(shown, "displayName") == TAG_PREFIX + tag
        ]

    def cancel(self, job_id: str, *, deadline: float) -> None:
        """Ask for the end of the job."""
        self._transport.json("POST", f"{quote(job_id)}:cancel", {}, deadline=deadline)

    def delete(self, file_id: str, *, deadline: float) -> None:
        """Delete a file; one that is gone already is as good."""
        delete(self._transport, quote(file_id), deadline=deadline)

    def content_path(self, file_id: str) -> str:
        """Where `Transport.download` gets the file."""
        return f"{self._prefix}/download/{self._version}/{quote(file_id)}:download?alt=media"

    def read(self, line: Any) -> AnswerLine:
        """Read one line of an output file."""
        key = id_at(line, "key", what="request")
        answered = self._wire.answer(line.get("response"), 1)
        return AnswerLine(key, answered.vectors[0], answered.tokens or 0)

    def _rows_of(self, path: str, rows: str, deadline: float) -> Iterator[Any]:
        token = ""
        for _ in pages():
            page = listing_page(self._transport, f"{path}?pageSize=100{token}", path, deadline=deadline)
            found = page.get(rows) if isinstance(page, dict) else None
            yield from found if isinstance(found, list) else []
            following = text_at(page, "nextPageToken")
            if following is None:
                return
            token = f"&pageToken={quote(following, safe='')}"

    def _view(self, payload: Any) -> JobView:
        # The state stands in the operation's metadata; a batch shown by itself has it at the top.
        said = text_at(payload, "metadata", "state") or text_at(payload, "state") or "UNKNOWN"
        word = said.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        output = (
            text_at(payload, "response", "responsesFile")
            or text_at(payload, "metadata", "output", "responsesFile")
            or text_at(payload, "output", "responsesFile")
        )
        input_file = text_at(payload, "metadata", "inputConfig", "fileName")
        return JobView(
            job_id=id_at(payload, "name", what="job"),
            # `done` with an error and without a word that we know is an end too.
            ended=word in _ENDED or "error" in payload,
            said=word.lower(),
            complete=word == "SUCCEEDED",
            outputs=(output,) if output else (),
            files=tuple(file for file in (input_file, output) if file),
            trouble=text_at(payload, "error", "message"),
        )
