"""Questions without a subject are answered by a list; one that names a subject is looked for."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind import Memory
from plainmind.search.pages import may_be_open, parse
from plainmind.search.selection import days_alone, is_about_asker, is_about_news


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


@pytest.mark.parametrize(
    "question",
    [
        *("what did we say yesterday?", "What did I ask you yesterday?", "what did we speak about yesterday"),
        *("what did we decide yesterday?", "what did we work on yesterday", "what else happened yesterday?"),
        *("what's new since yesterday?", "remind me what we said yesterday", "what was said yesterday"),
        *("what changed since yesterday?", "recap of yesterday please", "How did it go yesterday?"),
        *("what did you tell me yesterday", "what have we learned yesterday?", "catch me up on yesterday"),
        *(
            "what did I get done yesterday?",
            "did we agree on anything yesterday?",
            "what have we chatted about yesterday",
        ),
        *("was war gestern?", "was habe ich gestern gemacht?", "was haben wir gestern gesagt?"),
        *(
            "Worüber haben wir gestern gesprochen?",
            "Was wurde gestern beschlossen?",
            "was gab es gestern Neues?",
        ),
        *(
            "Woran haben wir gestern gearbeitet?",
            "Was habe ich dich gestern gefragt?",
            "Was ist gestern sonst noch passiert?",
        ),
        *("¿Qué dijimos ayer?", "¿de qué hablamos ayer?", "¿Qué hicimos ayer?", "¿qué decidimos ayer?"),
        *("¿qué te pregunté ayer?", "recuérdame qué pasó ayer", "¿qué hay de nuevo desde ayer?"),
        *("qu'est-ce qu'on a dit hier ?", "de quoi avons-nous parlé hier ?", "qu'avons-nous décidé hier ?"),
        *("qu'est-ce que j'ai fait hier ?", "qu'est-ce qui s'est passé hier ?", "quoi de neuf depuis hier ?"),
        *(
            "cosa abbiamo detto 2026-11-17?",
            "di cosa abbiamo parlato 2026-11-17?",
            "cosa è successo 2026-11-17?",
        ),
        *("o que falamos 2026-11-17?", "o que aconteceu 2026-11-17?", "o que decidimos 2026-11-17?"),
        *("cosa è successo ieri?", "o que fizemos ontem?", "wat hebben we gisteren besloten?"),
        *("что было вчера?", "Что мы вчера решили?", "о чём мы говорили вчера?", "что ещё произошло вчера"),
        *(
            "wat hebben we 2026-11-17 besproken?",
            "wat is er 2026-11-17 gebeurd?",
            "waar hebben we het 2026-11-17 over gehad?",
        ),
        *(
            "昨天我们说了什么？",
            "我昨天问了你什么？",
            "昨天我们决定了什么？",
            "昨天还发生了什么？",
            "昨天我们讨论了哪些事情？",
        ),
        *(
            "昨日何を話しましたか？",
            "昨日何を言いましたか",
            "昨日私は何を聞いた？",
            "昨日決めたことは？",
            "昨日何をしましたか",
        ),
        *(
            "어제 우리 무슨 얘기 했어?",
            "어제 뭐라고 했지?",
            "어제 내가 뭘 물어봤지?",
            "어제 우리가 뭘 결정했지?",
        ),
    ],
)
def test_in_ordinary_words_too_a_question_about_a_day_and_nothing_else_is_known(question):
    asked = days_alone(parse(question, today=date(2026, 11, 18)))

    assert asked is not None
    assert asked.since == "2026-11-17"


@pytest.mark.parametrize(
    "question",
    [
        *("what did we decide about the gateway yesterday?", "what did we say about Go yesterday?"),
        *(
            "what happened at work yesterday?",
            "what did we say about the plan yesterday?",
            "what changed in the kitchen yesterday",
        ),
        *("what about the war yesterday", "what was new at Tern yesterday", "what did I ask Ben yesterday"),
        *(
            "what was decided on change requests yesterday",
            "what did we eat yesterday?",
            "the note about asking yesterday",
        ),
        *(
            "was hat Anna gestern gesagt?",
            "was haben wir gestern über den Krieg gesagt?",
            "was war gestern im Büro?",
        ),
        *(
            "¿qué dijo Ana ayer?",
            "¿qué decidimos ayer sobre el puerto?",
            "qu'a dit Anne hier ?",
            "de quoi Paul a parlé hier ?",
        ),
        *(
            "cosa ha detto Anna 2026-11-17?",
            "o que Ana falou 2026-11-17?",
            "wat heeft Anna 2026-11-17 gezegd?",
        ),
        *("cosa abbiamo detto ieri del porto?", "что вчера сказала Анна?", "что мы решили вчера про насос?"),
        *(
            "昨天安娜说了什么？",
            "昨天我们决定了网关的什么？",
            "昨日アンナは何を言いましたか",
            "昨日の電話で何を話した？",
            "어제 안나가 뭐라고 했지?",
        ),
    ],
)
def test_a_question_about_a_day_that_names_a_subject_is_looked_for(question):
    assert days_alone(parse(question, today=date(2026, 11, 18))) is None


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


@pytest.mark.parametrize(("today", "paths"), [(date(2026, 11, 18), ["17"]), (date(2027, 1, 9), ["17", "02"])])
def test_what_is_new_is_listed_from_as_long_ago_as_it_takes(tmp_path, today, paths):
    (tmp_path / "memory").mkdir()
    for day in ("01-05", "11-02", "11-17"):
        (tmp_path / "memory" / f"2026-{day}.md").write_text(f"# Day\n\n- Nothing happened on {day}.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        listed = memory.search("what's new?", today=today)

    assert [hit.path for hit in listed.hits] == [f"memory/2026-11-{day}.md" for day in paths]
    assert "newest, since" in listed.understood[0]
