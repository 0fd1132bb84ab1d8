"""How each vendor is asked for vectors, one request at a time or in batch jobs: OpenAI, Voyage, Gemini.

A job is an uploaded file with one request a line, each named by the SHA-256 of its text, and a file of answers
in any order. Job and file carry our own `tag`, so that a job whose id we never got can be found again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol
from urllib.parse import quote

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.guests.net.address import split_base_url
from plainmind.guests.net.failures import AnswerUnreadable, ModelUnknown, NetFailure, RequestRefused, json_of
from plainmind.guests.net.transport import Transport, as_json
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.remote.config import RemoteSettings
    from plainmind.guests.remote.wire import Wire


# --- what the batch endpoints of every vendor can do ---


TAG_PREFIX = "plainmind-"
_NOT_THERE = {404, 405, 410, 501}
_MOST_PAGES = 50


@value
class JobView:
    """A job as its provider shows it. A word that we do not know counts as still at work."""

    job_id: str
    ended: bool
    said: str  # the provider's own word for the state
    complete: bool = False  # it ended as it should; single requests may have failed all the same
    outputs: tuple[str, ...] = ()  # files with answers; a job that ended early may have some too
    files: tuple[str, ...] = ()  # every file that belongs to the job, to be deleted at its end
    errors: str | None = None  # the file that says why single requests failed
    trouble: str | None = None  # why the job as a whole failed


@value
class AnswerLine:
    """One answer of an output file: whose it is, and the vector as it came, not yet checked."""

    hash: str
    values: Sequence[float]
    tokens: int = 0


class BatchEndpoint(Protocol):
    """One provider's way to run many requests as one job. Every call raises NetFailure."""

    max_items: int  # of one job
    max_bytes: int  # of its input file
    price_factor: float  # what a token costs here, against a single request

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""

    def upload(self, tag: str, lines: Sequence[bytes], *, deadline: float) -> str:
        """Upload the input file under a name made of `tag`; returns its id."""

    def create(self, tag: str, file_id: str, *, deadline: float) -> JobView:
        """Start the job. It must not be tried again before `find` has looked: it may have been started."""

    def look(self, job_id: str, *, deadline: float) -> JobView:
        """See how far the job is."""

    def find(self, tag: str, file_id: str, *, deadline: float) -> JobView | None:
        """Look through all jobs for the one of this tag or file. Raises Unlisted where jobs cannot be listed."""

    def files_of(self, tag: str, *, deadline: float) -> list[str]:
        """Look through all files for those uploaded under this tag. Raises Unlisted."""

    def cancel(self, job_id: str, *, deadline: float) -> None:
        """Ask for the end of the job; it ends some time later, with what was done by then."""

    def delete(self, file_id: str, *, deadline: float) -> None:
        """Delete a file; one that is gone already is as good."""

    def content_path(self, file_id: str) -> str:
        """Where `Transport.download` gets the file."""

    def read(self, line: Any) -> AnswerLine:
        """Read one line of an output file. Raises AnswerUnreadable, also for a request that failed."""


class Unlisted(NetFailure):
    """This provider does not let us list what we have there."""


class BatchesUnavailable(NetFailure):
    """There are no batch jobs at this address, or not for this model or account."""

    terminal = True


def jsonl(payload: object) -> bytes:
    """One line of strict JSON, with its line end."""
    return as_json(payload) + b"\n"


def upload_multipart(
    transport: Transport,
    path: str,
    *,
    subtype: str,
    parts: Sequence[tuple[Sequence[str], Sequence[bytes]]],
    deadline: float,
) -> Any:
    """Send parts (header lines, pieces of content) without joining them; returns the JSON of the answer."""
    boundary = secrets.token_hex(16)
    body: list[bytes] = []
    for headers, content in parts:
        body.append("\r\n".join([f"--{boundary}", *headers, "", ""]).encode())
        body.extend(content)
        body.append(b"\r\n")
    body.append(f"--{boundary}--\r\n".encode())
    answer = transport.send(
        "POST",
        path,
        body=body,
        length=sum(map(len, body)),
        content_type=f"multipart/{subtype}; boundary={boundary}",
        deadline=deadline,
    )
    if not answer.is_success:
        raise as_unavailable(transport.failure(answer))
    return json_of(answer, transport.host)


