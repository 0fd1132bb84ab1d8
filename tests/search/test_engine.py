from datetime import date

import pytest
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import (
    EVERY_SCOPE,
    Document,
    EmbeddedChunk,
    EmbedderIdentity,
    FileState,
    IndexFingerprint,
    SearchFilter,
)
from plainmind.index.chunks import chunks_of, embedded_text, terms_of
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.plan import ChunkingSettings
from plainmind.search.engine import Diversity, SearchEngine, SearchSettings

MEMORY = SearchFilter(frozenset({"memory"}), EVERY_SCOPE)
TODAY = date(2026, 11, 15)


def store_of(embedder, **texts):
    store = MemoryStore()
    with store.rebuild(IndexFingerprint(embedder.identity, "", "", 1), reason="test") as fresh:
        for name, text in texts.items():
            path = f"memory/{name}.md"
            chunks = chunks_of(Document(path, "memory", text), ChunkingSettings())
            vectors = embedder.embed_documents([embedded_text(chunk) for chunk in chunks])
            fresh.replace_file(
                FileState(path, "memory", "hash", 1, 1, 1),
                [
                    EmbeddedChunk(chunk, vector, terms_of(chunk))
                    for chunk, vector in zip(chunks, vectors, strict=True)
                ],
            )
    return store


def search(question, embedder=None, settings=None, where=MEMORY, explain=False, **texts):
    embedder = embedder or HashingEmbedder()
    engine = SearchEngine(store_of(embedder, **texts), embedder, settings or SearchSettings(min_score=0.0))
    return engine.search(question, where=where, today=TODAY, explain=explain)


class DownEmbedder(HashingEmbedder):
    def embed_query(self, text):
        raise EmbeddingError("the provider is down")


def test_when_the_embedder_is_down_words_answer_and_the_result_says_so():
    result = search("gateway", DownEmbedder(), a="the gateway runs here", b="nothing")

    assert result.mode == "keyword"
    assert result.degraded == ("vector search: the provider is down",)
    assert [hit.path for hit in result.hits] == ["memory/a.md"]


def test_without_keywords_meaning_answers_alone():
    settings = SearchSettings(min_score=0.0, use_keywords=False)
    result = search("the gateway runs here", settings=settings, a="the gateway runs here", b="other words")

    assert result.mode == "vector"
    assert result.hits[0].path == "memory/a.md"


def test_without_vectors_in_the_index_keywords_answer():
    class NoVectors(HashingEmbedder):
        identity = EmbedderIdentity("none", "none", dims=0)

        def embed_documents(self, texts):
            return [None for _ in texts]

    assert search("gateway", NoVectors(), a="the gateway").mode == "keyword"


def test_a_day_that_the_question_names_finds_what_is_of_that_day():
    texts = {"a": "# 2026-10-20\n\nthe boiler was repaired", "b": "# 2026-11-03\n\nthe boiler leaked"}

    assert search("boiler on 3 November 2026", **texts).hits[0].path == "memory/b.md"
    assert len(search("boiler on 1 September 2026", **texts).hits) == 2


@pytest.mark.parametrize("question", ["ERR-4711 gateway", "where did the gateway say ERR-4711", "gateway"])
@pytest.mark.parametrize("copies", [False, True])
def test_the_first_answers_are_the_same_however_many_are_wanted(question, copies):
    texts = {f"n{at:02}": f"the gateway number {chr(97 + at)} runs in room {at}" for at in range(20)}
    texts["z"] = "an old list of many other things\n\nERR-4711 and " + "nothing else " * 40
    if copies:
        texts |= {"c1": texts["n03"], "c2": texts["n03"], "c3": texts["z"]}
    settings = {wanted: SearchSettings(min_score=0.0, max_results=wanted) for wanted in (3, 7, 24)}
    few, some, many = (
        [hit.path for hit in search(question, settings=each, **texts).hits] for each in settings.values()
    )

    assert few == many[:3]
    assert some == many[:7]
    if "ERR" in question:
        assert "memory/z.md" in many or "memory/c3.md" in many


def test_a_source_that_may_not_be_seen_is_not():
    assert (
        search("gateway", where=SearchFilter(frozenset({"sessions"}), EVERY_SCOPE), a="the gateway").hits
        == ()
    )


