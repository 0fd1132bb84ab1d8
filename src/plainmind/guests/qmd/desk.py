"""One index as a command line asks it: what the words say, which documents there are, which answer, and how well."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import RLock, made_once, pattern
from plainmind.base.value import record
from plainmind.files.safe_open import expand_user
from plainmind.guests.qmd.catalogue import Catalogue, Shelf, Whereabouts, known_indexes, whereabouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import SearchHit
    from plainmind.guests.qmd.documents import Changes, Files, Ledger, Listed
    from plainmind.guests.qmd.formats import Result
    from plainmind.memory.memory import Memory

# From here on a document answers, though it does not have all the words.
CERTAIN = 0.3
_MOST_RESULTS = 1000
_BEGINNING = 3  # letters that all forms of a word have in common


class Refusal(Exception):
    """Something that cannot be done; QMD says so on stderr, and its exit status is 1."""


# --- the words ---

_WITH_VALUE = frozenset(
    {
        "index", "context", "n", "min-score", "format", "collection", "name", "mask", "glob", "max-docs-per-batch",
        "max-batch-mb", "timeout", "l", "from", "max-bytes", "candidate-limit", "intent", "chunk-strategy", "port",
        "host",
    }
)  # fmt: skip
_SHORT = {"h": "help", "v": "version", "c": "collection", "f": "force", "C": "candidate-limit"}
_FORMATS = ("csv", "md", "xml", "files", "json")


@record
class Line:
    """A command line: words, options, and collections, which can be several."""

    words: list[str]
    options: dict[str, str]
    collections: list[str]

    def has(self, name: str) -> bool:
        """Whether an option is there."""
        return name in self.options

    def number(self, name: str, otherwise: int | None = None) -> int | None:
        """What an option says, if that is a whole number."""
        found = _NUMBER.match(self.options.get(name, ""))
        return int(found[0]) if found is not None else otherwise

    @property
    def format(self) -> str:
        """How to print."""
        given = self.options.get("format", "").strip().lower()
        if given:
            from plainmind.guests.qmd.formats import FORMATS

            if given not in FORMATS:
                raise Refusal(
                    f"Unknown --format value: {self.options['format']}\nValid: {', '.join(FORMATS)}"
                )
            return given
        return next((name for name in _FORMATS if name in self.options), "cli")


_NUMBER = pattern(r"\s*-?\d+")


def read_line(words: Iterable[str]) -> Line:
    """Read a command line as QMD does: what it does not know is let pass."""
    line = Line([], {}, [])
    following = iter(words)
    for word in following:
        if word == "--":
            line.words += following
        elif word.startswith("--"):
            name, is_given, given = word[2:].partition("=")
            if name in _WITH_VALUE and not is_given:
                given = next(following, "")
            _put(line, name, given)
        elif word.startswith("-") and len(word) > 1:
            name = _SHORT.get(word[1], word[1])
            if name in _WITH_VALUE:
                _put(line, name, word[2:].removeprefix("=") or next(following, ""))
            else:
                for letter in word[1:]:
                    _put(line, _SHORT.get(letter, letter), "")
        else:
            line.words.append(word)
    return line


def _put(line: Line, name: str, given: str) -> None:
    if name == "collection":
        line.collections.append(given)
    else:
        line.options[name] = given


# --- the index ---


class Desk:
    """One index, and the line that asks it."""

    def __init__(self, line: Line, where: Whereabouts | None = None) -> None:
        self.line = line
        self.making = RLock()
        self.where = where or whereabouts(os.environ, os.getcwd(), line.options.get("index") or None)

    @made_once
    def catalogue(self) -> Catalogue:
        """The collections."""
        return Catalogue(self.where)

    @made_once
    def ledger(self) -> Ledger:
        """What is known of the documents."""
        from plainmind.guests.qmd.documents import Ledger

        return Ledger(self.where)

    @made_once
    def files(self) -> Files:
        """The files of all collections."""
        from plainmind.guests.qmd.documents import Files

        for shelf in self.catalogue.outside:
            tell(
                f"Collection '{shelf.name}' is left out: {shelf.path} is outside of the project of this index."
            )
        return Files(tuple(self.catalogue.readable.values()))

    @made_once
    def look(self) -> tuple[list[Listed], dict[str, Changes]]:
        """All documents as they are now, and what has changed."""
        return self.ledger.refresh(self.files, tuple(self.catalogue.readable.values()))

    @property
    def documents(self) -> list[Listed]:
        """All documents, by collection and path."""
        return sorted(self.look[0], key=lambda document: (document.collection, document.path))

    def memory(self) -> Memory:
        """Our index of them."""
        from plainmind.files.system import SYSTEM, make_folders
        from plainmind.memory.memory import Memory

        home = self.where.home
        workspace = os.path.join(home, "workspace")
        make_folders(SYSTEM, workspace)
        return Memory.from_environment(
            os.environ,
            cwd=workspace,
            workspace=workspace,
            home=home,
            more_sources=[self.files],
            looks_around=False,
        )

    def shelf(self, name: str) -> Shelf:
        """A collection by its name. Raises Refusal."""
        found = self.catalogue.shelves.get(name)
        if found is None:
            raise Refusal(f"Collection not found: {name}")
        return found

    def address(self, document: Listed) -> str:
        """A document's name."""
        from plainmind.guests.qmd.formats import address

        return address(document, self.where.index)

    def path_shown(self, document: Listed) -> str | None:
        """A document's place on disk, if that is to be shown."""
        from plainmind.guests.qmd.formats import on_disk

        is_wished = self.line.has("full-path") and os.path.exists(document.real)
        return on_disk(document.real, os.getcwd()) if is_wished else None

    def body(self, document: Listed) -> str:
        """What a document says, now."""
        found = self.files.look_at(document.cited)
        return self.files.read(found)[0].text if found is not None else ""


