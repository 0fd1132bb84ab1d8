"""The page in a real browser: find a fact, see why, correct it, forget it, take a mistake back."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from pack_page import all_packed
from playwright.sync_api import expect, sync_playwright
from tests.support.page_in_browser import PageServer, Person, launch, needs_browser, serve_page, wait_until

from plainmind.agent.recalls import Asker, lines_of_hits
from plainmind.agent.scope import THE_OWNER
from plainmind.base.model import PRIVATE
from plainmind.guests.entries.access import entry_memory_of
from plainmind.memory.memory import Memory

pytestmark = needs_browser


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("page")) as server, sync_playwright() as playwright:
        browser = launch(playwright)
        yield Person(browser, server)
        browser.close()


@pytest.fixture
def notes(stage):
    return stage.server


def line(page, number):
    return page.locator(f"#L{number}")


def is_shown(page, path):
    """Wait until a note is the one that is read."""
    expect(page.locator(".head h1")).to_have_text(path)
    expect(line(page, 1)).to_be_visible()


def ask(page, question):
    page.get_by_role("searchbox", name="Search").fill(question)


def violations(page, *rules):
    """What axe-core finds wrong with what is on the screen."""
    found = Axe().run(page, options={"runOnly": list(rules)} if rules else None).response["violations"]
    return [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]


def test_a_code_opens_the_page_once_and_leaves_no_trace_of_itself(person, notes):
    address = notes.address()
    page = person.open_by_code(address)
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    code = address.partition("#code=")[2]
    token = page.evaluate("sessionStorage.getItem('plainmind.token')")
    assert code not in page.url
    assert token not in page.content()
    assert code not in page.content()
    assert not any(code in url or token in url for url in person.requests)
    page.reload()
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    other = person.open_by_code(address)
    expect(other.get_by_role("heading", name="This page is locked")).to_be_visible()
    expect(other.get_by_text("plainmind page", exact=True)).to_be_visible()


def test_a_fact_is_found_and_the_page_says_why(person):
    page = person.open()
    ask(page, "certificates of the sensor gateway")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("memory/network.md:7")
    expect(first.locator("mark").first).to_be_visible()
    expect(first.locator(".because")).to_contain_text("“gateway”")
    page.keyboard.press("ArrowDown")
    expect(line(page, 7)).to_have_attribute("aria-current", "true")
    expect(line(page, 7).locator("mark")).to_have_text(["sensor", "gateway", "certificates"])
    page.keyboard.press("w")
    expect(page.get_by_text("Closeness in meaning")).to_be_visible()
    assert page.url.endswith("#/note/memory/network.md:7")


def test_who_opens_the_page_and_types_is_searching(person, notes):
    notes.write("memory/nettle.md", "# Nettle tea\n\n- It steeps for nine minutes.\n")
    page = person.open()
    page.keyboard.type("nettle tea")  # `n`, `e` and others are keys as well
    expect(page.get_by_role("option").first).to_contain_text("memory/nettle.md")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("dialog", name="New note")).to_be_visible()


def test_a_row_of_results_is_words_and_no_markup(person, notes):
    notes.write(
        "memory/roc.md",
        "---\naliases: [orchid meter]\n---\n\nThe area under an [[Orchid Meter Sign|orchid meter curve]].\n",
    )
    page = person.open()
    ask(page, "area under the orchid meter curve")
    row = page.get_by_role("option").first
    expect(row).to_contain_text("%")
    expect(row).to_contain_text("The area under an")
    expect(row).not_to_contain_text("[[")
    expect(row).not_to_contain_text("]]")
    expect(row).not_to_contain_text("---")
    expect(row.locator("mark", has_text="|")).to_have_count(0)


def test_a_list_that_is_drawn_while_its_question_is_taken_back_goes_on(person, notes):
    for number in range(30):
        notes.write(f"memory/barges/{number}.md", f"# Barge {number}\n\n- Barge {number} carries gravel.\n")
    page = person.open()
    ask(page, "which barge carries gravel")
    expect(page.get_by_role("option").first).to_contain_text("%")
    waiting = []
    page.route("**/v1/notes?**", lambda route: waiting.append(route))  # noqa: PLW0108 (it asks how many it takes)
    ask(page, "")
    wait_until(lambda: page.evaluate("1") and waiting)
    page.set_viewport_size({"width": 1280, "height": 500})
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for request in waiting:
        request.continue_()
    expect(page.get_by_text("newest change first")).to_be_visible()


def test_by_keyboard_alone_a_line_is_found_corrected_and_the_correction_taken_back(person, notes):
    notes.write("memory/kettle.md", "# Kettle\n\n- The kettle stands in the kitchen.\n- It is red.\n")
    before = notes.read("memory/kettle.md")
    page = person.open()
    page.keyboard.press("/")
    page.keyboard.type("where does the kettle stand")
    expect(page.get_by_role("option").first).to_contain_text("memory/kettle.md:3")
    page.keyboard.press("ArrowDown")
    expect(line(page, 3)).to_have_attribute("aria-current", "true")
    page.keyboard.press("e")
    expect(page.get_by_role("textbox", name="Text of memory/kettle.md")).to_be_focused()
    page.keyboard.press("Shift+Home")
    page.keyboard.type("- The kettle stands in the workshop.")
    page.keyboard.press("Control+s")
    changes = page.get_by_role("group", name="Changes")
    expect(changes.locator(".change.gone")).to_contain_text("kitchen")
    expect(changes.locator(".change.new")).to_contain_text("workshop")
    assert notes.read("memory/kettle.md") == before
    page.keyboard.press("Enter")
    expect(line(page, 3)).to_contain_text("workshop")
    assert notes.read("memory/kettle.md") == before.replace("kitchen", "workshop")
    undo = page.get_by_role("button", name="Undo")
    undo.focus()
    page.keyboard.press("Enter")
    expect(line(page, 3)).to_contain_text("kitchen")
    assert notes.read("memory/kettle.md") == before


def test_chosen_lines_are_shown_then_forgotten_for_good(person, notes):
    notes.write("memory/secret.md", "# Secrets\n\n- The safe opens with 4711-zebra.\n- The key is blue.\n")
    page = person.open("#/note/memory/secret.md")
    line(page, 3).locator("a.no").click()
    page.get_by_role("toolbar", name="Line 3").get_by_role("button", name="Forget").click()
    preview = page.get_by_role("dialog", name="Forget for good")
    expect(preview.locator(".change.gone")).to_have_text("3- The safe opens with 4711-zebra.")
    page.keyboard.press("Escape")
    assert "zebra" in notes.read("memory/secret.md")
    page.keyboard.press("f")
    expect(preview.get_by_role("button", name="Forget for good")).to_be_enabled()
    expect(preview.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(preview).to_have_count(0)
    assert "zebra" in notes.read("memory/secret.md")
    page.keyboard.press("f")
    preview.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("Forgotten: 1 line")).to_be_visible()
    expect(page.get_by_text("zebra")).to_have_count(0)
    assert notes.read("memory/secret.md") == "# Secrets\n\n- The key is blue.\n"
    kept = [path for path in notes.home.rglob("*") if path.is_file() and b"4711-zebra" in path.read_bytes()]
    assert kept == []


def test_what_a_note_was_before_can_be_seen_and_brought_back(person, notes):
    notes.write("memory/boat.md", "# Boat\n\n- Her name is Ida.\n")
    page = person.open("#/note/memory/boat.md:3")
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="Edit").click()
    page.keyboard.type(" She leaks.")
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Save").click()
    expect(line(page, 3)).to_contain_text("She leaks.")
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="History").click()
    versions = page.locator(".versions button")
    expect(versions).to_have_count(2)
    versions.nth(1).click()
    page.get_by_role("button", name="Restore this version").click()
    expect(line(page, 3)).to_have_text("3•Her name is Ida.")
    assert notes.read("memory/boat.md") == "# Boat\n\n- Her name is Ida.\n"


def edit(page, text):
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name=re.compile("^Text of")).fill(text)
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("button", name="Save").click()


def test_two_tabs_that_change_different_lines_lose_nothing(person, notes):
    lines = [f"- Line {i} says nothing." for i in range(1, 9)]
    notes.write("memory/two.md", "\n".join(lines) + "\n")
    one, other = person.open("#/note/memory/two.md"), person.open("#/note/memory/two.md")
    expect(line(one, 8)).to_be_visible()
    expect(line(other, 8)).to_be_visible()
    other.get_by_role("toolbar", name="Actions").get_by_role("button", name="Edit").click()
    edit(one, "\n".join(["- The first line is one's.", *lines[1:]]) + "\n")
    expect(line(one, 1)).to_contain_text("one's")
    other.get_by_role("textbox", name=re.compile("^Text of")).fill(
        "\n".join([*lines[:-1], "- The last is other's."]) + "\n"
    )
    other.get_by_role("button", name="Review changes").click()
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("heading", name="Somebody saved this note")).to_be_visible()
    other.get_by_role("button", name="Save both").click()
    expect(line(other, 1)).to_contain_text("one's")
    assert (
        notes.read("memory/two.md")
        == "\n".join(["- The first line is one's.", *lines[1:-1], "- The last is other's."]) + "\n"
    )


def test_two_tabs_that_change_the_same_line_are_shown_both_texts(person, notes):
    notes.write("memory/same.md", "- The door is green.\n")
    one, other = person.open("#/note/memory/same.md"), person.open("#/note/memory/same.md")
    expect(line(other, 1)).to_be_visible()
    other.get_by_role("toolbar", name="Actions").get_by_role("button", name="Edit").click()
    edit(one, "- The door is blue.\n")
    expect(line(one, 1)).to_contain_text("blue")
    other.get_by_role("textbox", name=re.compile("^Text of")).fill("- The door is red.\n")
    other.get_by_role("button", name="Review changes").click()
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("You both changed the same lines")).to_be_visible()
    expect(other.locator(".conflict > .diff .change.gone")).to_contain_text("blue")
    expect(other.locator(".conflict > .diff .change.new")).to_contain_text("red")
    assert notes.read("memory/same.md") == "- The door is blue.\n"
    other.get_by_role("button", name="Edit my text").click()
    expect(other.get_by_role("textbox", name=re.compile("^Text of"))).to_have_value("- The door is red.\n")
    other.get_by_role("button", name="Review changes").click()
    other.get_by_role("button", name="Save").click()
    expect(line(other, 1)).to_contain_text("red")
    assert notes.read("memory/same.md") == "- The door is red.\n"


def test_a_text_that_is_not_saved_is_not_left_by_accident(person, notes):
    notes.write("memory/draft.md", "- A draft.\n")
    page = person.open("#/note/memory/draft.md")
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="Edit").click()
    field = page.get_by_role("textbox", name=re.compile("^Text of"))
    field.fill("- A better draft.\n")
    page.get_by_role("link", name="Search").click()
    page.get_by_role("dialog", name="Leave without saving?").get_by_role("button", name="Cancel").click()
    expect(field).to_have_value("- A better draft.\n")
    assert notes.read("memory/draft.md") == "- A draft.\n"


HOSTILE = """# <img src=x onerror="window.seized=1">

