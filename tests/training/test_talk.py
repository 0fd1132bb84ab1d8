"""Questions made by rule from conversations."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from training import conversations, talk

CHANCE = random.Random(3)
ANNA = talk._Person("Anna", "Anna's", "she", "her", "her")
ASKER = talk._person("I", CHANCE)


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("Have you ever been to Rome?", "Has Anna ever been to Rome?"),
        ("Cool! What do you want to do after you graduate?", "What does Anna want to do after she graduate?"),
        ("What is your favorite card game?", "What is Anna's favorite card game?"),
        ("Where are you going with your friends?", "Where is Anna going with her friends?"),
    ],
)
def test_a_question_to_somebody_becomes_one_about_him(asked: str, made: str) -> None:
    assert talk.ask_back(asked, ANNA, "Ben") == made


def test_whoever_keeps_the_notes_asks_about_himself() -> None:
    assert talk.ask_back("Have you ever been to Rome?", ASKER, "Ben") == "Have I ever been to Rome?"


@pytest.mark.parametrize(
    "asked",
    ["How are you doing today?", "Is it raining there now?", "Can you tell me more about it?", "You?"],
)
def test_a_question_that_is_about_nobody_is_none(asked: str) -> None:
    assert talk.ask_back(asked, ANNA, "Ben") is None


def questions_of(sentence: str) -> set[str]:
    return {talk.ask_about(sentence, ANNA, "Ben", random.Random(seed)) or "" for seed in range(60)}


def test_what_somebody_says_of_himself_becomes_a_question() -> None:
    assert "When did Anna sell her old car?" in questions_of("Yeah, I sold my old car last week.")
    assert "Who did Anna go to the market with?" in questions_of("I went to the market with my sister")
    assert "Where does Anna live?" in questions_of("I live in a small town")
    assert "Who is Anna's sister?" in questions_of("My sister is a nurse")
    assert "What is Anna planning?" in questions_of("I'm planning a trip to Spain")
    assert "When will Anna visit Ben's mother?" in questions_of("I will visit your mother")
    assert "Has Anna visited the museum twice?" in questions_of("I've visited the museum twice")
    assert questions_of("The weather was fine all day") == {""}


def test_a_conversation_gives_questions_with_their_answers_and_what_does_not_answer() -> None:
    said = [
        ("a", "Hi there, what did you do over the weekend?"), ("b", "I painted the fence with my brother yesterday."),
        ("a", "Nice. I bought a new bicycle for the long way to work."), ("b", "What colour is your new bicycle?"),
        ("a", "It is dark green, with a silver bell on it."), ("b", "I love that colour on old bicycles."),
        *((who, f"Let us talk about the weather number {day} again.") for day in range(20) for who in "ab"),
    ]  # fmt: skip
    made = list(
        talk.make_questions([talk.Turn(*one) for one in said], {}, random.Random(5), most=50, named=False)
    )

    painted = [one for one in made if "paint" in one.question]
    assert painted
    assert all("painted the fence" in one.passage for one in painted)
    assert all("painted the fence" not in other for one in painted for other in one.others)
    assert any(one.others for one in made)
    again = list(
        talk.make_questions([talk.Turn(*one) for one in said], {}, random.Random(5), most=50, named=False)
    )
    assert again == made


def test_each_source_is_read(tmp_path: Path) -> None:
    texts = [
        "Where do you live now?",
        "I live in a house near the harbour of Bergen.",
        "I moved to Oslo last year.",
    ]
    said = [("ab"[at % 2], text) for at, text in enumerate(texts * 4)]
    files = {
        "chitchat/dataset.json": {"1": {"messages": [[{"sender": who, "text": text}] for who, text in said]}},
        "topical/test.json": {"1": {"content": [{"agent": who, "message": text} for who, text in said]}},
        "qmsum/1.json": {
            "meeting_transcripts": [{"speaker": who, "content": f"{text} {{gap}}"} for who, text in said]
        },
        "pubmedqa/ori_pqal.json": {"1": {"QUESTION": "Does it help?", "CONTEXTS": ["It does."]}},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "changelog").mkdir()
    spoken = "".join(f"**{'Ann Lee' if who == 'a' else 'Bo Dahl'}:** {text}\n\n" for who, text in said)
    (tmp_path / "changelog" / "one.md").write_text(spoken, encoding="utf-8")
    (tmp_path / "acl").mkdir()
    paper = f"<paper><title>How birds find their way home</title><abstract>{'They remember. ' * 40}</abstract></paper>"
    (tmp_path / "acl" / "2020.x.xml").write_text(f"<volume>{paper}</volume>", encoding="utf-8")

    found = list(conversations.read_more(tmp_path, 1))

    assert {pair.source for pair in found} == set(conversations.MOST)
    assert any(pair.question.startswith(("Where does Bo live", "Does Bo live")) for pair in found)
    assert all(pair.language == "en" for pair in found)