def tell(text: str) -> None:
    """Say something that is no part of the answer."""
    sys.stderr.write(f"{text}\n")


# --- what is forgotten of a memory whose files are in collections, too ---


def indexes_with(memory: Memory, has_it: Callable[[str], bool]) -> list[str]:
    """Where the indexes are that still have a text which the files have no more."""
    return [desk.where.home for desk in _desks(memory) if _look_into(desk, has_it)]


def erase_forgotten(memory: Memory, has_it: Callable[[str], bool]) -> tuple[str, ...]:
    """Take forgotten text out of the indexes of collections, where it is not in the files any more; what failed."""
    remarks: list[str] = []
    for desk in _desks(memory):
        try:
            _erase(desk, has_it)
        except (PlainmindError, OSError) as error:
            remarks.append(
                f"the index of `plainmind qmd` may still have it: {error}; "
                f"delete `{desk.where.home}`, which the next `plainmind qmd` makes anew"
            )
    return tuple(remarks)


def _desks(memory: Memory) -> list[Desk]:
    return [Desk(Line([], {}, []), where) for where in known_indexes(memory.environ, memory.workspace)]


def _look_into(desk: Desk, has_it: Callable[[str], bool]) -> list[str]:
    from plainmind.memory.forget import outdated_paths

    with desk.memory() as indexed:
        return outdated_paths(desk.files, indexed.index.store, has_it)


def _erase(desk: Desk, has_it: Callable[[str], bool]) -> None:
    from plainmind.memory.forget import hashes_of_chunks, outdated_paths

    desk.ledger.erase(has_it)
    with desk.memory() as indexed, indexed.notes.erasures.run_alone():
        index, source = indexed.index, desk.files.source
        paths = outdated_paths(desk.files, index.store, has_it)
        if not paths and not index.has_remains:
            return
        hashes = hashes_of_chunks(index, source, paths)
        indexed.notes.tombstones.bury(hashes)
        index.forget_vectors(hashes)
        stamp = index.remains.stamp()
        index.store.erase(source, *paths)
        index.remains.clear(stamp)


# --- what answers ---


def search(desk: Desk, verb: str, questions: Sequence[str], names: Sequence[str], limit: int) -> list[Result]:
    """The best passage of each document that answers one of the questions, the best document first."""
    from plainmind.guests.qmd.formats import Result

    documents = {document.cited: document for document in desk.documents if document.collection in names}
    if not documents:
        return []
    others = len(desk.catalogue.readable) > len(names)
    paths = [_literally(name) for name in names] if others else []
    most = min(_MOST_RESULTS, 2 * limit + 10)
    deep = None if verb == "query" and not desk.line.has("no-rerank") else False
    best: dict[str, tuple[SearchHit, str]] = {}
    with desk.memory() as memory:
        for question in questions:
            asked = memory.index.search(
                question, scopes=_everything(), max_results=most, paths=paths, deep=deep, snippet_chars=400
            )
            for hit in asked.hits:
                if hit.path in documents and (hit.path not in best or best[hit.path][0].score < hit.score):
                    best[hit.path] = (hit, question)
    tests = {question: _word_test(question) for question in questions}
    results: dict[str, Result] = {}
    for path, (hit, question) in sorted(best.items(), key=lambda item: -item[1][0].score):
        if len(results) >= limit:
            break
        document = documents[path]
        body = desk.body(document)
        has_all = tests[question](body)
        if verb == "search" and hit.score < CERTAIN and not has_all:
            continue
        context = desk.catalogue.context_of(document.collection, document.path)
        first, last = (1, body.count("\n") + 1) if has_all else (hit.start_line, hit.end_line)
        result = Result(
            document, hit.score, body, context, first, last, hit.best_line, desk.path_shown(document)
        )
        results.setdefault(document.real, result)  # a file that is in two collections is found once
    return list(results.values())


