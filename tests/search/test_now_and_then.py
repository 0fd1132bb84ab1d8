"""Of two lines about the same the one that holds now comes first, with the other beside it."""

from __future__ import annotations

import time
from datetime import date

import pytest
from tests.search.test_selection import snippet

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tools import ToolBox
from plainmind.search.pages import parse
from plainmind.search.selection import newer_of

TODAY = date(2026, 11, 16)
KEPT = "- The Lantern takes twelve crates each month."
TOLD = "- The Lantern cuts back to eight crates a month from now on."
NOISE = "# Stock\n\n- 1,204 bottles in the cellar, all labels are printed, the press was cleaned on Monday.\n"


def memory_with(tmp_path, **notes):
    folder = tmp_path / "workspace" / "memory"
    folder.mkdir(parents=True)
    for name, text in {"stock": NOISE, "weather": "# Weather\n\n- It rained for a week.\n", **notes}.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return Memory(str(folder.parent), home=str(tmp_path / "home"), config={"provider": "builtin"})


def found(memory, question):
    return [
        (hit.path.removeprefix("memory/"), [str(place) for place in hit.older])
        for hit in memory.search(question, today=TODAY, max_results=2).hits
    ]


def test_a_newer_line_that_tells_a_change_stands_before_what_was_kept(tmp_path):
    with memory_with(tmp_path, people=KEPT, **{"2026-11-04": TOLD}) as memory:
        hits = found(memory, "how many crates does The Lantern take each month?")

    assert hits == [("2026-11-04.md", ["memory/people.md#L1"]), ("people.md", [])]


def test_two_places_of_one_note_are_not_played_off_against_each_other(tmp_path):
    between = "".join(
        f"\n## Cellar {number}\n\n- Shelf {number} was counted twice.\n" for number in range(60)
    )
    with memory_with(tmp_path, people=f"{KEPT}\n{between}\n## Orders\n\n{TOLD}\n") as memory:
        hits = found(memory, "how many crates does The Lantern take each month?")

    assert {path for path, _ in hits} == {"people.md"}
    assert all(older == [] for _, older in hits)


def test_a_line_of_the_day_that_tells_no_change_stays_where_it_is(tmp_path):
    log = "- Loaded the van with crates for The Lantern, two of them wet."
    with memory_with(tmp_path, people=KEPT, **{"2026-11-04": log}) as memory:
        hits = found(memory, "how many crates does The Lantern take each month?")

    assert hits[0] == ("people.md", [])


@pytest.mark.parametrize(
    "question",
    ["which port does the gateway use now", "gateway port, latest", "is the gateway port still the same?"],
)
def test_of_two_logs_the_newer_one_answers_what_is_asked_about_now(tmp_path, question):
    logs = {
        "2026-02-03": "- Gateway port is 8883, the gateway wants TLS.",
        "2026-10-30": "- The gateway listens on another port: 9001.",
    }
    with memory_with(tmp_path, **logs) as memory:
        hits = found(memory, question)

    assert hits[0] == ("2026-10-30.md", ["memory/2026-02-03.md#L1"])


@pytest.mark.parametrize(
    ("kept", "told", "question"),
    [
        ("# Dentist\n\nOur dentist is Dr. Yilmaz.", "- Our dentist is now Dr. Fuchs.", "who is our dentist now?"),
        ("- The standup is at 9:30 in the small room.", "- The standup moved to 10:15.", "when is the standup now?"),
    ],
)  # fmt: skip
def test_one_name_is_enough_for_a_line_that_holds_from_its_day_on(tmp_path, kept, told, question):
    with memory_with(tmp_path, kept=kept, **{"2026-11-10": told}) as memory:
        path, older = found(memory, question)[0]

    assert path == "2026-11-10.md"
    assert len(older) == 1
    assert older[0].startswith("memory/kept.md#L")


