"""What is written for the models is read as pairs, and what they are measured on is made from it."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jax", reason="the group `dev` has it")

from training import measured, natural, reranker, windows, written  # noqa: E402

DOCUMENT = {
    "lang": "en",
    "kind": "notes",
    "title": "boiler › Service",
    "lines": ["Installed in 2014.", "Piotr serviced it for £95.", "Pressure is 1.5 bar when cold.", "Quote: 2,850."],
    "q": [
        ["What did the last service cost?", [1], "p"],
        ["How old is it, and what would a new one cost?", [0, 3], "o"],
        ["¿Qué presión?", [2], "x", "es"],
    ],
}  # fmt: skip


def write(file: Path, *rows: object) -> None:
    with lzma.open(file, "wt", encoding="utf-8") as opened:
        opened.writelines(f"{json.dumps(row)}\n" for row in rows)


def test_an_answer_is_read_with_its_neighbours_and_beside_it_nothing_answers(tmp_path: Path) -> None:
    write(tmp_path / "notes.jsonl.xz", DOCUMENT)

    for seed in range(20):
        every = list(written.read_pairs(written.read_documents(tmp_path), seed))
        pairs = [pair for pair in every if pair.language == "en"]

        assert [pair.question for pair in every if pair.language == "es"] == ["¿Qué presión?"]
        assert [pair.question for pair in pairs] == [DOCUMENT["q"][at][0] for at in (0, 1, 1)]
        for pair, answer in zip(pairs, (1, 0, 3), strict=True):
            assert DOCUMENT["lines"][answer] in pair.passage
            assert pair.source == "written_notes"
        assert all("Piotr" not in other for other in pairs[0].others)
        assert len(pairs[0].others) == 3
        assert all("2014" not in other and "Quote" not in other for other in pairs[1].others)


def test_a_table_learns_from_every_language_and_from_each_two_wordings(tmp_path: Path) -> None:
    write(tmp_path / "notes.jsonl.xz", DOCUMENT)
    write(
        tmp_path / "families.jsonl.xz",
        {"same": [["en", "tap drips"], ["de", "Wasser läuft"], ["zh", "漏水"]]},
    )

    sides = list(written.read_sides(written.read_documents(tmp_path)))

    assert ("¿Qué presión?", "Pressure is 1.5 bar when cold.") in sides
    assert len(sides) == 4
    assert set(written.read_wordings(tmp_path)) == {
        ("tap drips", "Wasser läuft"), ("tap drips", "漏水"), ("Wasser läuft", "漏水"),
    }  # fmt: skip


def test_what_we_wrote_names_lines_that_are_there() -> None:
    documents = list(written.read_documents())

    assert len(documents) > 100
    for document in documents:
        for asked in document.questions:
            assert bool(asked.answers) != (asked.kind == "n") or asked.kind == "x"
            assert all(0 <= at < len(document.lines) for at in asked.answers), asked.text


def test_questions_of_people_name_the_sentence_that_they_marked(tmp_path: Path) -> None:
    text = "Ada came by train. Bob did not come. The dog, who was tired, slept."
    qas = [
        {"question": "Who did not come?", "answers": [{"text": "Bob", "answer_start": 19}] * 2},
        {
            "question": "Which is it?",
            "answers": [{"text": "Ada", "answer_start": 0}, {"text": "dog", "answer_start": 41}],
        },
    ]
    (tmp_path / "shifts").mkdir()
    (tmp_path / "shifts" / "reddit_v1.0.json").write_text(
        json.dumps({"data": [{"paragraphs": [{"context": text, "qas": qas}]}]}), "utf-8"
    )
    tales = tmp_path / "fairytales"
    tales.mkdir()
    (tales / "flax-story.csv").write_text(f'section,text\n1,"It bloomed."\n2,"{"Long. " * 200}"\n', "utf-8")
    (tales / "flax-questions.csv").write_text(
        "question_id,local-or-sum,cor_section,question\n1,local,1,What bloomed?\n2,local,2,Where?\n3,summary,1,Why?\n",
        "utf-8",
    )

    post, tale = natural.read_documents(tmp_path)

    assert post.lines == ("Ada came by train.", "Bob did not come.", "The dog, who was tired, slept.")
    assert [(one.text, one.answers) for one in post.questions] == [("Who did not come?", (1,))]
    assert [(one.text, one.answers) for one in tale.questions] == [("What bloomed?", (0,))]
    (pair,) = written.read_pairs([post], 1)
    assert "Bob" in pair.passage
    assert pair.others
    assert not any("Bob" in other for other in pair.others)


def test_what_is_written_as_plain_text_is_packed_and_read_again(tmp_path: Path) -> None:
    plain = """=== boiler › Service | en
