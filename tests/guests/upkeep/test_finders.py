"""What each rule finds, and what it leaves alone."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.guests.upkeep.model import Proposal
from plainmind.guests.upkeep.outdated import endings, updates
from plainmind.guests.upkeep.repeats import repeats
from plainmind.guests.upkeep.structure import Asked, lasting, structure, too_large
from plainmind.guests.upkeep.survey import Survey, read_page
from plainmind.guests.upkeep.survey import survey as look

TODAY = "2026-11-16"


def survey(**pages: str) -> Survey:
    """Pages by name; `_` stands for `/`, and a name with a day is a log."""
    return Survey(
        [
            read_page(f"{name.replace('__', '/')}.md", text, changed_on="2024-01-01")
            for name, text in pages.items()
        ],
        TODAY,
    )


def repeated(text: str, **more: str) -> list[Proposal]:
    embedder = BuiltinEmbedder()
    found = list(repeats(survey(MEMORY=text, **more), embedder.embed_documents))
    embedder.close()
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mum takes her pills at 8 in the morning", "Mum takes her drops at 8 in the evening"),
        ("The night train to Rome leaves at 19:18", "The night train to Zurich leaves at 19:18"),
        ("Customer data may be copied to laptops", "Customer data may not be copied to laptops"),
        ("Ada reports to Ben on the first Monday", "Ben reports to Ada on the first Monday"),
        ("打印机在二楼的走廊尽头", "打印机在三楼的走廊尽头"),
        ("Lena trinkt morgens Hafermilch im Büro", "Lena trinkt abends Hafermilch im Büro"),
        ("- [ ] call the plumber about the tap", "- [ ] call the plumber about the tap"),
        ("2026-01-02 restic backup ok for the laptop", "2026-01-02 restic backup ok for the laptop"),
        ("Berlin pays Vienna for the hosting of mail", "Vienna pays Berlin for the hosting of mail"),
        ("小王向老李汇报每周的销售情况", "老李向小王汇报每周的销售情况"),
        (
            "The tank holds twenty litres of diesel in winter",
            "The tank holds thirty litres of diesel in winter",
        ),
        ("The tank holds 20 litres of diesel in winter", "The tank holds 20 gallons of diesel in winter"),
        ("the schema is looked for in `./schema.prisma`", "the schema is looked for in `./db/schema.prisma`"),
        ("Test all related endpoints in Insomnia", "Test all related endpoints in Insomnia"),
        ("the mean is $a + (1 - b) c$ for each of them", "the mean is $a + (1 - c) b$ for each of them"),
        (
            "If two processes open the same file, their descriptors map to different entries of the open file table",
            "If two processes open the same file, their descriptors map to the same entry of the vnode table",
        ),
        ("他负责公司所有的财务报表和审计", "她负责公司所有的财务报表和审计"),
    ],
)
def test_lines_that_only_look_alike_are_left_alone(one: str, other: str) -> None:
    both = [line if line.startswith("-") else f"- {line}" for line in (one, other)]

    assert repeated("# Memory\n\n" + "\n".join(both) + "\n") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wifi guest: otterhaus", "Guest wifi: otterhaus-gast"),
        ("Guest wifi is otterhaus", "Guest wifi is otterhaus-gast"),
        ("Guest wifi is otterhaus", "Guest wifi is otterhaus_gast"),
        ("The server is backed up to tern", "The server is backed up to tern.backup"),
        ("The server is backed up to tern", "The server is backed up to /tern"),
        ("Gateway config lives in infra repo", "Gateway config lives in infra/legacy repo"),
        ("The keys of the server lie in env", "The keys of the server lie in .env"),
        ("The invoices go to ada by mail", "The invoices go to ada@tern.example by mail"),
        ("The printer at home answers at 192.168.1.20", "At home the printer answers at 192.168.20.1"),
        ("Call the plumber at 0170 456 123", "The plumber: call 0170 123 456"),
        ("The exchange rate is set to 3.14 there", "There the exchange rate is set to 14.3"),
        ("The tools are written in C today", "The tools are written in C++ today"),
        ("The freezer is to be kept at 18 degrees", "The freezer is to be kept at -18 degrees"),
        ("The ticket to the coast costs 40 €", "The ticket to the coast costs $40"),
        ("The alarm is set off by smoke > 5", "The alarm is set off by smoke < 5"),
        ("The cellar door opens with aB3xk9", "The cellar door opens with ab3xk9"),
        ("The service is started with run -v", "The service is started with run -V"),
        ("服务器的备份放在 tern", "服务器的备份放在 tern-2b"),
        ("Guest wifi is otterhaus", "Guest wifi is otterhaus gast"),
        ("The report goes to anna on friday", "The report goes to anna on friday or to ben"),
        ("Backups are kept for 7 days on the disk", "Backups are kept for 7 days on the usb disk"),
        ("Wifi password: Otterhaus", "Wifi password: otterhaus"),
        ("Wifi password: otterhaus!", "Wifi password: otterhaus"),
    ],
)
def test_a_value_that_is_written_differently_is_another_one(one: str, other: str) -> None:
    assert repeated(f"# Memory\n\n- {one}\n- {other}\n") == []
    assert repeated(f"# Memory\n\n- {other}\n- {one}\n") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Guest wifi is otterhaus-gast", "otterhaus-gast is the guest wifi."),
        ("Gateway config lives in infra/legacy repo", "In the infra/legacy repo lives the gateway config"),
        ("On Sundays the ticket to the coast costs 40€", "The ticket to the coast costs 40 € on Sundays"),
        ("The follow-up of the audit is in May", "In May is the Follow-up of the audit"),
    ],
)
def test_a_value_that_is_written_alike_may_stand_anywhere(one: str, other: str) -> None:
    assert [each.kind for each in repeated(f"# Memory\n\n- {one}\n- {other}\n")] == ["restated"]


def test_plans_and_what_came_of_them_are_kept_apart() -> None:
    line = "# Parallax\n\n## Steps\n\n- Gyroscope with the interface for the orientation of devices\n"

    assert repeated(line, TODO=line, TASK_LOG=line) == []
    assert len(repeated(line, blog=line)) == 1


def test_short_lines_of_chinese_under_two_headings_are_left_alone() -> None:
    assert repeated("# 字体\n\n## 修复\n\n- 添加字体平滑属性\n\n## 检查\n\n- 字体平滑属性\n") == []


def test_a_value_below_the_same_heading_of_another_project_is_left_alone() -> None:
    text = "# Projects\n\n## One\n\n### State\n\n- **Health**: Stable\n\n## Two\n\n### State\n\n- **Health**: Stable\n"

    assert repeated(text) == []


def test_of_whom_a_line_speaks_its_heading_says() -> None:
    line = "- If he asks for changes of the code, coordinate with Roger on the technical part\n"

    assert repeated(f"# People\n\n## Ben\n\n{line}\n## Dan\n\n{line}") == []


def test_an_item_means_what_the_item_above_it_says() -> None:
    part = "- {}\n  - Counts for the mark\n  - Weighting: 10%\n"

    assert repeated("# Course\n\n" + part.format("Draft") + part.format("Final")) == []


def test_a_picture_is_no_note_and_a_drawing_is_not_looked_at(tmp_path: Path) -> None:
    pages = survey(**{"Boat house": "# Boat house\n", "plan": "# Plan\n\n- see ![[Boat house 1.png]]\n"})
    assert [one for one in structure(pages) if one.kind == "links"] == []

    (tmp_path / "MEMORY.md").write_text("# Memory\n")
    (tmp_path / "plan.excalidraw.md").write_text("# Plan\n\n- a box\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        looked_at = look(memory.notes.workspace, date(2026, 11, 16))
    assert [page.path for page in looked_at.pages] == ["MEMORY.md"]


def test_an_address_in_a_list_of_them_does_not_say_whose_it_is() -> None:
    text = "# M\n\n- Email: roger@example.org\n- Mail from Roger: a@example.com, b@example.net, roger@example.org\n"

    assert repeated(text) == []


def test_steps_of_a_numbered_list_are_left_alone() -> None:
    text = "# Release\n\n1. Everyone pushes to the fork\n2. Review\n3. Everyone pushes to the fork\n"

    assert repeated(text) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The club account is with the Volksbank", "The club account is with the Volksbank."),
        ("Im Gerätehaus wird nicht geraucht", "Geraucht wird im Gerätehaus nicht"),
    ],
)
def test_a_section_and_a_part_of_it_make_no_difference(one: str, other: str) -> None:
    assert len(repeated(f"# Money\n\n- {one}\n\n## Bank\n\n- {other}\n")) == 1


def test_a_label_means_what_its_heading_says() -> None:
    text = "# Codes\n\n## Berlin\n\n- Door code: 4471\n\n## Munich\n\n- Door code: 4471\n"

    assert repeated(text) == []


def test_a_line_with_more_beneath_it_does_not_go() -> None:
    text = "# Memory\n\n- The boat lies in the harbour of Bregenz\n  - berth 12\n"

    found = repeated(text + "- The boat lies in the harbour of Bregenz\n")

    assert [one.edits[0].line for one in found] in ([5], [])
    assert not [one for one in found if one.edits[0].line == 3]


def test_what_is_shared_with_others_is_not_compared_with_what_is_not() -> None:
    line = "- The boat lies in the harbour of Bregenz in winter\n"
    pages = [
        read_page("MEMORY.md", line),
        read_page("memory/groups/club.md", line, scope="group:club"),
    ]
    embedder = BuiltinEmbedder()

    assert list(repeats(Survey(pages, TODAY), embedder.embed_documents)) == []


def test_a_value_needs_a_newer_day_to_be_superseded() -> None:
    older = "# Memory\n\n## Office\n\n- The network: Lindenblatt (2025-05-01)\n- The network: Rosenduft (2024-05-01)\n"

    found = list(updates(survey(MEMORY=older)))

    assert [one.cites[0].text for one in found] == ["- The network: Rosenduft (2024-05-01)"]
    assert list(updates(survey(MEMORY="# M\n\n- Network: Lindenblatt\n- Network: Rosenduft\n"))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Clara lives in Graz with two cats", "Emma lives in Linz with two cats now"),
        ("Bought: bread and milk", "Bought: eggs and flour"),
        ("The night train to Rome leaves at 19:18", "Rain all day, no train now"),
        ("2024-03-01: the office moved to Bern", "The office moved to Basel now"),
        ("Reading club on Tuesdays, pick-up is at 16:15", "The reading club moved from Mondays to Tuesdays"),
        ("The fee for juniors is 40 pounds a year", "The fee for adults is now 155 pounds a year"),
        ("The office is in Bern", "is the office in Basel now?"),
        ("The site of the club (club-site)", "club-site (:3334) was down → restarted, the site is now up"),
        ("Root cause: the cost column is missing", "Root cause: the model was read from a stale file"),
        ("The pitch in Domburg costs 36 euros a night", "the pitch in Zoutelande costs 34 euros a night now"),
        (
            "**Scout** (Research) — finds papers and sorts them",
            "**Scout** — now also finds talks and sorts them",
        ),
        (
            "5 new agents deployed: Ghost, Triage, Mentor",
            "agents Ghost, Triage, Mentor (all 5 with no real outcomes)",
        ),
        ("Switch the default version to latest", "Switch the default version back to stable"),
        ("The spare key is behind the cellar door", "The spare key is heavy and made of iron"),
        ("The office is in Bern", "the office is now somewhere else:"),
        ("My brother Paul lives in Graz", "Clara now lives in Linz, not in Graz any more"),
    ],
)
def test_another_thing_does_not_supersede(old: str, new: str) -> None:
    pages = survey(
        **{"MEMORY": f"# Memory\n\n- {old}\n", "memory__2026-05-02": f"# 2026-05-02\n\n- 09:00 {new}\n"}
    )

    assert list(updates(pages)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Captain: Ada Winter (2022-09-01)", "Captain: Ben Kovacs, Ada Winter has moved to Graz"),
        ("Commodore: Alan Whitby (2021-11-20)", "AGM. Commodore: Sheila Marsh, Alan steps down"),
        ("Wehrführer: Hauke Petersen (2020-02-01)", "Versammlung: Wehrführer: Malte Thomsen, Hauke hört auf"),
        (
            "Der Beitrag beträgt 24 Euro im Jahr (2022-01-01)",
            "der Beitrag beträgt ab 2026-01-01 30 Euro im Jahr",
        ),
        (
            "Opa Claasen bekommt immer einen Präsentkorb",
            "Opa Claasen möchte keinen Präsentkorb mehr, lieber ein Bier",
        ),
        ("队长：张伟（2022-09-01）", "队长：刘洋，张伟调去上海了"),
        ("Stundensatz: 62 Euro (2024-01-01)", "der Stundensatz steigt, statt 62 nehmen wir 68 Euro"),
    ],
)
def test_a_newer_value_is_asked_about_however_it_is_told(old: str, new: str) -> None:
    pages = survey(
        **{"MEMORY": f"# Memory\n\n- {old}\n", "memory__2026-05-02": f"# 2026-05-02\n\n- 09:00 {new}\n"}
    )

    assert [one.cites[0].text for one in updates(pages)] == [f"- {old}"]


def test_a_label_in_a_log_means_what_the_heading_there_says() -> None:
    log = "# 2026-05-02\n\n## Zombie processes\n\n- **Bridge:** the second process was deleted\n"
    pages = {"proxy": "# Proxy\n\n- **Bridge:** a bridge to the old server (2024-01-01)\n"}

    assert list(updates(survey(**pages, **{"memory__2026-05-02": log}))) == []
    about_it = log.replace("Zombie processes", "Proxy")
    assert len(list(updates(survey(**pages, **{"memory__2026-05-02": about_it})))) == 1


def test_sentences_of_a_text_and_its_steps_do_not_supersede_each_other() -> None:
    text = "# Tag\n\nSet the head to the old commit\n\nSet the head back to the new commit now\n"
    steps = text.replace("Set", "1. Set")

    assert list(updates(survey(tag=text))) == []
    assert list(updates(survey(tag=steps))) == []


def test_a_denial_of_a_newer_day_is_asked_about() -> None:
    pages = survey(
        **{
            "MEMORY": "# Memory\n\n- Ben eats fish on Fridays\n",
            "memory__2026-05-02": "# 2026-05-02\n\n- 09:00 Ben does not eat fish on Fridays\n",
        }
    )

    (found,) = updates(pages)

    assert found.edits[0].new == (
        "- ~~Ben eats fish on Fridays~~ (until 2026-05-02, now memory/2026-05-02.md#L3)",
    )


@pytest.mark.parametrize(
    ("line", "kind", "until"),
    [
        ("The permit is valid until 1 December 2030", "expiry", "2030-12-01"),
        ("The permit is valid until Dec 1, 2025", "stale", "2025-12-01"),
        ("Der Ausweis ist gültig bis zum 1. März 2031", "expiry", "2031-03-01"),
        ("Der Ausweis ist gültig bis 1.3.2025", "stale", "2025-03-01"),
        ("图书证有效期至2031年3月1日", "expiry", "2031-03-01"),
        ("2025年3月1日之前交报告的事", None, None),
        ("请在2025年3月1日之前交报告", "stale", "2025-03-01"),
        ("We meet the builders tomorrow <!-- m:01HZ3K5Z7Q8R9S0T1V2W3X4Y5Z -->", "stale", "2024-05-31"),
        ("Closed until Friday (2025-01-01)", "stale", "2025-01-03"),
        ("We meet every Friday until noon", None, None),
        ("The shop is open until Friday", None, None),
        ("## 2025-03-01\n\n- which models were used today, with counts", None, None),
        ("Holidays are 25 July until 8 August 2030", None, None),
        ("The permit is valid until 31 February 2030", None, None),
        ("It was so until 2025-01-01 (until 2025-01-01)", None, None),
    ],
)
def test_the_end_that_a_line_names(line: str, kind: str | None, until: str | None) -> None:
    found = list(endings(survey(MEMORY=f"# Memory\n\n- {line}\n")))

    assert [one.kind for one in found] == ([] if kind is None else [kind])
    if until:
        assert f"(until {until})" in found[0].edits[0].new[0]


def often(path: str, number: int) -> dict[tuple[str, int], Asked]:
    return {(path, number): Asked(frozenset({"one", "two"}), frozenset({"2026-01-01"}))}


def test_a_decision_is_kept_when_it_was_asked_for_and_is_not_known_yet() -> None:
    log = "# 2026-05-02\n\n- 09:00 We decided to keep the boat in Bregenz\n"
    path = "memory/2026-05-02.md"
    pages = {"memory__2026-05-02": log}

    (found,) = lasting(survey(**pages), often(path, 3), "MEMORY.md")

    assert found.edits[0].new == (f"- We decided to keep the boat in Bregenz (from {path}#L3)",)
    assert list(lasting(survey(**pages), {}, "MEMORY.md")) == []
    known = {"MEMORY": f"# Memory\n\n{found.edits[0].new[0]}\n"}
    assert list(lasting(survey(**pages, **known), often(path, 3), "MEMORY.md")) == []


def test_a_name_in_three_files_gets_a_page_and_a_tag_one_spelling() -> None:
    pages = survey(
        a="# A\n\n- lunch with Frida Lindqvist\n- boat #Projects\n",
        b="# B\n\n- a call of Frida Lindqvist\n- harbour #projects\n",
        c="# C\n\n- the book of Frida Lindqvist\n- sail #projects\n",
    )

    found = {one.kind: one for one in structure(pages)}

    assert found["people"].edits[0].path == "memory/people/Frida Lindqvist.md"
    assert found["tags"].edits[0].new == ("- boat #projects",)


def test_a_product_is_no_person() -> None:
    files = {
        name: f"# {name}\n\n- {name}: Mission Control said no\n- with Langfuse Cloud\n- {name} in Brave Search\n"
        for name in "abc"
    }
    files["d"] = "# D\n\n- the mission is done, the control room is shut\n"

    assert [one.reason for one in structure(survey(**files)) if one.kind == "people"] == []


def test_a_link_that_leads_nearly_to_a_note_is_mended_and_a_missing_one_made() -> None:
    pages = survey(
        **{
            "people__Ada Lovelace": "# Ada Lovelace\n\n- wrote programs\n",
            "engine": "# Engine\n\n- see [[Ada Lovelac]]\n",
            "poems": "# Poems\n\n- her father knew no Ada Lovelace\n",
        }
    )

    found = [one.edits[0].new[0] for one in structure(pages) if one.kind == "links"]

    assert found == ["- see [[Ada Lovelace]]", "- her father knew no [[Ada Lovelace]]"]


def test_a_section_that_nothing_asked_for_moves_to_a_file_of_its_own() -> None:
    section = "".join(f"- thing number {number} of the cellar\n" for number in range(40))
    pages = survey(MEMORY=f"# Memory\n\n## Cellar\n\n{section}\n## Boat\n\n- it lies in Bregenz\n")

    (found,) = too_large(pages, {}, 1000)
    new, old = found.edits

    assert new.path == "memory/topics/cellar.md"
    assert [line for line in old.old if line.startswith("-")] == [
        line for line in new.new if line.startswith("-")
    ]
    assert list(too_large(pages, {"MEMORY.md": {5}}, 1000)) == []
    assert list(too_large(pages, {}, 10_000)) == []


def test_of_thousands_of_lines_only_those_that_share_words_are_compared() -> None:
    words = [
        f"{a}{b}{c}"
        for a in "bdfgklmnprst"
        for b in "aeiou"
        for c in ("lor", "men", "tis", "rak", "sun", "vel")
    ]
    chance = random.Random(7)
    pages = [
        read_page(
            f"memory/topic{number}.md",
            f"# Topic {number}\n\n"
            + "".join(f"- {' '.join(chance.choices(words, k=9))}\n" for _ in range(100)),
        )
        for number in range(30)
    ]
    seen = Survey(pages, TODAY)

    assert len(seen.lines) == 3_000
    assert len(seen.near) < 3_000