TOLD_ANEW = [
    ("- 2025-03-02 The NAS is called atlas.", "- 2026-01-10 Renamed the NAS to hermes.", "what is the NAS called now?"),
    ("# Network\n\n- The wifi is called Otter-5.", "- The wifi has a new name: Badger.", "what's the wifi called now?"),
    ("- The NAS is called atlas.", "- The NAS is now hermes.", "what is the NAS called now?"),
    ("- Our team is called Falcons.", "- We renamed our team: Herons.", "what is our team called now?"),
    ("# Mia\n\n- Mia lives in Bonn.", "- Mia moved to Kiel.", "where does Mia live now?"),
    ("- We keep the spare key under the mat.", "- The spare key is behind the barometer since Monday.",
     "where do we keep the spare key now?"),
    ("- We use KeePass as password manager.", "- Switched the password manager to Bitwarden.",
     "which password manager do we use now?"),
    ("- Henk runs the shop.", "- Since May the shop is with Petra.", "who runs the shop now?"),
    ("- The cat's food is Felix.", "- The cat got other food: it was changed to Royal.", "what is the cat's food now?"),
    ("- 2025-03-02 Das NAS heißt atlas.", "- 2026-01-10 NAS umbenannt in hermes.", "wie heißt das NAS jetzt?"),
    ("- Mia wohnt in Bonn.", "- Mia ist nach Kiel umgezogen.", "wo wohnt Mia jetzt?"),
    ("- El servidor se llama atlas.", "- Cambiamos el nombre del servidor a hermes.",
     "¿cómo se llama ahora el servidor?"),
    ("- Le serveur s'appelle atlas.", "- Le serveur a été renommé hermes.",
     "comment s'appelle le serveur maintenant ?"),
    ("- NASの名前はatlas。", "- NASをhermesに改名した。", "NASの今の名前は？"),
    ("- NAS的名字是atlas。", "- NAS改名为hermes。", "NAS现在叫什么名字？"),
]  # fmt: skip


def best_line(hit):
    return hit.snippet.split("\n")[hit.best_line - hit.start_line]


@pytest.mark.parametrize("day", ["2026-10-30", "2026-05-05"])
@pytest.mark.parametrize(("kept", "told", "question"), TOLD_ANEW)
def test_what_is_told_anew_need_not_have_the_word_that_asks_for_it(tmp_path, kept, told, question, day):
    with memory_with(tmp_path, kept=kept, **{day: told}) as memory:
        first, *_ = memory.search(question, today=TODAY).hits

    assert best_line(first) == told
    assert [place.path for place in first.older] == ["memory/kept.md"]


@pytest.mark.parametrize(("kept", "told", "question"), TOLD_ANEW)
def test_what_is_told_anew_below_in_the_same_note_is_its_best_line(tmp_path, kept, told, question):
    with memory_with(tmp_path, kept=f"{kept}\n{told}\n") as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == told


@pytest.mark.parametrize("is_one_note", [False, True])
@pytest.mark.parametrize(
    ("kept", "told", "question"),
    [
        ("- The NAS is called atlas.", "- Renamed the NAS to hermes.", "what is the NAS called?"),
        ("- Mia lives in Bonn.", "- Mia moved to Kiel.", "where does Mia live?"),
        ("- Henk runs the shop.", "- Since May the shop is with Petra.", "who runs the shop?"),
        ("- Das NAS heißt atlas.", "- NAS umbenannt in hermes.", "wie heißt das NAS?"),
        ("- El servidor se llama atlas.", "- Cambiamos el nombre del servidor a hermes.",
         "¿cómo se llama el servidor?"),
        ("- Le serveur s'appelle atlas.", "- Le serveur a été renommé hermes.", "comment s'appelle le serveur ?"),
    ],
)  # fmt: skip
def test_a_question_in_the_present_is_answered_by_what_is_told_anew(
    tmp_path, kept, told, question, is_one_note
):
    notes = {"kept": f"{kept}\n{told}\n"} if is_one_note else {"kept": kept, "2026-10-30": told}
    with memory_with(tmp_path, **notes) as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == told


def test_in_the_present_a_log_that_tells_nothing_anew_stays_behind_what_was_kept(tmp_path):
    log = "- Painted the long ladder, the long ladder is wet."
    kept = "# The long ladder\n\n- The long ladder is in the shed."
    with memory_with(tmp_path, kept=kept, **{"2026-11-10": log}) as memory:
        first, second = found(memory, "where is the long ladder?")

    assert (first, second) == (("kept.md", []), ("2026-11-10.md", []))


