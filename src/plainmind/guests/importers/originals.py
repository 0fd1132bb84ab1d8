"""Originals, the files of other programs: what a reader promises, how they are read, and how entries become ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError
from plainmind.base.extras import install_hint
from plainmind.base.model import sha256_bytes
from plainmind.base.value import field, value
from plainmind.files.jsonl import RawLine, forwards, open_plain_file
from plainmind.files.system import SYSTEM, read_range
from plainmind.sessions.entries import Entry, entries_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Protocol, TypeAlias

    import apsw
else:
    Protocol = object


@value
class Original:
    """One file of another program."""

    path: str
    agent: str | None = None  # whose it is, in a program that has several
    rank: int = 0  # of files that hold the same conversation, the lower one is the older part
    is_spare: bool = False  # a copy, worth reading only if no other file has the conversation


@value
class ReadPosition:
    """How far an original was read: where to go on, and how to tell that what was read is still there."""

    at: int = 0
    number: int = 0
    tail: str = ""  # names the bytes before `at`


@value
class ReadPiece:
    """One line, row or message of an original, in our words."""

    number: int  # counted from 1, as a person would
    place: ReadPosition  # where to go on behind it
    entries: tuple[Entry, ...] = ()  # with `id`; without `parentId` they follow each other
    damage: str | None = None  # why some of it could not be read
    is_curable: bool = False  # it may be readable next time, when something is installed


@value
class About:
    """What is known of a conversation before it is read."""

    id: str  # as its program calls it
    header: Entry = field(default_factory=dict)  # for the first line of our copy: timestamp, cwd, …
    fields: Entry = field(default_factory=dict)  # for its entry in the registry


class Conversation(Protocol):
    """A conversation in an original."""

    @property
    def about(self) -> About:
        """What is known of it beforehand."""

    def still_has(self, place: ReadPosition) -> bool:
        """Whether everything before a place is as it was: then reading may go on there."""

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Give what stands behind a place that it still has, or behind `ReadPosition()`, which is the beginning.

        Never raises for what the original says; raises PlainmindError when it cannot be read at all.
        """


class NothingToTake(PlainmindError):
    """A file that can be read, and holds no conversation of the kind; the message says what it is instead."""


class Reader(Protocol):
    """Reads one program's files, and changes none of them."""

    program: str
    looks_for: str  # in words, for the message about a folder without any

    def folders(self, path: str) -> list[str]:
        """Which folders to look through when this one is given."""

    def original(self, path: str, given: str) -> Original | None:
        """Tell by its name whether a file may hold a conversation; `given` is itself, or a folder above it."""

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """Open a file. Raises PlainmindError when it cannot be read."""


# --- where a copied entry came from, and the id that it gets every time it is read ---

FROM = "imported"  # of an entry: {"file": …, "line": …}
EXPORTED_BY = "exportedBy"  # of a registry's entry: whose export it was, where that can be told
FROM_WHERE = "importedFrom"  # of a header and of a registry's entry: {"program": …, "path": …, "id": …}


def text_in(found: object) -> str | None:
    """What another program wrote down, if it is a text that says something."""
    return found if isinstance(found, str) and found else None


def texts_in(found: Entry) -> Entry:
    """What of some facts is a text that says something."""
    return {name: text for name, text in found.items() if isinstance(text, str) and text}


def make_id(number: int, raw: bytes) -> str:
    """Name a line that has no id of its own: by its place and its bytes, so that it is the same at every reading."""
    return "x" + sha256_bytes(b"%d:%s" % (number, raw))[:20]


def number_id(entry_id: str, count: int) -> str:
    """Name the entries that one line becomes: its own id, then `….2`, `….3`."""
    return entry_id if count == 1 else f"{entry_id}.{count}"


def with_origin(entry: Entry, file: str, number: int) -> Entry:
    """Note from which file and line an entry was copied."""
    first = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    return first | entry | {FROM: {"file": file, "line": number}}


def line_of_origin(entry: Entry, file: str) -> int | None:
    """The line that an entry was copied from, if it was from this file."""
    mark = entry.get(FROM)
    if not isinstance(mark, dict) or mark.get("file") != file:
        return None
    number = mark.get("line")
    return number if isinstance(number, int) else None


# --- what may be kept of the words in an entry ---