def as_unavailable(failure: NetFailure) -> NetFailure:
    """Take "not found" and "refused" at an upload or a creation as: there are no batch jobs here."""
    if isinstance(failure, ModelUnknown | RequestRefused):
        return BatchesUnavailable(
            f"no batch jobs here: {failure}",
            hint="set `remote.batch.enabled` to false; texts are embedded by single requests",
            status=failure.status,
        )
    return failure


def listing_page(transport: Transport, path: str, kind: str, *, deadline: float) -> Any:
    """One page of a listing. Raises Unlisted where the provider does not list such things."""
    try:
        return transport.json("GET", path, deadline=deadline)
    except NetFailure as error:
        if error.status in _NOT_THERE:
            raise Unlisted(f"{transport.host} does not list {kind}", status=error.status) from error
        raise


def delete(transport: Transport, path: str, *, deadline: float) -> None:
    """Delete what is at `path`, unless it is gone already."""
    answer = transport.send("DELETE", path, deadline=deadline)
    if not answer.is_success and answer.status not in _NOT_THERE:
        raise transport.failure(answer)


def text_at(payload: Any, *keys: str) -> str | None:
    """The text under nested keys, None when there is none."""
    for key in keys:
        payload = payload.get(key) if isinstance(payload, dict) else None
    return payload if isinstance(payload, str) and payload else None


def id_at(payload: Any, *keys: str, what: str) -> str:
    """The text under nested keys, which must be there."""
    found = text_at(payload, *keys)
    if found is None:
        raise AnswerUnreadable(f"the provider answered without the id of the {what}")
    return found


def pages() -> range:
    """How often a listing is turned at most: what we look for is young, and the newest come first."""
    return range(_MOST_PAGES)


# --- OpenAI, and every server that speaks like it: Ollama, LM Studio, vLLM, OpenRouter, llama-server ---