def test_in_the_present_what_only_speaks_of_the_same_is_no_newer_answer(tmp_path):
    notes = {"kept": "- The gateway port is 8883.", "2026-11-10": "- The gateway port 9001 was scanned."}
    with memory_with(tmp_path, **notes) as memory:
        assert found(memory, "what is the gateway port?")[0] == ("kept.md", [])


def test_in_the_present_a_log_that_tells_anew_stands_before_an_older_log(tmp_path):
    logs = {"2025-03-02": "- The NAS is called atlas.", "2026-10-30": "- The NAS is called hermes now."}
    with memory_with(tmp_path, **logs) as memory:
        first, *_ = found(memory, "what is the NAS called?")

    assert first == ("2026-10-30.md", ["memory/2025-03-02.md#L1"])


@pytest.mark.parametrize(
    "question",
    [
        "what was the NAS called?",
        "what did we use before, what is known of the NAS called atlas that we had?",
    ],
)
def test_a_question_in_the_past_is_not(tmp_path, question):
    told = "- Renamed the NAS to hermes."
    with memory_with(tmp_path, kept="- The NAS is called atlas.", **{"2026-10-30": told}) as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == "- The NAS is called atlas."


@pytest.mark.parametrize("is_one_note", [False, True])
@pytest.mark.parametrize(
    ("kept", "told", "question"),
    [
        ("- The NAS is called atlas.", "- The NAS moved to the attic.", "what is the NAS called now?"),
        ("- The NAS is called atlas.", "- The NAS is now in the attic.", "what is the NAS called now?"),
        ("- The NAS is called atlas.", "- The NAS now has 12 TB.", "what is the NAS called now?"),
        ("- The NAS is called atlas.", "# The NAS renamed", "what is the NAS called now?"),
        ("- Mia lives in Bonn.", "- Mia changed the tyres.", "where does Mia live now?"),
        ("- Mia lives in Bonn.", "- Mia has had a cold since Monday.", "where does Mia live now?"),
        ("- Mia lives in Bonn.", "- Mia now works part time.", "where does Mia live now?"),
        ("- Henk runs the shop.", "- The shop has been closed since Monday.", "who runs the shop now?"),
        ("- Das NAS heißt atlas.", "- Das NAS steht seit Montag im Keller.", "wie heißt das NAS jetzt?"),
        ("- We keep the spare key under the mat.", "- The key of the boat moved to the hook.",
         "where do we keep the spare key now?"),
        ("- 2026-03-02 The wifi is called Otter-6.", "- 2026-01-10 Renamed the wifi to Otter-5.",
         "what is the wifi called now?"),
    ],
)  # fmt: skip
def test_a_newer_line_about_something_else_of_the_same_is_not_told_anew(
    tmp_path, kept, told, question, is_one_note
):
    notes = {"kept": f"{kept}\n{told}\n"} if is_one_note else {"kept": kept, "2026-01-10": told}
    with memory_with(tmp_path, **notes) as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == kept


def test_a_line_without_words_of_the_question_is_not_told_anew_by_any_other(tmp_path):
    pets = "- Our parrot is green and loud.\n- The van was moved to the yard.\n- The bikes changed owner.\n"
    with memory_with(tmp_path, pets=pets) as memory:
        first = memory.search("what is the colour of the bird?", today=TODAY).hits[0]

    assert best_line(first) == "- Our parrot is green and loud."


def test_a_line_of_a_day_above_one_without_a_day_does_not_tell_it_anew(tmp_path):
    with memory_with(tmp_path, mia="- Mia moved to Bonn in 2019.\n- Mia lives in Kiel.\n") as memory:
        first = memory.search("where does Mia live?", today=TODAY).hits[0]

    assert best_line(first) == "- Mia lives in Kiel."