_WORDS = ("message", "content", "summary")  # where an entry has words
_NAMES = frozenset(
    {"id", "type", "role", "toolCallId", "toolName", "name", "provider", "model", "stopReason"}
)


def clean_entry(entry: Entry, clean: Callable[[str], str]) -> Entry:
    """An entry of whose words only what may be kept is left."""
    return entry | {name: _cleaned(entry[name], clean) for name in _WORDS if name in entry}


def _cleaned(found: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(found, str):
        return clean(found)
    if isinstance(found, list):
        return [_cleaned(below, clean) for below in found]
    if isinstance(found, dict):
        return {name: below if name in _NAMES else _cleaned(below, clean) for name, below in found.items()}
    return found


# --- the content of messages, from the blocks of other programs to ours ---

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal")
_FILES = ("image", "input_image", "image_url", "document", "input_file", "file", "input_audio")
_CALLS = ("tool_use", "server_tool_use")


def blocks_of(content: object) -> list[Entry]:
    """Translate a message's content; what was in pictures and files stays in the original."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    blocks = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return [block for block in map(_block, blocks) if block]


def text_block(text: str) -> Entry:
    """A block of plain text."""
    return {"type": "text", "text": text}


def thinking_block(text: str) -> Entry:
    """What a model thought."""
    return {"type": "thinking", "thinking": text}


def call_block(call_id: object, name: object, arguments: object) -> Entry:
    """A model's call of a tool; arguments that stand in a string are read."""
    return {
        "type": "toolCall",
        "id": call_id if isinstance(call_id, str) else "",
        "name": name if isinstance(name, str) else "",
        "arguments": _arguments(arguments),
    }


def spoken(role: str, content: list[Entry], **more: object) -> Entry:
    """What a `user` or an `assistant` said; of what else is given, that which is a text is kept."""
    return {"type": "message", "message": {"role": role, "content": content, **texts_in(more)}}


def unspoken(kind: str, content: list[Entry]) -> Entry:
    """What stands in the user's name, and was said by no user."""
    return {"type": "custom_message", "customType": kind, "content": content, "display": False}


def tool_result(call_id: object, content: object, *, name: object = None, is_error: object = False) -> Entry:
    """A tool's answer, as a message of the role `toolResult`."""
    message: Entry = {"role": "toolResult", "toolCallId": call_id if isinstance(call_id, str) else ""}
    message |= texts_in({"toolName": name})
    return {
        "type": "message",
        "message": message | {"content": blocks_of(content), "isError": is_error is True},
    }


def with_name(body: Entry, entry_id: str, timestamp: object) -> Entry:
    """A body as an entry; a compaction keeps what follows it."""
    entry: Entry = {"type": body["type"], "id": entry_id, **texts_in({"timestamp": timestamp})}
    if body["type"] == "compaction":
        entry["firstKeptEntryId"] = entry_id
    return entry | body


def words_of(content: object) -> str:
    """The plain text in a message's content."""
    return "\n".join(block["text"] for block in blocks_of(content) if block.get("type") == "text")


def _block(block: Any) -> Entry | None:
    if isinstance(block, str):
        return text_block(block) if block else None
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    translate = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    return translate(block) if translate is not None else block


def _text(block: Entry) -> Entry | None:
    text = block.get("text", block.get("refusal"))
    return text_block(text) if isinstance(text, str) and text else None


def _thinking(block: Entry) -> Entry | None:
    text = block.get("thinking")
    return thinking_block(text) if isinstance(text, str) and text else None


def _call(block: Entry) -> Entry:
    return call_block(block.get("id"), block.get("name"), block.get("input"))


def _image(block: Entry) -> Entry:
    """Keep that there was a picture or a file, and of which kind: its bytes are no text."""
    source = block.get("source")
    found = source if isinstance(source, dict) else block
    kind = found.get("media_type", found.get("mimeType"))
    return {"type": "image", "mimeType": kind if isinstance(kind, str) else "", "isLeftOut": True}


def _arguments(given: object) -> object:
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        found = json.loads(given, parse_constant=str)
    except (ValueError, RecursionError):
        return {"input": given}
    return found if isinstance(found, dict) else {"input": given}


_BY_TYPE: dict[str, Callable[[Entry], Entry | None]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_FILES, _image),
    **dict.fromkeys(_CALLS, _call),
    "thinking": _thinking,
    "redacted_thinking": lambda _: None,  # only the provider can read it
}