class OpenAIWire:
    """`packed` asks for base64, a quarter of the bytes; OpenAI itself has it, other servers know it or fail."""

    name = "openai"
    default_model = "text-embedding-3-small"
    default_base_url = "https://api.openai.com/v1"
    key_variables: tuple[str, ...] = ("OPENAI_API_KEY",)
    max_items = 2048
    known_dims: Mapping[str, int] = {
        "text-embedding-3-small": 1536,
        "text-embedding-3-large": 3072,
        "text-embedding-ada-002": 1536,
    }
    prices: Mapping[str, float] = {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
    }

    def __init__(self, *, packed: bool = False) -> None:
        self._packed = packed

    def headers(self, key: str) -> Mapping[str, str]:
        """Show the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:  # noqa: ARG002
        """Nothing but model and input, unless more was asked for: some servers refuse what they do not know."""
        payload: dict[str, Any] = {"model": model, "input": [*texts]}
        if dims is not None:
            payload["dimensions"] = dims
        if self._packed:
            payload["encoding_format"] = "base64"
        return Request("embeddings", payload)

    def answer(self, payload: object, count: int) -> WireAnswer:
        """Read `data[].embedding` by `data[].index`; some servers leave out the index, some the usage."""
        rows = in_order(field_of(payload, "data"), count)
        vectors = [numbers(field_of(row, "embedding")) for row in rows]
        usage = payload.get("usage") if isinstance(payload, dict) else None
        return WireAnswer(vectors, tokens_in(usage, "total_tokens", "prompt_tokens"))


_ENDED = frozenset({"completed", "failed", "expired", "cancelled", "canceled"})


class OpenAIBatches:
    """Jobs of 50,000 requests and 200 MB at most, done within a day at half the price."""

    max_items: int = 50_000
    max_bytes: int = 200 * 1024 * 1024
    price_factor: float = 0.5
    completion_window: ClassVar[str] = "24h"

    def __init__(self, wire: Wire, transport: Transport, settings: RemoteSettings) -> None:
        self._wire = wire
        self._transport = transport
        self._settings = settings

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""
        body = self._body(text)
        return jsonl({"custom_id": hash, "method": "POST", "url": "/v1/embeddings", "body": body})

    def upload(self, tag: str, lines: Sequence[bytes], *, deadline: float) -> str:
        """Upload the input file under a name made of `tag`; returns its id."""
        name = f"{TAG_PREFIX}{tag}.jsonl"
        file = f'Content-Disposition: form-data; name="file"; filename="{name}"'
        payload = upload_multipart(
            self._transport,
            "files",
            subtype="form-data",
            parts=[
                (['Content-Disposition: form-data; name="purpose"'], [b"batch"]),
                ([file, "Content-Type: application/jsonl"], lines),
            ],
            deadline=deadline,
        )
        return id_at(payload, "id", what="uploaded file")

    def create(self, tag: str, file_id: str, *, deadline: float) -> JobView:
        """Start the job."""
        payload = {
            "input_file_id": file_id,
            "endpoint": "/v1/embeddings",
            "completion_window": self.completion_window,
            "metadata": {"tag": TAG_PREFIX + tag},
            **self._parameters(),
        }
        try:
            return self._view(self._transport.json("POST", "batches", payload, deadline=deadline))
        except NetFailure as error:
            raise as_unavailable(error) from error

    def look(self, job_id: str, *, deadline: float) -> JobView:
        """See how far the job is."""
        return self._view(self._transport.json("GET", f"batches/{quote(job_id, safe='')}", deadline=deadline))

    def find(self, tag: str, file_id: str, *, deadline: float) -> JobView | None:
        """Look through all jobs for the one of this tag or file."""
        for shown in self._rows_of("batches", "batch jobs", deadline):
            if (
                text_at(shown, "metadata", "tag") == TAG_PREFIX + tag
                or text_at(shown, "input_file_id") == file_id
            ):
                return self._view(shown)
        return None

    def files_of(self, tag: str, *, deadline: float) -> list[str]:
        """Look through all files for those uploaded under this tag."""
        return [
            id_at(shown, "id", what="file")
            for shown in self._rows_of("files", "files", deadline)
            if text_at(shown, "filename") == f"{TAG_PREFIX}{tag}.jsonl"
        ]

    def cancel(self, job_id: str, *, deadline: float) -> None:
        """Ask for the end of the job."""
        self._transport.json("POST", f"batches/{quote(job_id, safe='')}/cancel", deadline=deadline)

    def delete(self, file_id: str, *, deadline: float) -> None:
        """Delete a file; one that is gone already is as good."""
        delete(self._transport, f"files/{quote(file_id, safe='')}", deadline=deadline)

    def content_path(self, file_id: str) -> str:
        """Where `Transport.download` gets the file."""
        return f"files/{quote(file_id, safe='')}/content"

    def read(self, line: Any) -> AnswerLine:
        """Read one line of an output file."""
        custom_id = id_at(line, "custom_id", what="request")
        response = line.get("response")
        if not isinstance(response, dict) or response.get("status_code") != 200:
            raise AnswerUnreadable("a request of the job failed")
        answered = self._wire.answer(response.get("body"), 1)
        return AnswerLine(custom_id, answered.vectors[0], answered.tokens or 0)

    def _body(self, text: str) -> Mapping[str, Any]:
        """What a request of this one text would send."""
        model = self._settings.model or self._wire.default_model
        return self._wire.request(model, [text], "document", self._settings.dims).payload

    def _parameters(self) -> dict[str, Any]:
        """What belongs to the job as a whole rather than to each line."""
        return {}

    def _rows_of(self, path: str, kind: str, deadline: float) -> Iterator[Any]:
        after = ""
        for _ in pages():
            page = listing_page(self._transport, f"{path}?limit=100{after}", kind, deadline=deadline)
            rows = page.get("data") if isinstance(page, dict) else None
            if not isinstance(rows, list) or not rows:
                return
            yield from rows
            if page.get("has_more") is not True:
                return
            after = f"&after={quote(id_at(rows[-1], 'id', what='last one listed'), safe='')}"

    def _view(self, payload: Any) -> JobView:
        said = text_at(payload, "status") or "unknown"
        output, errors = text_at(payload, "output_file_id"), text_at(payload, "error_file_id")
        files = (text_at(payload, "input_file_id"), output, errors)
        return JobView(
            job_id=id_at(payload, "id", what="job"),
            ended=said.lower() in _ENDED,
            said=said,
            complete=said.lower() == "completed",
            outputs=(output,) if output else (),
            files=tuple(file for file in files if file),
            errors=errors,
            trouble=_first_complaint(payload.get("errors")),
        )


def _first_complaint(errors: Any) -> str | None:
    rows = errors.get("data") if isinstance(errors, dict) else errors
    return text_at(rows[0], "message") if isinstance(rows, list) and rows else None


# --- Voyage: like OpenAI, except that it embeds questions and documents differently ---


class VoyageWire(OpenAIWire):
    """OpenAI's, but for the names of some parameters."""

    name = "voyage"
    default_model = "voyage-4-large"
    default_base_url = "https://api.voyageai.com/v1"
    key_variables: tuple[str, ...] = ("VOYAGE_API_KEY",)
    max_items = 1000
    known_dims: Mapping[str, int] = {
        "voyage-4-large": 1024,
        "voyage-4": 1024,
        "voyage-4-lite": 1024,
        "voyage-3-large": 1024,
        "voyage-3.5": 1024,
        "voyage-3.5-lite": 1024,
        "voyage-code-3": 1024,
        "voyage-finance-2": 1024,
        "voyage-law-2": 1024,
    }
    prices: Mapping[str, float] = {
        "voyage-4-large": 0.12,
        "voyage-4": 0.06,
        "voyage-4-lite": 0.02,
        "voyage-3-large": 0.18,
        "voyage-3.5": 0.06,
        "voyage-3.5-lite": 0.02,
        "voyage-code-3": 0.18,
        "voyage-finance-2": 0.12,
        "voyage-law-2": 0.12,
    }

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:
        """Say by `input_type` whether these are questions."""
        payload: dict[str, Any] = {"model": model, "input": [*texts], "input_type": mode}
        if dims is not None:
            payload["output_dimension"] = dims
        if self._packed:
            payload["encoding_format"] = "base64"
        return Request("embeddings", payload)