@pytest.mark.parametrize(
    ("kept", "begin", "word", "question"),
    [
        ("- Mia lives in Bonn.", "- Mia", " in", "where does Mia live now?"),
        ("- Henk runs the shop.", "- The shop", " since", "who runs the shop now?"),
        ("- The NAS is called atlas.", "- The NAS", " changed", "what is the NAS called now?"),
        ("- The office was in Bonn.", "- The office", " office now", "where is the office now?"),
        ("- The coach was Lena.", "- The coach", " since", "who is the coach?"),
        ("- The coach was Lena.", "- The coach", " new coach", "who is the coach?"),
        ("- The recital was in May.", "- The recital", " old", "when is the recital?"),
    ],
)
def test_a_long_line_is_gone_through_once(tmp_path, kept, begin, word, question):
    with memory_with(tmp_path, kept=f"{kept}\n{begin}{word * (200_000 // len(word))}\n") as memory:
        memory.search("the weather")
        began = time.process_time()
        memory.search(question, today=TODAY, snippet_chars=250_000)

    assert time.process_time() - began < 1


def test_a_line_that_says_what_holds_now_stays_the_best_line_of_its_note(tmp_path):
    with memory_with(tmp_path, kept="- The NAS is now called atlas.\n- Renamed the NAS.\n") as memory:
        first = memory.search("what is the NAS called now?", today=TODAY).hits[0]

    assert best_line(first) == "- The NAS is now called atlas."


@pytest.mark.parametrize(
    "told", ["- The dentist ordered 28 mirrors instead of 25.", "- Asked at the dentist whether it rained."]
)
def test_a_heading_is_not_passed_by_a_line_that_says_nothing_of_now(tmp_path, told):
    kept = "# Dentist\n\nOur dentist is Dr. Yilmaz, Bergstrasse 4."
    with memory_with(tmp_path, kept=kept, **{"2026-11-10": told}) as memory:
        assert found(memory, "who is our dentist now?")[0] == ("kept.md", [])


def test_of_two_logs_the_better_one_answers_what_is_asked_about_then(tmp_path):
    logs = {
        "2026-02-03": "- Gateway port is 8883, the gateway wants TLS.",
        "2026-10-30": "- The gateway listens on another port: 9001.",
    }
    with memory_with(tmp_path, **logs) as memory:
        assert found(memory, "why does the gateway port want TLS")[0] == ("2026-02-03.md", [])


def test_what_was_kept_stands_before_a_log_of_months_ago(tmp_path):
    notes = {"rates": "- Day rate of Ada: 520.", "2025-03-02": "- Told Ada that the day rate is 450."}
    with memory_with(tmp_path, **notes) as memory:
        hits = found(memory, "what is Ada's current day rate?")

    assert hits[0] == ("rates.md", ["memory/2025-03-02.md#L1"])


def test_a_day_in_the_line_is_its_day():
    kept = snippet("MEMORY.md", "- Day rate: 520, since 1 April 2026")
    log = snippet("2025-12-18.md", "- From April the rate will be new", day="2025-12-18")

    assert newer_of(log, kept, today=TODAY, asks_for_recent=True) is kept


def test_lines_of_the_same_day_or_of_none_are_not_newer():
    one, other = snippet("a.md", "- now 5", day="2026-11-01"), snippet("b.md", "- now 6", day="2026-11-01")
    kept, too = snippet("c.md", "- now 5"), snippet("d.md", "- now 6")

    assert newer_of(one, other, today=TODAY, asks_for_recent=True) is None
    assert newer_of(kept, too, today=TODAY, asks_for_recent=True) is None


def test_a_heading_says_nothing_about_now():
    heading, log = (
        snippet("plan.md", "# The new plan"),
        snippet("l.md", "- the plan is new", day="2026-11-01"),
    )

    assert newer_of(heading, log, today=TODAY, asks_for_recent=True) is None


def test_agents_and_programs_are_told_what_is_newer(tmp_path):
    with memory_with(tmp_path, people=KEPT, **{"2026-11-04": TOLD}) as memory:
        tools = ToolBox(memory.within(THE_OWNER))
        answer = tools.call("memory_search", {"query": "how many crates does The Lantern take each month?"})

    assert answer.content["results"][0]["newerThan"] == ["memory/people.md#L1"]
    assert 'newer than "memory/people.md#L1"' in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "what is it set to now", "current limit", "do we still use it", "latest figure", "is Jo a member any more",
        "wie hoch ist es aktuell", "wohnt er immer noch dort", "wer macht das mittlerweile", "zurzeit gültig",
        "¿cuánto es ahora?", "¿sigue vigente?", "última lectura", "¿todavía lo usamos?",
        "quel est le prix actuel", "est-ce toujours valable", "maintenant", "dernier relevé",
        "现在是多少", "当前设置", "最新的价格", "还在用吗",
        "今の担当は", "まだ使っている？", "もう取った？", "最新の数字",
        "지금 얼마야", "현재 설정", "아직 쓰나", "요즘 누가 해",
    ],
)  # fmt: skip
def test_a_question_about_now_is_known_in_seven_languages(question):
    assert parse(question, today=TODAY).asks_for_recent


