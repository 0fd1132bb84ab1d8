"""The wire of OpenAI, and of every server that speaks like it: Ollama, LM Studio, vLLM, OpenRouter, llama-server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from plainmind.guests.net.failures import AnswerUnreadable, NetFailure
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
