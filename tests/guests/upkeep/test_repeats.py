"""The same words in another order say the same, or the opposite."""

from __future__ import annotations

import pytest

from plainmind.guests.upkeep.repeats import turns_round


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna reports to Boris on Fridays", "Boris reports to Anna on Fridays"),
        ("The Berlin office pays the Vienna office", "The Vienna office pays the Berlin office"),
        ("Data is copied from Postgres to the lake", "Data is copied from the lake to Postgres"),
        ("Ben takes two pills at noon and one at night", "Ben takes one pill at noon and two at night"),
        ("The cable is 3 m long, the pole is 5 m long", "The cable is 5 m long, the pole is 3 m long"),
        ("Ada calls Ben", "Ada is called by Ben"),
        ("Two different tasks get different rows", "Two different tasks get the same rows"),
        ("Only Ada may open the safe", "Ada may only open the safe"),
        ("Not all servers are patched", "All servers are not patched"),
        ("Emma does not eat fish but eats meat", "Emma eats fish but does not eat meat"),
        ("If it rains the market is inside", "Unless it rains the market is inside"),
        ("The alarm is set before the cleaner comes", "The alarm is set after the cleaner comes"),
        ("Share the flat with two cats", "Share two cats with the flat"),
        ("Mum is older than Aunt Rosa", "Aunt Rosa is older than Mum"),
        ("Lena mag Tee lieber als Kaffee", "Lena mag Kaffee lieber als Tee"),
        ("Frau Huber betreut Frau Maier am Freitag", "Frau Maier betreut Frau Huber am Freitag"),
        ("张三借给李四三百元", "李四借给张三三百元"),
        ("上海的服务器备份到北京的机房", "北京的机房备份到上海的服务器"),
        ("比起咖啡，丽娜更喜欢茶", "比起茶，丽娜更喜欢咖啡"),
    ],
)
def test_what_stands_on_both_sides_of_a_verb_is_not_exchanged(one: str, other: str) -> None:
    assert turns_round(one, other)
    assert turns_round(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rent is transferred on the 3rd of each month", "On the 3rd of each month the rent is transferred"),
        (
            "Spare shackles are in the red box under the bench",
            "Under the bench, in the red box, are spare shackles",
        ),
        ("Tom Hartley is the bosun", "The bosun is Tom Hartley"),
        ("Rollbacks need the approval of Priya", "The approval of Priya is needed for rollbacks"),
        ("Ada calls Ben", "Ben is called by Ada"),
        ("Kemi is not to lift the sacks", "Kemi must not lift the sacks"),
        ("Stammkunden bekommen 5 Prozent Rabatt", "5 Prozent Rabatt bekommen Stammkunden"),
        ("Kunden bekommen ein Jahr Gewährleistung", "Ein Jahr Gewährleistung bekommen Kunden"),
        ("Der Bericht geht freitags um zwölf an Martin", "Freitags um zwölf geht der Bericht an Martin"),
        ("Der Bericht geht freitags an Martin", "Freitags geht der Bericht an Martin"),
        ("Maria and Tom share a flat", "Tom and Maria share a flat"),
        ("Ben is allergic to walnuts", "Walnuts: Ben is allergic to them"),
        ("Die Miete wird am 3. jedes Monats überwiesen", "Am 3. jedes Monats wird die Miete überwiesen"),
        (
            "Der Schlüssel hängt im Büro neben dem Funkgerät",
            "Neben dem Funkgerät im Büro hängt der Schlüssel",
        ),
        ("Lena isst keine Oliven", "Oliven isst Lena keine"),
        ("Im Haus wird nicht geraucht", "Geraucht wird im Haus nicht"),
        ("羽毛球队每周三晚上七点在体育馆练习", "每周三晚上七点羽毛球队在体育馆练习"),
        ("阿强不能搬重的箱子，腰不好", "阿强腰不好，不能搬重的箱子"),
        ("训练用的旧球放在绿色的桶里", "绿色的桶里放训练用的旧球"),
        ("Ben does not eat olives", "Olives are something Ben does not eat"),
        ("The boat lies in Bregenz", "The boat lies in Bregenz"),
        ("nothing in common", "something else"),
        ("", ""),
    ],
)
def test_what_people_put_first_or_last_makes_no_difference(one: str, other: str) -> None:
    assert not turns_round(one, other)
    assert not turns_round(other, one)