@pytest.mark.parametrize(
    "question", ["what did we decide in May", "wer war dabei", "¿quién vino?", "谁来了", "誰が来た"]
)
def test_a_question_about_then_is_not(question):
    assert not parse(question, today=TODAY).asks_for_recent


# Each note is called what is asked for, which alone is worth more than all that a newer line says.
OF_ITS_OWN_NOTE = [
    ("# Office\n\nThe office is at Torstrasse 1.", "- The office moved to Chausseestrasse 44.", "where is the office?"),
    ("# Office\n\nThe office is at Torstrasse 1.", "- The office is now Kaistrasse 9.", "where is the office?"),
    ("# Warehouse\n\nThe warehouse is at Hafenweg 3.", "- The warehouse moved to Kaistrasse 9.",
     "where is the warehouse now?"),
    ("# Coach\n\nThe coach is Lena Ott.", "- Malik Sow is the new coach, Lena Ott has left.", "who is the coach?"),
    ("# Trainerin\n\nUnsere Trainerin ist Lena Ott.", "- Neue Trainerin ist ab heute Mia Sow.",
     "wer ist unsere Trainerin?"),
    ("# Zahnarzt\n\nDer Zahnarzttermin ist am 20. November um 8 Uhr.",
     "- Der Zahnarzttermin wurde auf den 3. Dezember verschoben.", "wann ist der Zahnarzttermin?"),
    ("# Check-up\n\nThe next check-up is on 3 December.", "- The check-up was moved to 10 December.",
     "when is my next dental check-up?"),
    ("# Recital\n\nThe recital is on 3 December.", "- The recital is postponed to 10 December.",
     "when is the recital?"),
    ("# Cita\n\nLa cita del notario es el 3 de diciembre.", "- La cita del notario se ha aplazado al 10.",
     "¿cuándo es la cita del notario?"),
]  # fmt: skip


@pytest.mark.parametrize("day", ["2026-11-10", "2026-08-10"])
@pytest.mark.parametrize(("kept", "told", "question"), OF_ITS_OWN_NOTE)
def test_a_note_that_is_called_what_is_asked_for_is_told_anew_too(tmp_path, kept, told, question, day):
    name = kept.split("\n")[0].removeprefix("# ").lower()
    with memory_with(tmp_path, **{name: kept, day: told}) as memory:
        first, second, *_ = memory.search(question, today=TODAY).hits

    assert best_line(first) == told
    assert [str(place) for place in first.older] == [f"memory/{name}.md#L3"]
    assert first.score == second.score


def test_what_is_told_anew_may_come_after_others_of_the_same_name(tmp_path):
    others = {
        f"office-{number}": f"- The office has a {thing}, and the {thing} of the office is big."
        for number, thing in enumerate(["kitchen", "printer", "garden", "cellar"])
    }
    kept, told = (
        "# Office\n\nThe office is at Torstrasse 1.",
        "- In the end the office moved to Chausseestrasse 44.",
    )
    with memory_with(tmp_path, office=kept, **others, **{"2026-11-10": told}) as memory:
        first = memory.search("where is the office?", today=TODAY, max_results=1).hits[0]

    assert best_line(first) == told


