import pytest

from plainmind.base.model import Document
from plainmind.index.chunks import chunks_of, terms_of
from plainmind.index.plan import ChunkingSettings


def test_chunks_carry_where_they_come_from():
    document = Document("memory/2026-02-10.md", "memory", "# Network\n\nthe gateway moved\n", "2026-02-10")
    (chunk,) = chunks_of(document, ChunkingSettings())

    assert (chunk.path, chunk.source, chunk.ordinal, chunk.day) == (
        "memory/2026-02-10.md",
        "memory",
        0,
        "2026-02-10",
    )
    assert (chunk.start_line, chunk.end_line) == (1, 3)
    assert chunk.context == "Network"


def test_ids_of_notes_are_not_indexed_and_lines_stay_where_they_are():
    text = "- one <!-- m:01ARZ3NDEKTSV4RRFFQ69G5FAV -->\n- two"
    (chunk,) = chunks_of(Document("memory/a.md", "memory", text), ChunkingSettings())

    assert chunk.text == "- one\n- two"


@pytest.mark.parametrize(
    "drawing",
    [
        "## Drawing\n```compressed-json\nN4KAkARALgngDgUwgLgAQQQDwMYEMA2AlgC\n\nABF0qARibgAzAjDliBJuCAAt\n```\n%%",
        '# Drawing\n\n```json\n{\n\t"strokeColor": "#000"\n}\n```\n%%',
        '# Drawing\n```json\n{"strokeColor": 1}',
    ],
)
def test_of_a_drawing_only_its_words_are_indexed_and_lines_stay_where_they_are(drawing):
    text = "---\nexcalidraw-plugin: parsed\n---\n\n# Text Elements\nLogin page ^gLjw8zfC\n\n" + drawing
    chunks = chunks_of(Document("drawings/login.excalidraw.md", "memory", text), ChunkingSettings())
    indexed = "\n".join(chunk.text for chunk in chunks)

    assert "Login page" in indexed
    assert "strokeColor" not in indexed
    assert "N4KAk" not in indexed
    assert "ABF0q" not in indexed
    (words,) = [chunk for chunk in chunks if "Login page" in chunk.text]
    assert "Login page ^gLjw8zfC" in text.split("\n")[words.start_line - 1 : words.end_line]


def test_json_in_a_note_that_is_no_drawing_is_indexed():
    text = '# Drawing\n\n```json\n{"strokeColor": 1}\n```\n'
    (chunk,) = chunks_of(Document("memory/a.md", "memory", text), ChunkingSettings())
    beside = "---\nexcalidraw-plugin: parsed\n---\n# Drawing\nwords\n```json\n{}\n```\n"
    chunks = chunks_of(Document("memory/b.md", "memory", beside), ChunkingSettings())

    assert "strokeColor" in chunk.text
    assert "{}" in "\n".join(one.text for one in chunks)


def test_a_line_map_leads_back_to_the_original_lines():
    document = Document("sessions/a.jsonl", "sessions", "User: hi\nAssistant: hello", None, (4, 6))
    chunks = chunks_of(document, ChunkingSettings())

    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(4, 4), (6, 6)]


@pytest.mark.parametrize("strategy", ["markdown", "lines"])
def test_no_chunk_of_a_transcript_holds_two_messages(strategy):
    long = " ".join(f"sentence number {number} of a long answer." for number in range(40))
    document = Document(
        "sessions/a.jsonl", "sessions", f"User: hi\nAssistant: {long}\nUser: # thanks", None, (1, 2, 5)
    )
    chunks = chunks_of(document, ChunkingSettings(strategy=strategy, tokens=100))

    assert [chunk.start_line for chunk in chunks] == [1, *[2] * (len(chunks) - 2), 5]
    assert all(chunk.start_line == chunk.end_line for chunk in chunks)
    assert len(chunks) > 4
    assert "".join(chunk.text for chunk in chunks if chunk.start_line == 2) == f"Assistant: {long}"
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))


def test_a_dated_chunk_is_filed_under_its_day():
    dated = Document("memory/2026-02-10.md", "memory", "gateway", "2026-02-10")
    (chunk,) = chunks_of(dated, ChunkingSettings())

    assert {"day:2026-02-10", "month:2026-02", "year:2026"} <= set(terms_of(chunk))


def test_the_lines_strategy_can_be_chosen():
    settings = ChunkingSettings(strategy="lines", tokens=8, overlap=0)
    chunks = chunks_of(Document("memory/a.md", "memory", "some words here\n" * 10), settings)

    assert len(chunks) > 1
    assert settings.fingerprint == "lines/8/0"


def days_of(text, **fields):
    document = Document("memory/visits.md", "memory", text, **fields)
    return [
        (chunk.start_line, chunk.end_line, chunk.day) for chunk in chunks_of(document, ChunkingSettings())
    ]


def test_a_day_at_the_head_of_a_list_item_is_the_day_of_what_it_says():
    items = (
        "- 2026-11-13: the plumber\n  about the sink\n- **2026-11-02** the roofer\n- [x] 2026-11-02 tiles\n"
    )
    text = f"# Visits\n\n{items}- call back"

    assert days_of(text) == [(1, 2, None), (3, 4, "2026-11-13"), (5, 6, "2026-11-02"), (7, 7, None)]


@pytest.mark.parametrize(
    "line", ["- 2026-13-40: no day", "- 2026-11-130 x", "- the 2026-11-13 visit", "2026-11-13: no item"]
)
def test_what_only_looks_like_a_day_at_the_head_of_an_item_is_none(line):
    assert days_of(f"- milk\n{line}") == [(1, 2, None)]


def test_a_file_that_has_a_day_keeps_it_for_all_its_items():
    assert days_of("- 2026-11-13: the dentist", day="2026-11-01") == [(1, 1, "2026-11-01")]