class VoyageBatches(OpenAIBatches):
    """Jobs of 100,000 texts at most, done within twelve hours at two thirds of the price."""

    max_items = 100_000
    price_factor = 0.67
    completion_window: ClassVar[str] = "12h"

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""
        return jsonl({"custom_id": hash, "body": {"input": self._body(text)["input"]}})

    def _parameters(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self._body("any").items() if name != "input"}
        return {"request_params": parameters}


# --- Gemini, which embeds questions and documents differently, too ---


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


_GEMINI_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})


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
            ended=word in _GEMINI_ENDED or "error" in payload,
            said=word.lower(),
            complete=word == "SUCCEEDED",
            outputs=(output,) if output else (),
            files=tuple(file for file in (input_file, output) if file),
            trouble=text_at(payload, "error", "message"),
        )


# --- all of them ---


_BATCHES: Mapping[str, Callable[[Wire, Transport, RemoteSettings], BatchEndpoint]] = {
    "openai": OpenAIBatches,
    "voyage": VoyageBatches,
    "gemini": GeminiBatches,
}


def endpoint_for(wire: Wire, transport: Transport, settings: RemoteSettings) -> BatchEndpoint:
    """The batch endpoints of a provider. Raises ConfigError when it has none."""
    batches = _BATCHES.get(wire.name)
    if batches is None:
        raise ConfigError(
            f"the provider `{wire.name}` has no batch jobs",
            key="remote.batch.enabled",
            hint="set `remote.batch.enabled` to false",
        )
    return batches(wire, transport, settings)
