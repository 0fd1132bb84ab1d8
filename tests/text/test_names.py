import pytest

from plainmind.text.front_matter import headings_of, name_as_written, name_terms, words_of_name, words_of_path
from plainmind.text.terms import LONGEST_NAME, document_terms, query_names, whole_names


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("shell/printer-setup.md", "printer setup"),
        ("Hash Table.md", "Hash Table"),
        ("notes/PrinterSetup.md", "Printer Setup"),
        ("notes/HTTPServer_notes.md", "HTTP Server notes"),
        ("zettel/202507151201 Chesterton's Fence.md", "Chesterton's Fence"),
        ("2026-03-12-the-frost.md", "the frost"),
        ("docs/0002-rust-for-the-planner.md", "rust for the planner"),
        ("打印机设置.md", "打印机设置"),
        ("memory/2026-03-12.md", ""),
        ("MEMORY.md", ""),
        ("docs/README.md", ""),
        ("memory/a.md", ""),
        ("Tagebuch 2026.md", "Tagebuch 2026"),
    ],
)
def test_a_file_is_called_by_the_words_of_its_name(path, name):
    assert words_of_name(path) == name


def test_folders_stand_before_the_name_unless_they_say_nothing():
    assert words_of_path("memory/postgres/who-blocks-whom.md") == "postgres who blocks whom"
    assert words_of_path("memory/2026-03-12.md") == ""


def test_the_shorter_a_name_the_more_each_of_its_words_counts():
    terms = name_terms(["cors", "how the printer works at home"], [], [])

    assert terms.count("=cor") > terms.count("=printer") > 0


def test_of_several_names_a_word_counts_by_the_shortest():
    assert name_terms(["hash table in plain words", "hash table"], [], []).count("=hash") == 6


def test_a_heading_counts_less_than_a_name_and_a_tag_less_than_a_heading():
    counts = [terms.count("=glue") for terms in (name_terms(["glue"], [], []), name_terms([], ["glue"], []))]
    counts.append(name_terms([], [], ["glue"]).count("=glue"))

    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 3


def test_a_sentence_is_no_name():
    assert name_terms([" ".join(f"word{number}" for number in range(20))], [], []) == []


def test_no_word_of_a_text_looks_like_a_part_of_a_name():
    assert not set(query_names(["hash"])) & set(document_terms("=hash name=hash a =hash= b"))


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Hash Table", "what is a hash table?"),
        ("SIGPIPE", "sigpipe"),
        ("OpenVPN Setup Guide", "openvpn setup guide"),
        ("Velocidad", "¿qué es la velocidad?"),
        ("L'algoritmo di Dijkstra", "cos'è l'algoritmo di Dijkstra"),
        ("打印机设置", "打印机设置"),
    ],
)
def test_a_question_may_be_the_whole_name_of_a_note(name, question):
    assert set(whole_names(name)) & set(whole_names(question))


@pytest.mark.parametrize(
    "question", ["binary search tree", "search", "binary search in python", "is it?", ""]
)
def test_a_question_that_says_more_or_less_is_not_its_name(question):
    assert not set(whole_names("Binary Search")) & set(whole_names(question))


def test_a_note_whose_name_says_more_is_called_otherwise_word_for_word():
    assert whole_names("velocity")[0] == whole_names("Velocity")[0] != whole_names("Note Velocity")[0]


def test_no_part_of_a_name_is_a_whole_one():
    assert not set(whole_names("hash")) & set(name_terms(["hash"], ["hash"], ["hash"]))


def test_a_sentence_is_nobodys_name():
    assert whole_names(" ".join(f"word{number}" for number in range(20))) == ()


def test_a_name_as_it_is_written_keeps_its_number_and_its_humps():
    assert name_as_written("os/3 - scheduling.md") == "3 scheduling"
    assert name_as_written("Mockito-ThenReturn.md") == "Mockito ThenReturn"


def test_a_passage_begins_with_its_headings():
    assert headings_of("# House\n\n## Boiler ##\npressure 1.5\n# not this") == ["House", "Boiler"]
    assert headings_of("pressure\n# House") == []
    assert headings_of("# House\n\n## Boiler\n") == ["House", "Boiler"]


def test_what_is_longer_than_any_name_is_no_name():
    words = [f"word{number}" for number in range(LONGEST_NAME + 1)]

    assert whole_names(" ".join(words), words) == ()
    assert whole_names(" ".join(words)) == ()