def _everything() -> frozenset[str]:
    from plainmind.base.model import EVERY_SCOPE

    return EVERY_SCOPE


def _word_test(question: str) -> Callable[[str], bool]:
    """Make what tells whether a text has every word of a question that means something, in whatever form."""
    from plainmind.text.terms import document_terms, query_terms

    words, wanted = question.lower().split(), frozenset(query_terms(question).terms)
    beginnings = [term[:_BEGINNING] for term in wanted if term.isascii()]

    def has_all(text: str) -> bool:
        lower = text.lower()
        if all(word in lower for word in words):
            return True
        if not wanted or not all(beginning in lower for beginning in beginnings):
            return False  # most texts: those need not be taken apart
        return wanted <= frozenset(document_terms(text))

    return has_all


def _literally(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[{" else sign for sign in name)


_KINDS = ("lex", "vec", "hyde")
_PREFIXED = pattern(r"(?i)(lex|vec|hyde|intent|expand):\s*(.*)")


def questions_in(query: str) -> list[str]:
    """The questions of a query: itself, or those of its `lex:`, `vec:` and `hyde:` lines, words first."""
    lines = [(number, line.strip()) for number, line in enumerate(query.split("\n"), 1) if line.strip()]
    if len(lines) == 1 and not _PREFIXED.match(lines[0][1]):
        return [lines[0][1]]
    typed: list[tuple[int, str]] = []
    intents = 0
    for number, line in lines:
        found = _PREFIXED.fullmatch(line)
        if found is None:
            raise Refusal(
                f"Line {number} is missing a lex:/vec:/hyde:/intent: prefix. Each line in a query document must start"
                " with one."
            )
        kind, text = found[1].lower(), found[2].strip()
        if kind == "expand":
            return [_expanded(number, text, is_alone=len(lines) == 1)]
        if not text:
            raise Refusal(f"Line {number} ({kind}:) must include text.")
        intents += kind == "intent"
        if intents > 1:
            raise Refusal(f"Line {number}: only one intent: line is allowed per query document.")
        if kind != "intent":
            typed.append((_KINDS.index(kind), text))
    if not typed:
        raise Refusal("intent: cannot appear alone. Add at least one lex:, vec:, or hyde: line.")
    return [text for _, text in sorted(typed, key=lambda each: each[0])]


def _expanded(number: int, text: str, *, is_alone: bool) -> str:
    if not is_alone:
        raise Refusal(
            f"Line {number} starts with expand:, but query documents cannot mix expand with typed lines."
            " Submit a single expand query instead."
        )
    if not text:
        raise Refusal("expand: query must include text.")
    return text


# --- a document by its name ---

DOCID = pattern(r"""["']?#?([0-9a-fA-F]{6,})["']?""")


def find_document(desk: Desk, name: str) -> Listed | None:
    """A document by #docid, by qmd://…, by the end of its path, or by where it is on disk."""
    name = name.partition("?index=")[0] if name.startswith("qmd:") else name
    docid = DOCID.fullmatch(name)
    if docid is not None:
        return next((each for each in desk.documents if each.hash.startswith(docid[1].lower())), None)
    if name.startswith(("qmd:", "//")):
        name = f"qmd://{name.removeprefix('qmd:').lstrip('/')}"
    tests: tuple[Callable[[Listed], bool], ...] = (
        lambda each: f"qmd://{each.cited}" == name,
        lambda each: f"qmd://{each.cited}".endswith(name),
        lambda each: each.real == os.path.realpath(expand_user(name)),
    )
    return next((each for test in tests for each in desk.documents if test(each)), None)


def similar_paths(name: str, documents: Iterable[Listed]) -> list[str]:
    """The paths that differ from a name in at most five letters; five of them."""
    wanted = name.lower()
    near = sorted((_distance(each.path.lower(), wanted), each.path) for each in documents)
    return [path for distance, path in near if distance <= 5][:5]


def _distance(one: str, other: str) -> int:
    """How many letters must be changed to make one text of another."""
    row = list(range(len(other) + 1))
    for count, sign in enumerate(one, 1):
        before, row[0] = row[0], count
        for place, mark in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (sign != mark))
    return row[-1]


# --- how good the answers are ---

# The engines that QMD measures, and which command of ours, with which options, stands for each.
_ENGINES: Mapping[str, tuple[str, dict[str, str]]] = {
    "bm25": ("search", {}),
    "vector": ("vsearch", {}),
    "hybrid": ("query", {"no-rerank": ""}),
    "full": ("query", {}),
}
_LEAST_FOUND = 10
_MEASURES = (
    "precision_at_k",
    "recall",
    "recall_at_1",
    "recall_at_3",
    "recall_at_5",
    "mrr",
    "f1",
    "latency_ms",
)


def measure(line: Line, place: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Ask the questions of a file for QMD's `bench`, each in every way; results and averages, as QMD has them."""
    import json
    import time

    from plainmind.files.system import read_file

    try:
        fixture = json.loads(read_file(place))
        asked = fixture["queries"]
        for each in asked:
            _ = each["id"], each["query"], list(each["expected_files"])
    except OSError as error:
        raise Refusal(f"Cannot read {place}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(
            f"Invalid fixture: {place} needs 'queries' with id, query and expected_files"
        ) from error
    index = {"index": line.options["index"]} if line.options.get("index") else {}
    collection = (line.collections or [fixture.get("collection")])[0]
    desks = {name: Desk(Line([], {**index, **more}, [])) for name, (_, more) in _ENGINES.items()}
    known = desks["full"].catalogue.readable
    names = [desks["full"].shelf(str(collection)).name] if collection else list(known)
    if not any(document.collection in names for document in desks["full"].documents):
        raise Refusal("No indexed documents found.\nAdd a collection with 'qmd collection add' first.")
    results = []
    for each in asked:
        by_engine = {}
        for engine, (verb, _) in _ENGINES.items():
            by_engine[engine] = _measured(desks[engine], verb, names, each)
            tell(f"  {each['id']} / {engine}... {round(by_engine[engine]['latency_ms'])}ms")
        results.append(
            {"id": each["id"], "query": each["query"], "type": each.get("type"), "backends": by_engine}
        )
    summary = {engine: _averages([row["backends"][engine] for row in results]) for engine in _ENGINES}
    stamp = time.strftime("%Y-%m-%dT%H%M", time.gmtime())
    return {"timestamp": stamp, "fixture": place, "results": results, "summary": summary}


def _measured(desk: Desk, verb: str, names: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    import time

    expected, most = [str(name) for name in asked["expected_files"]], int(asked.get("expected_in_top_k") or 1)
    began = time.perf_counter()
    found = search(desk, verb, questions_in(str(asked["query"])), names, max(most, _LEAST_FOUND))
    spent = (time.perf_counter() - began) * 1000
    least = CERTAIN if verb == "vsearch" else 0.0
    files = [result.document.cited for result in found if result.score >= least]
    return {**_scores(files, expected, most), "latency_ms": spent, "top_files": files[:_LEAST_FOUND]}


def _scores(files: Sequence[str], expected: Sequence[str], most: int) -> dict[str, Any]:
    """How much of what was expected is found, and how early."""
    places = {
        name: next((at for at, file in enumerate(files, 1) if _is_same_file(file, name)), None)
        for name in expected
    }
    found = [at for at in places.values() if at is not None]
    total = len(expected) or 1
    precision = sum(at <= most for at in found) / min(most, total)
    recall = len(found) / total
    return {
        "precision_at_k": precision,
        "recall": recall,
        **{f"recall_at_{count}": sum(at <= count for at in found) / total for count in (1, 3, 5)},
        "mrr": 1 / min(found) if found else 0.0,
        "f1": 2 * precision * recall / (precision + recall) if found and precision else 0.0,
        "hits_at_k": sum(at <= most for at in found),
        "total_expected": len(expected),
        "matched_files": [name for name, at in places.items() if at is not None],
        "unmatched_expected_files": [name for name, at in places.items() if at is None],
    }


def _is_same_file(cited: str, expected: str) -> bool:
    """Whether a file is the one that is meant, which may be named from its collection on, or by less."""
    one, other = cited.casefold(), expected.removeprefix("qmd://").strip("/").casefold()
    return f"/{one}".endswith(f"/{other}")


def _averages(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {
        f"avg_{name.removesuffix('_at_k')}": sum(row[name] for row in rows) / len(rows) for name in _MEASURES
    }