<script>window.seized = 2</script>
<iframe src="https://example.com/frame"></iframe>
![a remote picture](https://example.com/picture.png)
[click me](javascript:window.seized=3) and [this](data:text/html,<script>1</script>)
<a href="https://example.com" onclick="window.seized=4">a link</a> <style>body { display: none }</style>
- [x] done, `<b>code</b>` and **<i>bold</i>**
"""


def test_a_note_full_of_html_is_text_and_loads_nothing(person, notes):
    notes.write("memory/hostile.md", HOSTILE)
    page = person.open("#/note/memory/hostile.md")
    expect(line(page, 3)).to_contain_text("<script>window.seized = 2</script>")
    expect(line(page, 5)).to_contain_text("a remote picture")
    assert page.evaluate("window.seized") is None
    assert page.locator(".lines :is(img, script, iframe, style, b, i)").count() == 0
    for link in page.locator(".lines a:not(.no)").all():
        assert link.get_attribute("href").startswith("https://example.com")
        assert link.get_attribute("rel") == "noreferrer noopener"
    ask(page, "onerror seized picture")
    expect(page.get_by_role("option").first).to_contain_text("hostile.md")
    assert page.evaluate("window.seized") is None


ATTACK = (Path(__file__).parent / "another_port.html").read_text("utf-8")


def test_a_page_of_another_port_learns_and_changes_nothing(person, notes):
    """It even knows a token and a code that nobody has used: they are of no use to it."""
    ours = person.open()
    token = ours.evaluate("sessionStorage.getItem('plainmind.token')")
    code = notes.address().partition("#code=")[2]
    text = ATTACK.replace("ORIGIN", notes.origin).replace("TOKEN", token).replace("CODE", code)
    before = {path: path.read_bytes() for path in notes.workspace.rglob("*") if path.is_file()}
    with serve_page(text) as address:
        page = person.open_by_code(address)
        expect(page.get_by_text("tried", exact=True)).to_be_visible()
        page.wait_for_timeout(500)  # for the frame, the form and the image
        assert page.evaluate("window.got") == []
        assert page.frame("look").url.startswith("chrome-error:")
    assert {path: path.read_bytes() for path in notes.workspace.rglob("*") if path.is_file()} == before
    assert any("Refused" in error or "CORS" in error for error in person.errors)
    person.errors.clear()
    mine = person.open_by_code(f"{notes.origin}/#code={code}")
    expect(mine.get_by_role("listbox").get_by_role("option").first).to_be_visible()


def test_while_chinese_is_being_composed_nothing_is_searched(person):
    page = person.open()
    field = page.get_by_role("searchbox", name="Search")
    field.focus()
    searches = []
    page.on(
        "request", lambda request: request.url.endswith("/v1/search") and searches.append(request.post_data)
    )
    keyboard = page.context.new_cdp_session(page)
    for text in ("c", "ch", "chuan", "传感"):
        keyboard.send(
            "Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        )
        page.wait_for_timeout(100)
    expect(field).to_have_value("传感")
    assert searches == []
    keyboard.send("Input.insertText", {"text": "传感器"})
    expect(page.get_by_role("option").first.locator("[lang=zh-Hans]").first).to_be_visible()
    expect(page.get_by_role("option").first).to_contain_text("传感器")
    assert len(searches) == 1


def test_of_100_000_notes_only_a_window_is_drawn(person):
    asked = []

    def answer(route):
        wanted = dict(part.split("=") for part in route.request.url.partition("?")[2].split("&"))
        first, limit = int(wanted.get("offset", 0)), int(wanted["limit"])
        asked.append(first)
        rows = [
            {"path": f"memory/{i:06}.md", "title": f"Note {i}", "preview": "…", "bytes": 9}
            for i in range(first, first + limit)
        ]
        route.fulfill(json={"notes": rows, "total": 100_000, "next": "x"})

    page = person.open("#/days")
    page.route("**/v1/notes?*", answer)
    page.get_by_role("link", name="Search").click()
    rows = page.get_by_role("option")
    expect(rows.first).to_have_attribute("aria-setsize", "100000")
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    last = page.locator("[aria-posinset='100000']")
    expect(last).to_contain_text("Note 99999")
    expect(last).to_have_attribute("aria-selected", "true")
    for _ in range(20):
        page.keyboard.press("PageUp")
        assert rows.count() < 40
    assert len(asked) < 8


AXE = """# Axe

- [ ] A task with a [[wiki link]] and #tag
- [x] done

> said

```
code
```
| a | b |
|---|---|
| 1 | 2 |
"""


def test_axe_finds_nothing_to_complain_about(person, notes):
    notes.write("memory/axe.md", AXE)
    page = person.open()
    ask(page, "gateway")
    page.keyboard.press("ArrowDown")
    expect(page.locator("details.why")).to_be_visible()
    assert violations(page) == []
    page.goto(f"{notes.origin}/#/note/memory/axe.md:3")
    is_shown(page, "memory/axe.md")
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Forget for good")).to_be_enabled()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.get_by_role("textbox", name=re.compile("^Text of")).fill(AXE.replace("said", "heard"))
    assert violations(page) == []
    page.get_by_role("button", name="Review changes").click()
    assert violations(page) == []
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.keyboard.press("h")
    expect(page.locator(".version .diff").first).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page) == []


def test_in_the_dark_all_text_stands_out_too(person, notes):
    notes.write("memory/dark.md", AXE)
    page = person.open("#/note/memory/dark.md:3", color_scheme="dark")
    ask(page, "gateway")
    expect(page.get_by_role("option").first.locator("mark").first).to_be_visible()
    assert violations(page, "color-contrast") == []
    line(page, 4).locator("a.no").click()
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Forget for good")).to_be_enabled()
    assert violations(page, "color-contrast") == []


def test_on_a_telephone_one_thing_is_shown_at_a_time(person):
    page = person.open(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    ask(page, "certificates of the sensor gateway")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("memory/network.md:7")
    first.click()
    expect(line(page, 7)).to_be_in_viewport()
    expect(page.get_by_role("searchbox")).to_be_hidden()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("searchbox")).to_have_value("certificates of the sensor gateway")
    expect(page.get_by_role("option").first).to_be_visible()


def test_a_note_that_is_gone_says_so_and_a_server_that_is_gone_too(person, notes):
    page = person.open("#/note/memory/nothing.md")
    expect(page.get_by_role("heading", name="This note is gone")).to_be_visible()
    page.route("**/v1/search", lambda route: route.abort())
    ask(page, "anything")
    expect(page.get_by_text("Plainmind does not answer")).to_be_visible()
    page.unroute("**/v1/search")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("option").first).to_be_visible()


def test_a_new_note_is_on_the_disk_and_can_be_taken_back(person, notes):
    page = person.open()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.keyboard.type("The lighthouse keeper likes marzipan.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".line.chosen")).to_contain_text("marzipan")
    written = [path for path in notes.workspace.rglob("*.md") if "marzipan" in path.read_text()]
    assert len(written) == 1
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    wait_until(lambda: not written[0].exists() or "marzipan" not in written[0].read_text())


def test_undo_names_the_change_that_it_takes_back(person, notes):
    notes.write("memory/first.md", "- The first is one.\n- And the safe opens with 8123-okapi.\n")
    notes.write("memory/second.md", "- The second is two.\n")
    page = person.open("#/note/memory/first.md")
    edit(page, notes.read("memory/first.md").replace("one", "eins"))
    expect(line(page, 1)).to_contain_text("eins")
    page = person.open("#/note/memory/second.md")
    edit(page, "- The second is zwei.\n")
    expect(line(page, 1)).to_contain_text("zwei")
    for path, text in (("memory/second.md", "The second is two."), ("memory/first.md", "The first is one.")):
        page.keyboard.press("u")
        asked = page.get_by_role("dialog", name="Undo")
        expect(asked).to_contain_text(f"“Edited” in {path}")
        asked.get_by_role("button", name="Undo").click()
        is_shown(page, path)
        expect(line(page, 1)).to_contain_text(text)
    page.keyboard.press("h")
    expect(page.locator(".versions button b").first).to_have_text("Undone")
    page.goto(f"{notes.origin}/#/note/memory/first.md:2")
    expect(line(page, 2)).to_have_attribute("aria-current", "true")
    page.keyboard.press("f")
    page.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("Forgotten: 1 line")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("nothing can bring them back")).to_be_visible()
    assert notes.read("memory/first.md") == "- The first is one.\n"


def test_an_entry_is_read_and_forgotten(person, notes):
    page = person.open("#/")
    expect(page.get_by_role("link", name="Search")).to_be_visible()
    expect(page.get_by_role("link", name="Entries")).to_have_count(0)  # there are none
    notes.run("entries", "store", "Anna prefers oolong over coffee", "--category", "preference")
    notes.run("entries", "store", "The ferry to Brännö leaves at ten", "--category", "fact")
    page = person.open("#/")
    page.get_by_role("link", name="Entries").click()
    rows = page.get_by_role("option")
    expect(rows).to_have_count(2)
    rows.filter(has_text="oolong").click()
    expect(page.locator(".detail .lead")).to_have_text("Anna prefers oolong over coffee")
    expect(page.locator(".detail .meta")).to_contain_text("preference")
    assert violations(page) == []
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("Forgotten: 1 line")).to_be_visible()
    expect(rows).to_have_count(1)
    expect(page.get_by_text("oolong")).to_have_count(0)
    assert "oolong" not in notes.run("entries", "list")
    environment = {"PLAINMIND_HOME": str(notes.home), "PLAINMIND_ENTRIES_DRIVER": "sqlite"}
    with (
        Memory.from_environment(
            environment, workspace=str(notes.workspace), cwd=str(notes.workspace)
        ) as memory,
        closing(entry_memory_of(memory)) as entries,
    ):
        (waits,) = entries.capture(["I always prefer rye bread over wheat."], scope=PRIVATE)
    page.reload()
    rows.filter(has_text="rye bread").click()
    expect(page.locator(".detail .meta")).to_contain_text("waits for you")
    page.get_by_role("button", name="Accept").click()
    expect(rows.filter(has_text="waits for you")).to_have_count(0)
    assert waits.text in notes.run("entries", "list")


def test_what_is_written_in_an_editor_appears_by_itself(person, notes):
    notes.write("memory/live.md", "- The tide is low.\n")
    page = person.open("#/note/memory/live.md")
    expect(line(page, 1)).to_contain_text("low")
    expect(page.get_by_title("live")).to_be_visible()
    notes.write("memory/live.md", "- The tide is high.\n")
    expect(line(page, 1)).to_contain_text("high")
    notes.write("memory/just-now.md", "# Written just now\n\nBy an editor.\n")
    expect(page.get_by_role("option").first).to_contain_text("Written just now")


def test_commands_are_found_by_their_names(person):
    page = person.open()
    page.keyboard.press("Control+k")
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.keyboard.press("Control+k")
    page.keyboard.type("tags")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tags", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("sensor gateway certificates")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text("memory/network.md")
    page.keyboard.press("Enter")
    is_shown(page, "memory/network.md")


TALK = [
    {"role": "user", "content": "Which paint did we choose for the pier?"},
    {"role": "assistant", "content": "Signal grey, two coats, in April."},
]


def test_a_conversation_is_read_and_a_line_of_it_kept_as_a_note(person, notes):
    export = notes.home.parent / "chat.json"
    export.write_text(json.dumps(TALK))
    notes.run("import", "messages", str(export))
    page = person.open("#/talks")
    page.get_by_role("option", name=re.compile("Which paint")).click()
    said = page.locator(".say").filter(has_text="Signal grey")
    expect(said).to_be_visible()
    assert violations(page) == []
    said.get_by_role("button", name="Keep as note").click()
    page.get_by_role("button", name="Save note").click()
    expect(page.locator(".line.chosen")).to_contain_text("Signal grey, two coats")


def test_a_recall_shows_what_was_given_and_keeps_a_verdict(person, notes):
    environment = {"PLAINMIND_HOME": str(notes.home), "HOME": str(notes.home)}
    with Memory.from_environment(
        environment, workspace=str(notes.workspace), cwd=str(notes.workspace)
    ) as memory:
        found = memory.search("who keeps the servers").hits
        agent = memory.within(THE_OWNER, asker=Asker("mcp", host="claude-code"))
        recall = agent.begin_recall("search", "who keeps the servers")
        recall.end(lines_of_hits(found[:1]) + lines_of_hits(found[1:2], "too unsure"), found[0].snippet)
    page = person.open("#/recalls")
    page.get_by_role("option", name=re.compile("who keeps the servers")).first.click()
    given = page.locator(".card").first
    expect(given).to_contain_text(found[0].path)
    expect(page.get_by_text("too unsure")).to_be_visible()
    given.get_by_role("button", name="Outdated").click()
    expect(page.locator(".card").first.get_by_role("button", name="Outdated")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert violations(page) == []
    assert "outdated" in notes.run("recalls", "--json")


def test_a_day_has_its_notes_and_leads_to_their_lines(person):
    page = person.open("#/days")
    page.get_by_role("option", name=re.compile("October 19, 2026")).click()
    expect(page.locator(".detail")).to_contain_text("The gateway lost its clock")
    assert violations(page) == []
    page.locator(".detail a.no", has_text="4").click()
    expect(line(page, 4)).to_have_attribute("aria-current", "true")
    is_shown(page, "memory/2026-10-19.md")


def test_links_are_drawn_and_the_table_says_the_same(person, notes):
    notes.write("memory/hub.md", "# Hub\n\nSee [[spoke]] and [[rim]]. #wheels\n")
    notes.write("memory/spoke.md", "# Spoke\n\nPart of [[hub]]. #wheels\n")
    notes.write("memory/rim.md", "# Rim\n\nRound.\n")
    page = person.open("#/note/memory/hub.md")
    expect(page.get_by_role("heading", name="1 place links here")).to_be_visible()
    page.get_by_role("link", name="spoke", exact=True).click()
    is_shown(page, "memory/spoke.md")
    page.get_by_role("toolbar", name="Actions").get_by_role("button", name="Links").click()
    expect(page.locator(".drawing .node")).to_have_count(2)
    page.get_by_role("button", name="Wider").click()
    expect(page.locator(".drawing .node")).to_have_count(3)
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("button", name="As a drawing")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("Hub Rim"))).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Tags").click()
    page.get_by_role("option", name=re.compile("#wheels")).click()
    expect(page.locator(".detail")).to_contain_text("Spoke")


def test_map_start_review_and_health_show_something_and_please_axe(person):
    page = person.open("#/start")
    expect(page.get_by_role("meter")).to_be_visible()
    expect(page.locator(".detail")).to_contain_text("What to remember about Mara")
    assert violations(page) == []
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_text("Nothing leaves this machine.")).to_be_visible()
    expect(page.locator(".checks li").first).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Map").click()
    page.get_by_role("button", name="As a table").click()
    expect(page.get_by_role("row").nth(10)).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Review").click()
    expect(page.locator(".pane")).to_contain_text("Review")
    expect(page.locator(".pane .waiting")).to_have_count(0)
    assert violations(page) == []


@pytest.mark.parametrize(
    ("locale", "lang", "search"),
    [("zh-CN", "zh-Hans", "搜索"), ("ja-JP", "ja", "検索"), ("de-DE", "de", "Suchen")],
)
def test_the_page_speaks_the_language_of_the_browser(person, locale, lang, search):
    page = person.open(locale=locale)
    expect(page.get_by_role("searchbox", name=search)).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == lang


@pytest.mark.parametrize(("locale", "day"), [("en-GB", "19 October 2026"), ("en-US", "October 19, 2026")])
def test_days_are_written_as_in_the_region_of_the_browser(person, locale, day):
    page = person.open("#/days/2026-10-19", locale=locale)
    expect(page.locator(".detail")).to_contain_text(day)


def test_as_the_wheel_has_it_the_page_works_too(person, notes):
    packed = all_packed()

    def answer(route):
        name = route.request.url.partition("/static/")[2]
        kind = {
            "js": "text/javascript",
            "css": "text/css",
            "json": "application/json",
            "svg": "image/svg+xml",
        }
        route.fulfill(body=packed[name], content_type=kind[name.rpartition(".")[2]])

    page = person.open("#/days", locale="ko-KR")
    page.route("**/static/**", answer)
    page.goto("about:blank")
    page.goto(f"{notes.origin}/#/note/memory/network.md:7")
    is_shown(page, "memory/network.md")
    page.get_by_role("searchbox", name="검색").fill("certificates of the sensor gateway")
    expect(page.get_by_role("option").first).to_contain_text("memory/network.md:7")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("e")
    page.keyboard.type(" 새 줄")
    page.keyboard.press("Control+s")
    expect(page.locator(".change.new")).to_contain_text("새 줄")


def test_who_may_only_read_is_offered_nothing_else(person, tmp_path):
    with PageServer(tmp_path, "--read-only") as server:
        reader = Person(person.browser, server)
        page = reader.open("#/note/memory/network.md:7")
        before = {path: path.read_bytes() for path in server.workspace.rglob("*.md")}
        is_shown(page, "memory/network.md")
        expect(page.get_by_text("read-only", exact=True)).to_be_visible()
        expect(page.get_by_role("toolbar", name="Line 7")).to_be_visible()
        for name in ("Edit", "Forget", "New note"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        for key in "efnu":
            page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("textbox", name=re.compile("^Text of"))).to_have_count(0)
        page.keyboard.press("Control+k")
        page.keyboard.type("forget")
        expect(page.get_by_role("dialog").get_by_role("option", name=re.compile("Forget"))).to_have_count(0)
        page.keyboard.press("Escape")
        page.keyboard.press("h")
        for place in ("Recalls", "Review", "Map", "Health", "Days"):
            page.get_by_role("link", name=place, exact=True).click()
            expect(page.locator(".waiting")).to_have_count(0)
            for name in ("Look now", "Accept", "Restore this version", "Outdated", "New places"):
                expect(page.get_by_role("button", name=name)).to_have_count(0)
        reader.settle()
        assert {path: path.read_bytes() for path in server.workspace.rglob("*.md")} == before


def test_a_proposal_is_read_accepted_and_on_the_disk(person, notes):
    memory = notes.read("MEMORY.md")
    said = "- The harbour master keeps bees.\n"
    notes.write("MEMORY.md", memory + said * 2)
    page = person.open("#/review")
    page.get_by_role("button", name="Look now").click()
    page.get_by_role("option", name=re.compile("Said twice")).first.click()
    expect(page.locator(".change.gone")).to_contain_text("keeps bees")
    assert violations(page) == []
    page.keyboard.press("a")
    expect(page.get_by_text("Accepted")).to_be_visible()
    assert notes.read("MEMORY.md") == memory + said
    notes.write("MEMORY.md", memory)
