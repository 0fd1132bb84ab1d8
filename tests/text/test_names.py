import pytest

from plainmind.text.front_matter import headings_of, name_terms, words_of_name, words_of_path
from plainmind.text.terms import document_terms, query_names


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


def test_a_passage_begins_with_its_headings():
    assert headings_of("# House\n\n## Boiler ##\npressure 1.5\n# not this") == ["House", "Boiler"]
    assert headings_of("pressure\n# House") == []
    assert headings_of("# House\n\n## Boiler\n") == ["House", "Boiler"]
