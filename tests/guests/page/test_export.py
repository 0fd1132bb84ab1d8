"""One file to take away: read and searched without a server, with nothing loaded, and without what is private."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.support.page_in_browser import PageServer, launch, needs_browser


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """A workspace with private and shared notes; nothing is served."""
    notes = PageServer(tmp_path_factory.mktemp("page"))
    notes.write(
        "memory/shared-with/everyone/pier.md",
        "# The pier\n\n- Painted signal grey. </script><img src=x onerror=alert(1)>\n- See [[crane]]. #harbour\n",
    )
    notes.write("memory/shared-with/everyone/crane.md", "# 起重机\n\n- 起重机每年四月检查。\n")
    notes.write("memory/shared-with/group-7/plans.md", "- For one group alone.\n")
    return notes


def export(notes, *options):
    target = notes.home.parent / f"out{len(options)}.html"
    notes.run("page", "--export", str(target), *options)
    return target


def test_private_notes_stay_at_home_unless_asked(notes):
    shared = export(notes).read_text("utf-8")
    assert "Painted signal grey" in shared
    assert "Jonas Weber" not in shared
    assert "For one group alone" not in shared
    assert "Jonas Weber" in export(notes, "--with-private").read_text("utf-8")


@needs_browser
def test_the_file_is_searched_and_read_without_a_server(notes):
    target = export(notes, "--force")
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_context(locale="en-US").new_page()
        asked, errors = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.goto(target.as_uri())
        expect(page.get_by_role("option")).to_have_count(2)
        expect(page.locator(".welcome p")).to_have_text("What your agents know, in plain files.")
        assert page.locator(".welcome kbd").all_inner_texts() == ["/", "↑ ↓", "⏎", "⌃K"]
        page.keyboard.press("Escape")
        page.locator(".detail").click()
        page.keyboard.press("?")
        assert page.locator("dialog kbd").all_inner_texts() == ["/", "↑ ↓", "⏎", "w", "⌃K", "?"]
        page.get_by_role("button", name="Close").click()
        page.get_by_role("searchbox").fill("which grey is the pier painted")
        expect(page.get_by_role("option").first).to_contain_text("pier.md:3")
        page.keyboard.press("ArrowDown")
        expect(page.locator("#L3")).to_contain_text("<img src=x onerror=alert(1)>")
        page.get_by_role("link", name="crane").click()
        expect(page.get_by_role("heading", name=re.compile("place links here"))).to_be_visible()
        page.get_by_role("searchbox").fill("起重机 检查")
        expect(page.get_by_role("option").first).to_contain_text("crane.md:3")
        page.get_by_role("link", name="Tags").click()
        page.get_by_role("option", name=re.compile("#harbour")).click()
        expect(page.locator(".detail")).to_contain_text("The pier")
        for name in ("Edit", "Forget", "New note", "History"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        assert page.get_by_role("link", name="Recalls").count() == 0
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        assert errors == []
        browser.close()