def test_a_snippet_at_the_edge_of_a_chunk_is_filled_from_the_next_one():
    lines = [f"line {number} " + "filling words " * 10 for number in range(60)]
    lines[30] = "the quokka lives here"
    result = search("quokka", a="\n".join(lines))

    assert result.hits[0].start_line <= 31 <= result.hits[0].end_line
    assert len(result.hits[0].snippet) > 400


def test_every_stage_is_timed():
    assert {"embed", "keywords", "vectors", "read", "rank", "total"} <= search("x", a="x").timings.keys()


@pytest.mark.parametrize("max_results", [1, 3, 50])
def test_no_more_than_asked_for_comes_back(max_results):
    embedder = HashingEmbedder()
    store = store_of(embedder, **{f"n{number}": f"note {number} about gateways" for number in range(30)})
    engine = SearchEngine(store, embedder, SearchSettings(min_score=0.0))
    hits = engine.search("gateways", where=MEMORY, today=TODAY, max_results=max_results).hits

    assert len(hits) == min(max_results, 30)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_who_is_asked_about_is_more_likely_to_answer():
    result = search("What does Anna paint?", a="Bob: Anna will paint", b="Anna: Anna will paint")

    assert result.hits[0].path == "memory/b.md"


def test_what_people_said_counts_more_than_what_an_assistant_made_of_it():
    embedder = HashingEmbedder()
    store = MemoryStore()
    lines = {1: "Assistant: the gateway is blue", 2: "User: the gateway is blue"}
    with store.rebuild(IndexFingerprint(embedder.identity, "", "", 1), reason="test") as fresh:
        chunks = chunks_of(
            Document("sessions/a.jsonl", "sessions", "\n".join(lines.values())), ChunkingSettings()
        )
        vectors = embedder.embed_documents([embedded_text(chunk) for chunk in chunks])
        fresh.replace_file(
            FileState("sessions/a.jsonl", "sessions", "hash", 1, 1, 1),
            [
                EmbeddedChunk(chunk, vector, terms_of(chunk))
                for chunk, vector in zip(chunks, vectors, strict=True)
            ],
        )
    engine = SearchEngine(store, embedder, SearchSettings(min_score=0.0, snippet_chars=40))
    hits = engine.search(
        "gateway", where=SearchFilter(frozenset({"sessions"}), EVERY_SCOPE), today=TODAY
    ).hits

    assert hits[0].start_line == 2


def test_a_chinese_question_about_nothing_that_is_there_scores_low():
    hits = search("火星上有几个月亮", a="今天买了牛奶", b="网关在上海").hits

    assert all(hit.score < 0.35 for hit in hits)


def test_a_hit_can_say_why_it_is_there():
    lines = "we talked\nAnna: the gateway is at Hetzner\nyes"
    (hit,) = search("Where is Anna's gateway?", explain=True, a=lines).hits
    why = hit.explanation

    assert why["bestLine"] == 2
    assert why["matched"] == ["anna", "gateway"]
    assert why["coverage"] == why["speaker"] == 1.0
    assert why["nearby"] == 0.0
    assert why["score"] == round(hit.score, 4)
    assert why["passage"] > 0
    assert not why["exactToken"]
    assert not why["namedDay"]


def test_a_hit_without_any_of_the_words_says_so():
    settings = SearchSettings(min_score=0.0, use_keywords=False)
    (hit,) = search("the zebra", settings=settings, explain=True, a="the gateway").hits

    assert hit.explanation["matched"] == []
    assert hit.explanation["coverage"] == hit.explanation["passage"] == 0.0


def test_the_same_question_asked_again_has_the_same_answer():
    embedder = HashingEmbedder()
    texts = {f"n{number}": f"note {number}\nthe gateway is at Hetzner\nAnna: yes" for number in range(9)}
    engine = SearchEngine(store_of(embedder, **texts), embedder, SearchSettings(min_score=0.0))
    answers = [engine.search("Is Anna at Hetzner?", where=MEMORY, today=TODAY).hits for _ in range(4)]

    assert answers[0]
    assert all(answer == answers[0] for answer in answers)