1 Installed in 2014.
2 Piotr serviced it for £95.

--
p 2 What did the last service cost?
o 1,2 Who knows it, and since when?
x:ja 1 いつ?
n 0 What colour is it?
x:de 0 Wer hat ihn gekauft?
=== Ofen
1 Er zieht schlecht.
--
k 1 draught
"""
    (tmp_path / "notes.txt").write_text(plain, "utf-8")
    rows = list(written.parse(plain))
    write(tmp_path / "notes.jsonl.xz", *rows)

    first, second = written.read_documents(tmp_path)

    assert first.lines == ("Installed in 2014.", "Piotr serviced it for £95.")
    assert [(one.answers, one.kind, one.language) for one in first.questions] == [
        ((1,), "p", "en"), ((0, 1), "o", "en"), ((0,), "x", "ja"), ((), "n", "en"), ((), "x", "de"),
    ]  # fmt: skip
    assert second.title == "Ofen"
    assert [pair.question for pair in written.read_pairs([first], 1)] == [
        "What did the last service cost?", *["Who knows it, and since when?"] * 2, "いつ?",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="a line that is not there"):
        list(written.parse("=== a\n1 b\n--\np 2 b?\n"))
    with pytest.raises(ValueError, match="neither a line nor a question"):
        list(written.parse("=== a\n1 b\n--\np b?\n"))


def test_windows_hold_the_lines_that_answer(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    lines = [
        f"Day {number}: nothing but rain, and the {number}th page of a book about ships."
        for number in range(30)
    ]
    lines[20] = "The cat was found in the garden of a neighbour."
    (tmp_path / "memory" / "log.md").write_text("\n".join(lines), "utf-8")
    gold = [{"path": "memory/log.md", "line_start": 21, "line_end": 21}]
    asked = {"id": "1", "query": "where was the cat", "category": "paraphrase", "gold": gold}
    (tmp_path / "dev.jsonl").write_text(json.dumps(asked), "utf-8")
    model = Path(__file__).parents[2] / "src/plainmind/embed/model"

    measured.write_windows([("own", tmp_path, "dev")], model, tmp_path / "sets.xz")
    sets = windows.read_sets(tmp_path / "sets.xz")

    ((workspace,),) = sets.values()
    assert list(sets) == ["own_paraphrase"]
    ((question, kind, (piece,)),) = workspace["qs"]
    assert kind == "paraphrase"
    assert 1 <= len(piece) < len(workspace["windows"])
    cat = set(question) & set(workspace["windows"][piece[0]])

    def embed(texts: list[list[int]]) -> np.ndarray:
        return np.array([[len(cat & set(text))] for text in texts], np.float32)

    assert windows.recall([workspace], embed) == 1.0


def test_log_odds_go_back_to_the_results_that_were_read(tmp_path: Path) -> None:
    results = [
        {"worth": 0.1, "passage": f"p{at}", "rest": f"r{at}" if at == 0 else "", "holds": []}
        for at in range(3)
    ]
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps({"question": "?", "category": "", "pieces": 1, "results": results}), "utf-8")

    found = measured.said_of([file], np.array([1.0, 5.0, 2.0]), results=2)

    assert found["one"][1] == [[5.0, 2.0, None]]
    assert reranker.padded([np.array([1, 2])], 3)[0].tolist() == [[1, 2, 0]]
