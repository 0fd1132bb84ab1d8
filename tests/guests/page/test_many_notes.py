"""A memory that has grown large, in a real browser: what a search costs, what is drawn, and what is left behind.

`PLAINMIND_PAGE=full` makes 100,000 notes and 1,000 searches of it, and prints the figures (half an hour).
"""

from __future__ import annotations

import os
import random
import time

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.support.page_in_browser import PageServer, Person, launch, needs_browser

pytestmark = [needs_browser, pytest.mark.timeout(7200)]

FULL = os.environ.get("PLAINMIND_PAGE") == "full"
NOTES, SEARCHES = (100_000, 1_000) if FULL else (300, 12)
MOST_CPU_MS = 150  # for the first results of a search, of the server and of the page together
WORDS = (  # noqa: SIM905 (a list of them is no easier to read)
    "gateway printer harbour lighthouse keeper marzipan engine sensor certificate calendar invoice bicycle dentist"
    " garden tomato recipe espresso server backup router firewall compiler ledger budget mortgage holiday passport"
    " ferry island mountain stove violin rehearsal concert novel library archive museum platform luggage umbrella"
    " winter candle lantern workshop hammer timber varnish anchor rudder compass storm bridge tunnel meadow orchard"
    " tractor harvest barley honey"
).split()


def write_notes(folder, count):
    chance = random.Random(7)
    for number in range(count):
        place = folder / "memory" / f"{number // 1_000:03}"
        place.mkdir(parents=True, exist_ok=True)
        one, two, three, four, five, six = chance.sample(WORDS, 6)
        (place / f"note-{number:06}.md").write_text(
            f"# {one.capitalize()} {number}\n\n- The {two} near the {three} has number {number}.\n"
            f"- {four.capitalize()} and {five} were seen with the {six}.\n"
        )
    return folder


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    notes = folder / "notes"
    notes.mkdir()
    server = PageServer(folder, workspace=write_notes(notes, NOTES))
    server.run("sync", timeout=3600)
    with server, sync_playwright() as playwright:
        browser = launch(playwright)
        yield Person(browser, server)
        browser.close()


class Meter:
    """What a tab and the server have used so far."""

    def __init__(self, page, server):
        self._line = page.context.new_cdp_session(page)
        self._browser = page.context.browser.new_browser_cdp_session()
        self._server = server

    def cpu_ms(self):
        """Processor time of the tab's processes and of the server, in milliseconds."""
        told = self._browser.send("SystemInfo.getProcessInfo")["processInfo"]
        of_tabs = sum(one["cpuTime"] for one in told if one["type"] == "renderer")
        with open(f"/proc/{self._server.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return of_tabs * 1000, (int(user) + int(system)) * 1000 / os.sysconf("SC_CLK_TCK")

    def settle(self):
        """Wait until both have done what there was to do: the links of all notes are read once, beside all else."""
        calm = 0
        while calm < 2:
            before = sum(self.cpu_ms())
            time.sleep(1)
            calm = calm + 1 if sum(self.cpu_ms()) - before < 100 else 0

    def heap(self):
        """Bytes that the page still holds once what is garbage has gone."""
        self._line.send("HeapProfiler.collectGarbage")
        return self._line.send("Runtime.getHeapUsage")["usedSize"]

    def resident(self):
        """Bytes of the server."""
        with open(f"/proc/{self._server.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def ask(page, question):
    """Type a question, and wait until the answer to it is drawn."""
    with page.expect_response("**/v1/search"):
        page.get_by_role("searchbox").fill(question)
    expect(page.locator(".search")).not_to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("option").first.locator("mark").first).to_be_visible()


def count_nodes(page):
    return page.evaluate("document.getElementsByTagName('*').length")


def test_first_results_cost_little_and_searches_leave_nothing_behind(person):
    page = person.open()
    meter = Meter(page, person.server)
    chance = random.Random(11)
    for _ in range(4):
        ask(page, " ".join(chance.sample(WORDS, 3)))
    heaps, sizes, nodes = [meter.heap()], [meter.resident()], [count_nodes(page)]
    page_before, server_before = meter.cpu_ms()
    for number in range(1, SEARCHES + 1):
        ask(page, " ".join(chance.sample(WORDS, 3)))
        if number % (SEARCHES // 4) == 0:
            heaps.append(meter.heap())
            sizes.append(meter.resident())
            nodes.append(count_nodes(page))
    page_after, server_after = meter.cpu_ms()
    of_page, of_server = ((page_after - page_before) / SEARCHES, (server_after - server_before) / SEARCHES)
    print(
        f"{NOTES:,} notes, {SEARCHES:,} searches: {of_server:.1f} ms of the server, {of_page:.1f} ms of the page each;"
        f" the tab's heap {[round(one / 1e6, 2) for one in heaps]} MB, the server {[one >> 20 for one in sizes]} MB"
    )
    assert heaps[-1] < heaps[1] * 1.1 + 300_000
    assert nodes[-1] < nodes[0] * 1.5
    assert sizes[-1] < sizes[1] * 1.1 + (30 << 20)
    if FULL:
        assert of_page + of_server < MOST_CPU_MS


def test_of_so_many_notes_only_a_window_is_drawn(person):
    page = person.open()
    meter = Meter(page, person.server)
    rows = page.get_by_role("option")
    expect(rows.first).to_have_attribute("aria-setsize", str(NOTES))
    page_before, server_before = meter.cpu_ms()
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    expect(page.locator(f"[aria-posinset='{NOTES}']")).to_contain_text("note-")
    drawn = []
    for _ in range(40 if FULL else 10):
        page.keyboard.press("PageUp")
        drawn.append(rows.count())
    page.keyboard.press("Home")
    expect(page.locator("[aria-posinset='1']")).to_contain_text("note-")
    page_after, server_after = meter.cpu_ms()
    print(
        f"to the end, some pages up and back: {server_after - server_before:.0f} ms of the server,"
        f" {page_after - page_before:.0f} ms of the page, at most {max(drawn)} rows drawn"
    )
    assert max(drawn) < 40


def test_what_an_editor_writes_appears_within_a_second(person):
    """Processor time counts, which others do not use up; the time on the clock is printed."""
    page = person.open("#/note/memory/000/note-000007.md")
    expect(page.locator("#L1")).to_be_visible()
    expect(page.get_by_title("live")).to_be_visible(timeout=120_000)
    meter = Meter(page, person.server)
    for number, name in enumerate(("000/note-000007.md", "000/note-000007.md", f"000/new-{NOTES}.md")):
        meter.settle()
        begun, before = time.monotonic(), sum(meter.cpu_ms())
        person.server.write(f"memory/{name}", f"# Edition {number}\n\n- The tide is {number} metres high.\n")
        expect(page.get_by_role("option").first).to_contain_text(f"Edition {number}")
        if number < 2:
            expect(page.locator("#L3")).to_contain_text(f"is {number} metres")
        took, cpu = time.monotonic() - begun, sum(meter.cpu_ms()) - before
        print(f"{name} is shown {took:.2f} s after it was written, {cpu:.0f} ms of the processor")
        assert cpu < 1_000
    person.server.path(f"memory/000/new-{NOTES}.md").unlink()