def test_with_diversity_a_copy_steps_back():
    settings = SearchSettings(min_score=0.0, diversity=Diversity(enabled=True, trade_off=0.3))
    texts = {"a": "gateway one two three", "b": "gateway one two three", "c": "gateway"}

    assert [hit.path for hit in search("gateway", settings=settings, **texts).hits[:2]] == [
        "memory/c.md",
        "memory/a.md",
    ]


def test_the_notes_of_a_named_day_are_proposed_whatever_they_say():
    embedder = HashingEmbedder()
    store = MemoryStore()
    with store.rebuild(IndexFingerprint(embedder.identity, "", "", 1), reason="test") as fresh:
        for day in ("2026-02-10", "2026-02-11"):
            path = f"memory/{day}.md"
            chunks = chunks_of(Document(path, "memory", "bought milk", day=day), ChunkingSettings())
            fresh.replace_file(
                FileState(path, "memory", "hash", 1, 1, 1),
                [EmbeddedChunk(chunk, None, terms_of(chunk)) for chunk in chunks],
            )
    engine = SearchEngine(store, embedder, SearchSettings(min_score=0.0, use_vectors=False))
    hits = engine.search("what happened on 2026-02-10?", where=MEMORY, today=TODAY).hits

    assert [hit.path for hit in hits] == ["memory/2026-02-10.md"]


class Relabelled(HashingEmbedder):
    """The same numbers under another name: nothing but the fingerprint tells the two apart."""

    identity = EmbedderIdentity("other", "sha256-words", dims=64)


def test_a_vector_is_never_compared_with_those_of_another_embedder():
    store = store_of(HashingEmbedder(), gateway="The gateway moved to Hetzner.")

    def ask(embedder):
        engine = SearchEngine(store, embedder, SearchSettings())
        return engine.search("where is the gateway?", where=MEMORY, today=TODAY, min_score=0)

    own, foreign = ask(HashingEmbedder()), ask(Relabelled())
    assert (own.mode, own.degraded) == ("hybrid", ())
    assert (foreign.mode, len(foreign.hits)) == ("keyword", 1)
    assert foreign.degraded == (
        "vector search: the index was made with hashing sha256-words, and only its vectors compare",
    )


def test_of_two_that_say_the_same_the_one_in_the_words_of_the_question_comes_first():
    said = "the boiler did leak a little before we moved in, the neighbour from upstairs says"
    texts = {"a": "moving boilers leaks", "b": said} | {
        f"n{number}": "the garden was dug" for number in range(8)
    }

    words_alone = SearchSettings(min_score=0.0, use_vectors=False)
    hits = search("did the boiler leak before we moved in?", settings=words_alone, **texts).hits

    assert [hit.path for hit in hits[:2]] == ["memory/b.md", "memory/a.md"]


def test_what_says_little_beside_one_that_says_all_is_shown_all_the_same():
    texts = {
        "a": "gateway Mac Studio hall bakery",
        "b": "the bakery opens at seven, says the girl who sells bread",
    }

    hits = search("gateway Mac Studio hall bakery", **texts).hits

    assert [hit.path for hit in hits] == ["memory/a.md", "memory/b.md"]


VELOCITY = {
    "velocity": "# $v$\n\nHow fast something moves, and where to.\n\n"
    + "A paragraph about something else.\n\n" * 12,
    "escape-velocity": "# Escape velocity\n\nThe velocity that leaves a planet: velocity squared is twice its pull.",
    "relative-velocity": "# Relative velocity\n\nThe velocity of one seen from another that has a velocity.",
    "note-velocity": "Velocity of a note: how hard it is played. Velocity is volume.",
}


@pytest.mark.parametrize("question", ["velocity", "what is velocity?"])
def test_the_note_that_is_called_what_the_question_says_comes_before_those_that_speak_of_it(question):
    assert search(question, **VELOCITY).hits[0].path == "memory/velocity.md"


def test_a_question_that_says_less_than_a_name_finds_it_where_no_note_is_called_so_word_for_word():
    texts = {"note-velocity": VELOCITY["note-velocity"], "relative-velocity": VELOCITY["relative-velocity"]}

    assert search("velocity", **texts).hits[0].path == "memory/note-velocity.md"


