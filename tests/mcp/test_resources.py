"""Memory files as resources: listed in pages, read whole or by lines, and only those that may be seen."""

import pytest
from mcp.shared.exceptions import MCPError
from tests.support.poisoned_notes import held

from plainmind.agent.scope import SearchContext
from plainmind.base.errors import NotFound
from plainmind.base.model import CitedLines
from plainmind.mcp.offers import address_of, cited_by, split_citation

GROUP = SearchContext("anna", "group", "agent:main:telegram:group:-100", "telegram", "-100")
OPEN = {"scope": {"default": "allow", "rules": []}}


async def all_pages(client):
    pages, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        pages.append([one.uri for one in page.resources])
        cursor = page.next_cursor
        if cursor is None:
            return pages


def test_every_memory_file_is_listed_with_its_size(with_client, workspace):
    listed = with_client(lambda client: client.list_resources()).resources

    assert [(one.uri, one.size) for one in listed] == [
        ("memory:///" + path, (workspace / path).stat().st_size)
        for path in ("MEMORY.md", "memory/2026-02-10.md", "memory/network.md")
    ]
    assert {one.mime_type for one in listed} == {"text/markdown"}


def test_a_long_list_comes_in_pages_and_each_file_once(with_client, workspace):
    for number in range(230):
        (workspace / "memory" / f"topic {number:03}.md").write_text("words\n")

    pages = with_client(all_pages)

    assert [len(page) for page in pages] == [100, 100, 33]
    assert len({uri for page in pages for uri in page}) == 233


def test_a_cursor_of_somebody_else_is_refused(with_client):
    async def look(client):
        with pytest.raises(MCPError) as refused:
            await client.list_resources(cursor="x!")
        return refused.value.code

    assert with_client(look) == -32602


def test_a_file_is_read_with_its_words_between_marks(with_client, workspace):
    (workspace / "memory" / "ümläut %20 & more.md").write_text("# Grüße\n\n<b>as it is</b>\n")

    async def read(client):
        uri = next(one.uri for one in (await client.list_resources()).resources if "more" in one.uri)
        return (await client.read_resource(uri)).contents

    [content] = with_client(read)

    inside, outside = held(content.text)
    assert inside.endswith("\n# Grüße\n\n<b>as it is</b>")
    assert outside == ""
    assert content.mime_type == "text/markdown"


def test_lines_are_read_by_a_citation(with_client):
    [content] = with_client(lambda client: client.read_resource("memory:///MEMORY.md#L3")).contents

    assert "\n- The printer is on VLAN 40.\n</recalled" in content.text
    assert "MEMORY.md#L3 · " in content.text


def test_the_template_makes_addresses_from_paths(with_client):
    file, day = with_client(lambda client: client.list_resource_templates()).resource_templates

    assert file.uri_template.replace("{+path}", "MEMORY.md") == address_of("MEMORY.md")
    assert day.uri_template.replace("{day}", "2026-02-10") == address_of("memory/2026-02-10.md")


@pytest.mark.parametrize(
    "uri",
    [
        "memory:///../../etc/passwd",
        "memory:///%2e%2e/%2e%2e/etc/passwd",
        "memory:////etc/passwd",
        "memory:///memory/none.md",
        "memory:///memory/x%00.md",
        "memory:///%ff.md",
        "memory:///",
        "memory://MEMORY.md",
        "file:///etc/passwd",
        "MEMORY.md",
        "https://example.org/MEMORY.md",
        "",
    ],
)
def test_nothing_but_memory_files_can_be_read(with_client, uri):
    async def read(client):
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
        return refused.value

    refused = with_client(read)

    assert refused.code == -32602
    assert "root:" not in refused.message


def test_a_conversation_that_is_denied_gets_no_list_and_no_file(with_client):
    async def look(client):
        refusals = []
        for ask in (client.list_resources(), client.read_resource("memory:///MEMORY.md")):
            with pytest.raises(MCPError) as refused:
                await ask
            refusals.append(refused.value.message)
        return refusals

    refusals = with_client(look, context=GROUP)

    assert all("scope.rules" in refusal for refusal in refusals)


def test_a_group_sees_its_own_files_alone(with_client, workspace):
    from plainmind import Memory

    own = workspace / "memory" / "shared-with" / "group--100"
    own.mkdir(parents=True)
    (own / "2026-02-10.md").write_text("- The group meets on Tuesday.\n")

    async def look(client):
        uris = [one.uri for one in (await client.list_resources()).resources]
        with pytest.raises(MCPError):
            await client.read_resource("memory:///MEMORY.md")
        return uris, (await client.read_resource(uris[0])).contents[0].text

    with Memory(config=OPEN) as memory:
        uris, text = with_client(look, context=GROUP, of=memory)

    assert uris == ["memory:///memory/shared-with/group--100/2026-02-10.md"]
    assert "\n- The group meets on Tuesday.\n</recalled" in text


def test_addresses_lead_back_to_what_they_were_made_from():
    for path in ("MEMORY.md", "memory/a b.md", "memory/50%.md", "memory/#1?.md", "memory/日記.md"):
        assert cited_by(address_of(path)) == path
        assert cited_by(address_of(path, str(CitedLines("", 3, 7)))) == path + "#L3-L7"
    assert str(CitedLines("", 5, 5)) == "#L5"
    assert split_citation("memory/#1.md#L12-L15") == ("memory/#1.md", 12)
    assert split_citation("MEMORY.md") == ("MEMORY.md", 1)
    with pytest.raises(NotFound):
        cited_by("memory:///%ff")
