"""Each answer is shown once, with how many places have it; what a question left out is not shown."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.base.model import Chunk, Restriction
from plainmind.search.engine import may_be_open
from plainmind.search.pages import Page, RankedChunk, parse
from plainmind.search.selection import days_alone, each_once, is_about_asker, is_about_news, with_a_phrase
from plainmind.search.snippets import Snippet

SENTENCE = "Look at the inbox, the calendar and the weather, and write five lines."


class Read:
    def __init__(self, chunk):
        self.ranked = RankedChunk(chunk, 0.0, 0.0, 0.0)
        self.page = Page(chunk)


def snippet(path, text, best=0, *, day=None, source="memory", score=0.5):
    last = text.count("\n") + 1
    chunk = Chunk(path, source, 0, 1, last + 1, text + "\n", day=day)
    return Snippet(0, (Read(chunk), best), (1, last), text, score=score)


def shown(*snippets, most=6):
    """Where each answer is shown, and where else it stands."""
    return [
        (each.best[0].ranked.chunk.path, [other.best[0].ranked.chunk.path for other in each.also])
        for each in each_once(snippets, most)
    ]


def test_different_answers_are_left_alone():
    assert shown(snippet("a.md", "- tea"), snippet("b.md", "- coffee")) == [("a.md", []), ("b.md", [])]


def test_the_same_text_is_one_answer_and_the_newest_place_is_shown():
    first = snippet("1.md", f"- 08:00 {SENTENCE}", day="2026-11-01", score=0.9)
    second = snippet("2.md", f"* **08:05** {SENTENCE}", day="2026-11-02", score=0.8)
    third = snippet("0.md", f"- 2026-10-31 {SENTENCE}", day="2026-10-31", score=0.7)

    (only,) = each_once([first, second, third], 6)
    assert only is second
    assert (only.score, only.also) == (0.9, [first, third])


def test_a_note_without_a_day_is_shown_before_logs_and_conversations():
    log = snippet("log.md", SENTENCE, day="2026-11-02")
    talk = snippet("sessions/a", SENTENCE, source="sessions")
    note = snippet("MEMORY.md", SENTENCE)

    assert shown(talk, log, note) == [("MEMORY.md", ["log.md", "sessions/a"])]


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("- buy milk", "- Buy milk!", True),
        ("- buy 2 litres", "- buy 3 litres", False),
        ("- buy milk\n- call Anna about the roof", "- buy milk\n- sell the boat in spring", False),
        ("# Plan\n- buy milk\n- call", "- buy milk\n- call\n- and a great deal more of it", True),
        ("---", "---", False),
        ("# The very same long heading, which says nothing about the text below it\n- tea",
         "# The very same long heading, which says nothing about the text below it\n- coffee", False),
        ("# Only a heading", "# Only a heading", False),
        ("- 我们在上周五决定把备份搬到新的服务器", "- 我们在上周五决定把备份搬到新的服务器！\n- 别的", True),
    ],
)  # fmt: skip
def test_what_says_the_same(one, other, is_one):
    best = 1 if one.startswith("# Plan") else 0

    assert len(shown(snippet("a.md", one, best), snippet("b.md", other))) == (1 if is_one else 2)


def test_the_places_of_repeats_go_to_other_answers():
    again = [snippet(f"{number}.md", SENTENCE) for number in range(4)]

    found = shown(*again, snippet("b.md", "- b"), snippet("c.md", "- c"), snippet("a.md", SENTENCE), most=2)
    assert found == [("0.md", ["1.md", "2.md", "3.md"]), ("b.md", [])]
    assert shown(snippet("a.md", "- a"), snippet("b.md", "- b"), most=1) == [("a.md", [])]


def test_a_search_says_how_many_places_have_an_answer(tmp_path):
    (tmp_path / "memory").mkdir()
    for day in ("01", "02", "03"):
        text = f"# Day {day}\n\n## Morning check\n\n{SENTENCE}\n"
        (tmp_path / "memory" / f"2026-11-{day}.md").write_text(text)
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        result = memory.search("what does the morning check look at?", today=date(2026, 11, 16))
        (seen,) = memory.within(THE_OWNER).search("what does the morning check look at?").hits

    (hit,) = result.hits
    assert (hit.path, [str(place) for place in hit.also]) == (
        "memory/2026-11-03.md",
        ["memory/2026-11-02.md#L1-L5", "memory/2026-11-01.md#L1-L5"],
    )
    assert len(seen.also) == 2


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("what happened last Friday?", ("2026-11-13", "2026-11-13")),
        ("what did we do over the weekend", ("2026-11-14", "2026-11-15")),
        ("yesterday", ("2026-11-17", "2026-11-17")),
        ("was ist gestern passiert?", ("2026-11-17", "2026-11-17")),
        ("¿Qué pasó ayer?", ("2026-11-17", "2026-11-17")),
        ("昨天记了什么？", ("2026-11-17", "2026-11-17")),
        ("昨日のこと", ("2026-11-17", "2026-11-17")),
        ("지난주 금요일에 무슨 일이 있었지?", ("2026-11-13", "2026-11-13")),
        ("what did Anna do yesterday?", None),
        ("昨天的会议", None),
        ("昨日の会議", None),
        ("what happened last year", None),
        ("what did we talk about yesterday?", ("2026-11-17", "2026-11-17")),
        ("昨天我们聊了什么？", ("2026-11-17", "2026-11-17")),
        ("what did Anna talk about yesterday?", None),
    ],
)
def test_a_question_about_a_day_and_nothing_else_is_known(question, days):
    asked = days_alone(parse(question, today=date(2026, 11, 18)))

    assert (asked and (asked.since, asked.until)) == days


def test_what_was_on_a_day_is_listed_or_else_looked_for(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-11-17.md").write_text("# Tuesday\n\n- Painted the fence.\n")
    (tmp_path / "memory" / "2026-11-16.md").write_text("# Monday\n\n- What happened: it rained on Sunday.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        listed = memory.search("what happened yesterday?", today=date(2026, 11, 18))
        looked_for = memory.search("what happened on Sunday?", today=date(2026, 11, 18))

    assert [(hit.path, hit.score) for hit in listed.hits] == [("memory/2026-11-17.md", 1.0)]
    assert listed.understood == ("“yesterday” as 2026-11-17",)
    assert [hit.path for hit in looked_for.hits][:1] == ["memory/2026-11-16.md"]


@pytest.mark.parametrize(
    "question",
    [
        *(
            "What do you know about me?",
            "who am I?",
            "tell me about myself",
            "do you remember me?",
            "about me",
        ),
        *(
            "What do you actually know about me so far?",
            "What's stored about me?",
            "summarize what you know about me",
        ),
        *(
            "what do you know about the user?",
            "Was weißt du über mich?",
            "wer bin ich",
            "Was weißt du alles von mir?",
        ),
        *(
            "¿Qué sabes de mí?",
            "¿Quién soy?",
            "que sais-tu de moi ?",
            "qui suis-je ?",
            "cosa sai di me?",
            "chi sono?",
        ),
        *(
            "o que você sabe sobre mim?",
            "wat weet je over mij?",
            "你知道我什么？",
            "我是谁",
            "关于我你都知道什么？",
        ),
        *(
            "私について何を知っていますか",
            "私のことを教えて",
            "私は誰ですか",
            "나에 대해 뭘 알아?",
            "내가 누구야?",
        ),
    ],
)
def test_a_question_about_who_asks_and_nothing_else_is_known(question):
    assert may_be_open(question)
    assert is_about_asker(question)
    assert not is_about_news(question)


@pytest.mark.parametrize(
    "question",
    [
        *("what's new?", "what is the latest news?", "any news?", "what happened recently?", "anything new?"),
        *("what have I been doing lately?", "what did we talk about recently?", "was gibt es Neues?"),
        *(
            "¿qué hay de nuevo?",
            "quoi de neuf ?",
            "最近有什么新消息？",
            "最近何があった？",
            "요즘 무슨 일이 있었어?",
        ),
    ],
)
def test_a_question_about_what_is_new_and_nothing_else_is_known(question):
    assert may_be_open(question)
    assert is_about_news(question)
    assert not is_about_asker(question)


@pytest.mark.parametrize(
    "question",
    [
        *(
            "what do you know about my car?",
            "what did Anna say about me?",
            "who am I meeting tomorrow?",
            "tell me more",
        ),
        *(
            "what are my preferences?",
            "what does she know about me",
            "am I allergic?",
            "où suis-je né ?",
            "remind me",
        ),
        *("was weißt du über Mara?", "你知道我的生日吗", "私の誕生日はいつ", "나에 대해 안나가 뭐라고 했지"),
        *(
            "new",
            "new york",
            "what is the latest version",
            "what's the news about Anna?",
            "who is new in the team",
        ),
        *("最近谁来过", "最近のプロジェクト", "what is new in python 3.13"),
    ],
)
def test_a_question_that_names_a_subject_is_about_that(question):
    assert not is_about_asker(question)
    assert not is_about_news(question)


def test_what_is_known_of_who_asks_is_listed_as_its_notes_have_it(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Decisions\n\n- 2026-11-01: tea is bought loose.\n")
    (tmp_path / "USER.md").write_text("# Mara\n\nLives in Bergen.\n\n## Family\n\nA sister, Ida.\n")
    (tmp_path / "memory" / "2026-11-17.md").write_text("- What I know about me and you: nothing.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        listed = memory.search("What do you know about me?")

    assert [(hit.path, hit.score) for hit in listed.hits] == [("USER.md", 1.0), ("MEMORY.md", 1.0)]
    assert "Bergen" in listed.hits[0].snippet
    assert listed.understood == ("“What do you know about me?” as what the notes about you say",)


def test_who_asks_is_looked_for_where_no_note_is_about_them(tmp_path):
    (tmp_path / "walks.md").write_text("- You know me: I never take the bus.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        found = memory.search("What do you know about me?")

    assert [hit.path for hit in found.hits] == ["walks.md"]
    assert found.hits[0].score < 1.0
    assert found.understood == ()


@pytest.mark.parametrize(("today", "paths"), [(date(2026, 11, 18), ["17"]), (date(2027, 1, 9), ["17", "02"])])
def test_what_is_new_is_listed_from_as_long_ago_as_it_takes(tmp_path, today, paths):
    (tmp_path / "memory").mkdir()
    for day in ("01-05", "11-02", "11-17"):
        (tmp_path / "memory" / f"2026-{day}.md").write_text(f"# Day\n\n- Nothing happened on {day}.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        listed = memory.search("what's new?", today=today)

    assert [hit.path for hit in listed.hits] == [f"memory/2026-11-{day}.md" for day in paths]
    assert "newest, since" in listed.understood[0]


def test_only_snippets_that_show_a_phrase_or_stand_below_it_are_left():
    only = Restriction(phrases=("blue door",))
    with_it, without = snippet("a.md", "The BLUE  door opens."), snippet("b.md", "The door is blue.")

    assert list(with_a_phrase([with_it, without], only)) == [with_it]


def test_a_phrase_alone_is_found_word_for_word_or_not_at_all(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(
        "# Memory\n\n- The blue door opens.\n\n# House\n\n- The door is blue.\n"
    )
    with Memory(tmp_path / "notes", home=tmp_path / "home") as memory:
        (hit,) = memory.search('"blue door"').hits
        nothing = memory.search('"door blue"')

    assert "The blue door opens." in hit.snippet
    assert nothing.hits == ()