def test_a_note_is_called_by_its_title_and_its_aliases_too():
    others = {name: text for name, text in VELOCITY.items() if name != "velocity"}
    texts = others | {"v17": "---\ntitle: Kinematics\naliases: [velocity]\n---\nHow fast something moves."}

    assert search("velocity", **texts).hits[0].path == "memory/v17.md"


def test_who_has_the_question_word_for_word_comes_before_those_that_have_its_words():
    texts = {
        "tenants": "# Tenants\n\nA user of a tenant is found by the tenant: no user, no tenant, not found.",
        "pooler": "# Pooler\n\n- Several lines about regions.\n- “Tenant or user not found” means the wrong region.",
    }

    assert search("Tenant or user not found", **texts).hits[0].path == "memory/pooler.md"


class _Comparing(HashingEmbedder):
    """Knows that a kitten is a cat."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def likeness_to(self, question):
        self.asked.append(question)
        return lambda texts: [float("kitten" in text) for text in texts]


def test_where_no_line_has_the_words_those_that_are_like_them_decide():
    embedder = _Comparing()
    notes = {f"n{number}": f"nothing of note, {number}" for number in range(4)}

    found = search("feline companions", embedder, **notes, pets="one kitten since May")

    assert embedder.asked == ["feline companions"]
    assert found.hits[0].path.endswith("pets.md")


def test_where_a_line_has_enough_of_the_words_nothing_is_compared():
    embedder = _Comparing()

    search(
        "where is the spare key", embedder, keys="the spare key is behind the barometer", pets="one kitten"
    )

    assert embedder.asked == []


def test_a_note_whose_name_has_all_words_of_a_short_question_comes_before_those_that_say_them_more_often():
    texts = {
        "linux-package-manager-logs": "They stand in /var/log.\n\n" + "Other things are said here.\n\n" * 20,
        "yum": "The logs of the package manager of this distribution; package logs, manager logs, logs of a package.",
        "apt": "A package manager. It logs what the package manager does, package by package.",
    }

    assert search("package manager logs", **texts).hits[0].path == "memory/linux-package-manager-logs.md"
    assert search(
        "where are the logs that a package manager writes every single night in spring kept", **texts
    ).hits


def test_where_the_question_names_a_day_nothing_is_compared_either():
    embedder = _Comparing()
    texts = {"a": "# 2026-11-13\n\na quiet day at the harbour", "pets": "one kitten since May"}

    found = search("feline companions on Friday", embedder, **texts)

    assert embedder.asked == []
    assert found.hits[0].path.endswith("a.md")


def test_headings_with_nothing_below_them_come_after_lines_that_say_something():
    texts = {
        "2026-11-03": "# 2026-11-03\n\n## Boiler of the house\n\n## Garden of the house",
        "house": "# House\n\nThe boiler leaked and was repaired.",
    }

    found = search("boiler of the house", **texts)

    assert [hit.path for hit in found.hits] == ["memory/house.md", "memory/2026-11-03.md"]


def test_a_heading_with_nothing_below_it_is_found_where_nothing_else_is():
    assert [hit.path for hit in search("zeppelin", a="# Zeppelin", b="the modem is blue").hits] == [
        "memory/a.md"
    ]


def test_a_list_keeps_its_order_but_for_headings_with_nothing_below_them():
    says = {"b": "# B\n\nThe modem is blue.", "d": "The lamp is red.", "e": "The hedge is cut."}

    found = search("path:memory/", a="# A", c="# C", **says)

    assert [hit.path for hit in found.hits] == [f"memory/{name}.md" for name in "bdeac"]


def test_a_line_of_tags_is_no_heading():
    texts = {"a": "# Soup of pumpkin", "b": "#soup #pumpkin"}

    assert [hit.path for hit in search("pumpkin soup", **texts).hits] == ["memory/b.md", "memory/a.md"]


def test_a_day_is_answered_by_what_was_written_on_it_before_headings_alone():
    texts = {"a": "# 2026-11-03", "b": "# 2026-11-03\n\nThe boiler was repaired."}

    found = search("what happened on 3 November 2026?", **texts)

    assert [hit.path for hit in found.hits] == ["memory/b.md", "memory/a.md"]