# --- Zstandard, where a library for it is installed; none is needed for anything else ---

MOST_UNPACKED_BYTES = 1 << 30  # a small file can unpack to anything
_BLOCK_BYTES = 1 << 20
_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")

Opened: TypeAlias = "Callable[[IO[bytes]], IO[bytes]]"  # what reads the plain bytes of a packed file


class CannotUnpack(PlainmindError):
    """No library for Zstandard is installed, or the data is not that."""


def unpack(data: bytes, *, most: int = MOST_UNPACKED_BYTES) -> bytes:
    """Unpack what is small. Raises CannotUnpack."""
    from io import BytesIO

    return b"".join(_blocks(BytesIO(data), most))


@contextmanager
def decompress(fd: int) -> Iterator[int]:
    """Unpack a file, block by block, into one without a name, and give that. Raises CannotUnpack."""
    from tempfile import TemporaryFile

    with open(os.dup(fd), "rb") as packed, TemporaryFile() as file:
        packed.seek(0)
        file.writelines(_blocks(packed, MOST_UNPACKED_BYTES))
        file.flush()
        yield file.fileno()


def _blocks(packed: IO[bytes], most: int) -> Iterator[bytes]:
    opened = _library()
    left = most
    try:
        plain = opened(packed)
        while block := plain.read(_BLOCK_BYTES):
            left -= len(block)
            if left < 0:
                break
            yield block
    except Exception as error:  # each library has an error of its own
        raise CannotUnpack(f"it cannot be unpacked: {error}", hint="the file may be damaged") from error
    if left < 0:
        raise CannotUnpack(f"it unpacks to more than {most:,} bytes", hint="unpack it with `zstd -d` first")


def _library() -> Opened:
    for name in _LIBRARIES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        if name == "zstandard":
            # What was added to a packed file later is a frame of its own.
            return lambda packed: module.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        opened: Opened = module.ZstdFile
        return opened
    raise CannotUnpack(
        "it is compressed with Zstandard, and no library for that is installed",
        hint=f"install one and import again: {install_hint('zstd')}",
    )


# --- lines: read on from where the last reading ended, in bounded memory ---

# What is found in a line, its bytes and its number -> our entries.
Translate: TypeAlias = Callable[[Entry, bytes, int], "tuple[Entry, ...]"]

UNREADABLE = "not a JSON object"
PARTLY_READABLE = "damaged; what could be read of it was taken"
TOO_LONG = "longer than 16 MB"
_TAIL_BYTES = 1024
_FIRST_LINES = 64


