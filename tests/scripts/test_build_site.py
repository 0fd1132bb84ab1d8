"""Links of the site lead to where its pages stand, and nothing is loaded from elsewhere."""

from __future__ import annotations

import build_site
import pytest

PLACES = {
    "docs/index.md": "index.md",
    "docs/guides/mcp.md": "guides/mcp.md",
    "docs/guides/install.md": "guides/install.md",
    "docs/decisions/index.md": "decisions/index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}


@pytest.mark.parametrize(
    ("path", "link", "wanted"),
    [
        ("docs/guides/mcp.md", "[Install](install.md#extras)", "[Install](install.md#extras)"),
        ("docs/guides/mcp.md", "[us](../../CONTRIBUTING.md)", "[us](../CONTRIBUTING.md)"),
        ("CONTRIBUTING.md", "[a page](docs/guides/mcp.md)", "[a page](guides/mcp.md)"),
        ("docs/index.md", "[why](decisions/)", "[why](decisions/index.md)"),
        ("docs/guides/mcp.md", "[code](../../examples/provider)", "code"),
        ("docs/index.md", "[gone](guides/gone.md)", "[gone](guides/gone.md)"),
        ("docs/index.md", "[far](https://example.org/a.md)", "[far](https://example.org/a.md)"),
        ("docs/index.md", "![picture](speed.svg)", "![picture](speed.svg)"),
        ("docs/index.md", "[below](#below)", "[below](#below)"),
    ],
)
def test_a_link_leads_to_where_the_page_stands(path, link, wanted):
    assert build_site.on_the_site(f"See {link}.", path, PLACES) == f"See {wanted}."


def test_every_page_is_in_the_table_of_contents():
    listed = {f"{name}.md" for name in build_site.contents().split()}

    assert set(build_site.pages()) - {"index.md"} <= listed


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('<a href="https://example.org">a link</a><script src="_static/own.js"></script>', 0),
        ('<script async src="https://cdn.example/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//fonts.example/css">', 1),
        ("@import url(https://fonts.example/css);", 1),
    ],
)
def test_what_another_host_would_be_asked_for_is_found(tmp_path, text, faults):
    (tmp_path / "page.html").write_text(text)

    assert len(list(build_site.loaded_from_elsewhere(tmp_path))) == faults
