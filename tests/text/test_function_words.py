import pytest

from plainmind.text.terms import query_terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("which allergies do I have now", ("allergi",)),
        ("how many kinds of screws must I get?", ("screw",)),
        ("what happened to the boiler", ("boiler",)),
        ("Wo dreht man in unserem Heim die Leitung zu", ("dreht", "heim", "leitung")),
        ("wann ist wieder eine Spritze fällig?", ("spritz", "fallig")),
        ("¿Quién cuida al perro cuando nos vamos de vacaciones?", ("cuida", "perro", "vacacion")),
        ("où sont les clés de la voiture", ("cles", "voitur")),
        ("扁豆咖喱怎么做", ("扁豆", "豆咖", "咖喱")),
        ("我们现在的房租是多少", ("房租",)),
        ("台所の電球はどこで買った？", ("台所", "電球", "買っ")),
        ("강아지는 누가 봐 주나요?", ("강아", "아지")),
    ],
)
def test_words_that_carry_nothing_are_not_looked_for(question, terms):
    found = query_terms(question).terms

    assert found[: len(terms)] == terms
    assert len(found) <= len(terms) + 2


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("cos'è il fattoriale", ("fattorial",)),
        ("come funziona l'algoritmo di Dijkstra", ("funziona", "algoritmo", "dijkstra")),
        ("dov’è la chiave dell’armadio", ("chiav", "armadio")),
        ("qu'est-ce que docker compose", ("docker", "compos")),
        ("quelle est l'adresse du serveur ?", ("adress", "serveur")),
        ("quand est-ce que j'ai installé Moodle", ("install", "moodl")),
        ("où est l'état-major", ("etat-major", "etat", "major")),
    ],
)
def test_such_words_are_not_looked_for_either_where_they_are_written_together_with_others(question, terms):
    assert query_terms(question).terms == terms


def test_a_question_of_such_words_alone_still_looks_for_them():
    assert query_terms("how many now").terms == ("mani", "now")
    assert query_terms("现在").terms == ("现在",)


def test_an_english_word_that_another_language_uses_as_a_function_word_carries_something():
    assert query_terms("die hard").terms == ("die", "hard")
    assert query_terms("son of Marek").terms == ("son", "marek")
    assert query_terms("the war museum").terms == ("war", "museum")