@value
class JsonlConversation:
    """A file that is one conversation."""

    path: str
    about: About
    translation: Callable[[], Translate]  # a new one for each reading: some remember what they have read

    def still_has(self, place: ReadPosition) -> bool:
        """Whether the last line before a place is the same."""
        if place.at == 0:
            return True
        with _open_lines(self.path) as fd:
            return SYSTEM.fstat(fd).st_size >= place.at and _tail_before(fd, place.at) == place.tail

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Read the lines behind a place."""
        with _open_lines(self.path) as fd:
            translate = self.translation()
            for line in forwards(fd, start=after.at, number=after.number + 1):
                piece = _piece(fd, line, translate)
                if piece is not None:
                    yield piece


def lines_as_they_are(path: str) -> Iterator[ReadPiece]:
    """Every line of a file, as its program wrote it."""
    return JsonlConversation(path, About(""), lambda: _as_it_is).pieces(ReadPosition())


def _as_it_is(found: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:  # noqa: ARG001
    return (found,)


def first_entries(path: str, most: int = _FIRST_LINES) -> list[Entry]:
    """Read what stands in the first lines. Raises PlainmindError when the file cannot be read."""
    found: list[Entry] = []
    with _open_lines(path) as fd:
        for line in forwards(fd):
            found += entries_in(line.data).entries
            if line.number >= most:
                break
    return found


def _piece(fd: int, line: RawLine, translate: Translate) -> ReadPiece | None:
    read = entries_in(line.data)
    if not line.is_complete and not read.entries:
        return None  # it is still being written
    # A last line without newline is read again next time, with its newline.
    place = _place(fd, line) if line.is_complete else _place_before(fd, line)
    entries = tuple(
        entry
        for position, found in enumerate(read.entries)
        for entry in _translate(translate, found, line, position)
    )
    damage = TOO_LONG if line.is_too_long else None
    if read.is_damaged:
        damage = PARTLY_READABLE if read.entries else UNREADABLE
    return ReadPiece(line.number, place, entries, damage)


def _translate(translate: Translate, found: Entry, line: RawLine, position: int) -> tuple[Entry, ...]:
    """Translate; the second of two entries in a line whose newline was lost must not get the id of the first."""
    raw = line.data if position == 0 else b"%d:%s" % (position, line.data)
    return translate(found, raw, line.number)


def _place(fd: int, line: RawLine) -> ReadPosition:
    tail = _tail_before(fd, line.end) if line.is_too_long else _tail_of(line.data)
    return ReadPosition(line.end, line.number, tail)


def _place_before(fd: int, line: RawLine) -> ReadPosition:
    return (
        ReadPosition(line.start, line.number - 1, _tail_before(fd, line.start))
        if line.start
        else ReadPosition()
    )


def _tail_of(line: bytes) -> str:
    """Name the last bytes of a line."""
    return sha256_bytes(line[-_TAIL_BYTES:])[:16]


def _tail_before(fd: int, at: int) -> str:
    """Name the last bytes of the line that ends at a place; empty when none ends there."""
    before = read_range(SYSTEM, fd, max(0, at - 1 - _TAIL_BYTES), at)
    return _tail_of(before[:-1].rpartition(b"\n")[2]) if before.endswith(b"\n") else ""


@contextmanager
def _open_lines(path: str) -> Iterator[int]:
    """Open a transcript; a compressed one is unpacked into a file without a name."""
    with open_plain_file(path) as fd:
        if not path.endswith(".zst"):
            yield fd
            return
        with decompress(fd) as plain:
            yield plain


# --- a database in use, read without changing anything ---

MOST_COPIED_BYTES = 4 << 30
_TRIES = 5


@contextmanager
def open_untouched(path: str) -> Iterator[apsw.Connection]:
    """Open a database for reading: as it lies there if no program uses it, else a copy of it."""
    import apsw

    if _size(f"{path}-wal") == 0:
        connection = _connect(path)
        try:
            yield connection
        finally:
            connection.close()
        return
    # Reading a file in WAL mode writes to the index of the log: so we look at a copy.
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="plainmind-import-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        _copy_consistently(path, copy)
        connection = apsw.Connection(copy)
        try:
            yield connection
        finally:
            connection.close()


def _connect(path: str) -> apsw.Connection:
    from urllib.parse import quote

    import apsw

    # Immutable: no lock is taken and no file is made beside it.
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _copy_consistently(path: str, copy: str) -> None:
    """Copy a database and its log; once more if the log was moved into the database meanwhile."""
    if _size(path) > MOST_COPIED_BYTES:
        raise PlainmindError(
            f"{path} is in use and has {_size(path) / 1e9:,.1f} GB: too much to copy",
            hint="close the program that has it open, and import again",
        )
    for _ in range(_TRIES):
        before = _generation(path)
        _copy_file(f"{path}-wal", f"{copy}-wal")
        _copy_file(path, copy)
        if _generation(path) == before:
            return
    raise PlainmindError(
        f"{path} changes faster than it can be read",
        hint="stop the program that writes it for a moment, and import again",
    )


def _generation(path: str) -> tuple[int, int, bytes]:
    """What changes when the log is moved into the database: growing alone does not."""
    status = os.stat(path)
    try:
        with open(f"{path}-wal", "rb") as log:
            return status.st_size, status.st_mtime_ns, log.read(32)
    except FileNotFoundError:
        return status.st_size, status.st_mtime_ns, b""


def _copy_file(source: str, target: str) -> None:
    try:
        with open(source, "rb") as read, open(target, "wb") as written:
            while block := read.read(_BLOCK_BYTES):
                written.write(block)
    except FileNotFoundError:
        return


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


# --- one JSON document: read whole, up to a size, and copied message by message ---

MOST_DOCUMENT_BYTES = 1 << 29
_DECODER = json.JSONDecoder(strict=False, parse_constant=str)


@value
class WholeConversation:
    """A conversation that is read as a whole each time; what was read before is recognised."""

    about: About
    read: Callable[[], Iterable[ReadPiece]]

    def still_has(self, place: ReadPosition) -> bool:
        """Only of the beginning one can be sure: it may have changed anywhere."""
        return place == ReadPosition()

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:  # noqa: ARG002 (always the beginning)
        """All of it."""
        yield from self.read()


def listed_conversation(about: About, items: Sequence[object], translate: Translate) -> WholeConversation:
    """A conversation whose messages stand in a list."""
    return WholeConversation(about, partial(_pieces_of_list, items, translate))


def _pieces_of_list(items: Sequence[object], translate: Translate) -> Iterator[ReadPiece]:
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            yield ReadPiece(number, ReadPosition(), damage=UNREADABLE)
            continue
        raw = json.dumps(item, sort_keys=True, separators=(",", ":")).encode()
        yield ReadPiece(number, ReadPosition(), translate(item, raw, number))


@value
class StoredConversation:
    """A conversation in a database, of which nothing but a digest tells that it has changed; then it is read whole."""

    about: About
    digest: str
    items: Callable[[], Iterable[Entry]]  # its messages, in their order
    translate: Translate

    @property
    def _end(self) -> ReadPosition:
        return ReadPosition(1, 0, self.digest)

    def still_has(self, place: ReadPosition) -> bool:
        """Whether it is as it was read, or was not read yet."""
        return place in (ReadPosition(), self._end)

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Translate all messages, unless they were read before."""
        if after == self._end:
            return
        number = 0
        for number, item in enumerate(self.items(), 1):
            raw = json.dumps(item, sort_keys=True, separators=(",", ":")).encode()
            yield ReadPiece(number, self._end, self.translate(item, raw, number))
        yield ReadPiece(number + 1, self._end)