@pytest.mark.parametrize(
    ("kept", "told", "question"),
    [
        ("# Office\n\nThe office is at Torstrasse 1.", "- The office coffee machine moved to the second floor.",
         "where is the office?"),
        ("# Office\n\nThe office is at Torstrasse 1.", "- The lock of the office was changed.", "where is the office?"),
        ("# Office\n\nThe office is at Torstrasse 1.", "- Moved the office printer to the cellar.",
         "where is the office now?"),
        ("# Coach\n\nThe coach is Lena Ott.", "- The coach has a new car.", "who is the coach?"),
        ("# Mia\n\nMia lives in Bonn.", "- Mia moved her desk to the window.", "where does Mia live?"),
        ("# Mia\n\nMia lives in Bonn.", "- The cat of Mia moved to Kiel.", "where is Mia?"),
        ("# Office\n\nThe office is at Torstrasse 1.", "- Mia moved to the office.", "where is the office?"),
        ("# Gym\n\nThe gym is in Linienstrasse.", "- The gym is now open until 23:00.", "where is the gym?"),
        ("# Summer party\n\nThe summer party is on 4 July.", "- Moved the chairs for the summer party to the shed.",
         "when is the summer party?"),
        ("# Bank\n\nOur bank is Sparkasse.", "- Switched the bank card to the new limit.", "what is our bank?"),
        ("# Coach\n\nThe coach is Lena Ott.", "- The coach moved to Kiel.", "who is the coach?"),
        ("# Recital\n\nThe recital is on 3 December.", "- The recital has a new programme.", "when is the recital?"),
    ],
)  # fmt: skip
def test_what_is_told_of_something_else_of_the_same_name_is_not_told_anew(tmp_path, kept, told, question):
    name = kept.split("\n")[0].removeprefix("# ").lower()
    with memory_with(tmp_path, **{name: kept, "2026-11-10": told}) as memory:
        assert found(memory, question)[0] == (f"{name}.md", [])


@pytest.mark.parametrize(
    ("over", "holds", "question"),
    [
        ("Until 2025-12-31 the rent was 980 €.", "Since 2026-01-01 the rent is 1,045 €.",
         "how much rent do we pay now?"),
        ("Until 2025-12-31 the rent was 980 €.", "Since 2026-01-01 the rent is 1,045 €.", "how much rent do we pay?"),
        ("Until 2025-12-31 the rent was 980 €.", "Since 2026-01-01 the rent is 1,045 €.", "what is our rent?"),
        ("Bis Ende 2025 betrug die Miete 700 Euro.", "Seit Januar 2026 beträgt die Miete 760 Euro.",
         "wie hoch ist die Miete?"),
        ("Old rent: 980 €.", "Current rent: 1,045 €.", "what is the rent?"),
        ("The rent was 980 €.", "The rent was raised to 1,045 € on 2026-02-01.", "how much is the rent?"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_above", [False, True])
def test_of_two_lines_of_a_note_the_one_that_holds_is_the_best(tmp_path, over, holds, question, is_above):
    text = f"{holds}\n{over}\n" if is_above else f"{over}\n{holds}\n"
    with memory_with(tmp_path, flat=text) as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == holds


@pytest.mark.parametrize(
    ("over", "holds", "question"),
    [
        ("Until 2025-12-31 the rent was 980 €.", "Since 2026-01-01 the rent is 1,045 €.",
         "what was the rent until 2025?"),
        ("Until 2025-12-31 the rent was 980 €.", "Since 2026-01-01 the garden is ours.", "what is the rent?"),
        ("The rent is 980 €, which was a surprise.", "Since 2027-01-01 the rent is 1,045 €.", "what is the rent?"),
        ("The rent is 980 €.", "The rent is raised to 1,045 € on 2027-02-01.", "what is the rent?"),
        ("The office is in Bonn.", "The office is moved to Kiel on 2027-02-01.", "where is the office?"),
    ],
)  # fmt: skip
def test_a_line_that_holds_of_something_else_or_later_is_not(tmp_path, over, holds, question):
    with memory_with(tmp_path, flat=f"{over}\n{holds}\n") as memory:
        assert best_line(memory.search(question, today=TODAY).hits[0]) == over


@pytest.mark.parametrize("today", [date(2026, 11, 19), date(2026, 11, 20), date(2026, 12, 1)])
@pytest.mark.parametrize("is_one_note", [False, True])
def test_the_day_of_an_appointment_is_not_the_day_on_which_it_was_written_down(tmp_path, today, is_one_note):
    kept, told = "- The check-up is on 20 November.", "- The check-up was moved to 3 December."
    notes = {"kept": f"{kept}\n{told}\n"} if is_one_note else {"kept": kept, "2026-11-09": told}
    with memory_with(tmp_path, **notes) as memory:
        assert best_line(memory.search("when is the check-up?", today=today).hits[0]) == told
