"""Take the pictures of the page that the documentation shows: `python -m tests.guests.page.pictures`.

Look at them before they are kept: what is ugly, cut off or unclear is to be mended in the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tests.support.page_in_browser import PageServer, Person, launch

IMAGES = Path(__file__).parents[3] / "docs" / "images"
WIDE = {"viewport": {"width": 1240, "height": 760}}
NARROW = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}


def search(person):
    page = person.open(**WIDE)
    page.get_by_role("searchbox").fill("who renews the certificates?")
    expect(page.get_by_role("option").first).to_contain_text("certificates")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".why")).to_be_visible()
    page.keyboard.press("w")
    return page


def edit(person):
    page = person.open("#/note/memory/network.md:7", **WIDE)
    expect(page.locator("#L7")).to_have_attribute("aria-current", "true")
    page.keyboard.press("e")
    field = page.get_by_role("textbox", name="Text of memory/network.md")
    field.fill(field.input_value().replace("each March", "each April"))
    page.keyboard.press("Control+s")
    expect(page.get_by_role("button", name="Save")).to_be_focused()
    return page


def forget(person):
    page = person.open("#/note/memory/people.md:5", color_scheme="dark", **WIDE)
    expect(page.locator("#L5")).to_have_attribute("aria-current", "true")
    page.keyboard.press("f")
    expect(page.get_by_role("button", name="Forget for good")).to_be_enabled()
    return page


def narrow(person):
    page = person.open(locale="zh-CN", **NARROW)
    page.get_by_role("searchbox").fill("传感器 网关")
    expect(page.get_by_role("option").first.locator("mark").first).to_be_visible()
    page.get_by_role("option").first.click()
    expect(page.locator(".line.chosen")).to_be_visible()
    return page


PICTURES = {
    "page-search": search,
    "page-edit": edit,
    "page-forget-dark": forget,
    "page-narrow-zh": narrow,
}


def main():
    place = tempfile.TemporaryDirectory(prefix="plainmind-pictures-")
    with place as folder, PageServer(Path(folder)) as server, sync_playwright() as playwright:
        browser = launch(playwright)
        person = Person(browser, server)
        for name, show in PICTURES.items():
            page = show(person)
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / f"{name}.png")
            person.settle()
        browser.close()


if __name__ == "__main__":
    main()