def read_document(path: str) -> object:
    """Read a JSON document. Raises PlainmindError when it is none, or too large."""
    with open_plain_file(path) as fd:
        size = SYSTEM.fstat(fd).st_size
        if size > MOST_DOCUMENT_BYTES:
            raise PlainmindError(
                f"{path} has {size / 1e6:,.0f} MB, and a JSON document is read whole",
                hint=f"split it into parts of at most {MOST_DOCUMENT_BYTES >> 20} MB",
            )
        data = read_range(SYSTEM, fd, 0, size)
    return decode_document(data, path)


def decode_document(data: bytes, path: str) -> object:
    """Read the bytes of a JSON document. Raises PlainmindError when they are none."""
    try:
        return _DECODER.decode(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise PlainmindError(
            f"{path} is not a JSON document: {error}", hint="it may be damaged, or still being written"
        ) from error


# --- which files to import ---

_LOGS = ("-wal",)  # of a database: what was written last stands there


def find_originals(reader: Reader, path: str) -> list[Original]:
    """List the files, in the order in which they are to be read. Raises NotFound when there are none."""
    path = os.path.abspath(path)
    if not os.path.lexists(path):
        raise NotFound(f"there is no {path}", hint=f"give a folder with {reader.looks_for}, or one file")
    if os.path.isdir(path):
        found = [
            original
            for folder in reader.folders(path)
            for file in _files_below(folder)
            if (original := reader.original(file, folder)) is not None
        ]
    elif os.path.isfile(path):
        original = reader.original(path, path)
        found = [original] if original is not None else []
    else:
        raise PathNotAllowed(f"{path} is neither a file nor a folder", hint="give a file or a folder")
    if not found:
        raise NotFound(
            f"there are no conversations of {reader.program} in {path}",
            hint=f"looked for {reader.looks_for}",
        )
    return sorted(found, key=lambda original: (original.is_spare, original.rank, original.path))


def folders_below(path: str, *names: str) -> list[str]:
    """Those folders of a program's own folder that are there; itself when there are none."""
    below = [os.path.join(path, name) for name in names]
    return [folder for folder in below if os.path.isdir(folder)] or [path]


def fingerprint(path: str) -> list[int]:
    """Tell a file from itself after a change, without reading it."""
    marks: list[int] = []
    for name in (path, *(path + log for log in _LOGS)):
        try:
            status = os.stat(name)
        except FileNotFoundError:
            continue
        marks += (status.st_ino, status.st_size, status.st_mtime_ns)
    return marks


def _files_below(folder: str) -> Iterator[str]:
    """Give the plain files, links not followed."""

    def refuse(error: OSError) -> None:
        raise PlainmindError(
            f"{error.filename} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error

    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(inside, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path
