"""The view inside a host of MCP Apps: offered to those who show one, driven by the extension's own bridge."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from pack_page import all_packed
from playwright.sync_api import expect, sync_playwright
from tests.support.mcp_process import INITIALIZE, McpProcess
from tests.support.page_in_browser import EXAMPLES, HAS_BROWSER, launch, needs_browser

from plainmind.guests.page.bundle import as_function, one_script
from plainmind.mcp.desk import APP_KIND, APPS, VIEW_ADDRESS

NODE = Path(__file__).parents[2] / "support" / "node"
MODULES = NODE / "node_modules"
SHOWS_APPS = {**INITIALIZE, "capabilities": {"extensions": {APPS: {"mimeTypes": [APP_KIND]}}}}
# What the extension asks of a host for a view that declares nothing.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
needs_bridge = pytest.mark.skipif(
    shutil.which("npm") is None, reason="without npm there is no bridge of the extension"
)


class Server:
    """`plainmind mcp` over a copy of the example workspace, greeted as a client greets it."""

    def __init__(self, folder, greeting):
        self.notes = folder / "notes"
        if not self.notes.exists():
            shutil.copytree(EXAMPLES, self.notes)
        self._process = McpProcess("--workspace", self.notes, "--home", folder / "home")
        self._asked = 0
        self.introduction = self.ask("initialize", **greeting)["result"]
        self._process.tell("notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.end()
        self._process.__exit__()

    def ask(self, method, **params):
        self._asked += 1
        return self._process.ask(self._asked, method, **params)

    def call(self, name, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("hosted"), SHOWS_APPS) as server:
        yield server


def view_of(server):
    (view,) = server.ask("resources/read", uri=VIEW_ADDRESS)["result"]["contents"]
    return view


def test_a_client_that_shows_apps_is_offered_the_view(server):
    assert server.introduction["capabilities"]["extensions"] == {APPS: {}}
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
    for name in ("memory_search", "memory_get"):
        assert tools[name]["_meta"]["ui"] == {"resourceUri": VIEW_ADDRESS}
    assert tools["memory_page"]["_meta"]["ui"]["visibility"] == ["app"]
    assert "ui" not in tools["memory_append"].get("_meta", {})
    view = view_of(server)
    assert (view["uri"], view["mimeType"]) == (VIEW_ADDRESS, APP_KIND)
    assert view["text"].startswith("<!doctype html>")
    assert not re.search(r'(?:src|href)="(?!#)|url\(|@import', view["text"].split("<script")[0])


def test_other_clients_hear_nothing_of_it(tmp_path):
    other = {**INITIALIZE, "capabilities": {"extensions": {APPS: {"mimeTypes": ["text/plain"]}}}}
    for greeting in (INITIALIZE, other):
        with Server(tmp_path, greeting) as server:
            assert "extensions" not in server.introduction["capabilities"]
            tools = server.ask("tools/list")["result"]["tools"]
            assert not any("ui" in tool.get("_meta", {}) for tool in tools)
            assert "memory_page" not in {tool["name"] for tool in tools}
            assert "error" in server.ask("resources/read", uri=VIEW_ADDRESS)
            assert "error" in server.call("memory_page", method="GET", path="/v1/notes")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/notes"),
        ("PUT", "/v1/notes/MEMORY.md"),
        ("POST", "/v1/forget"),
        ("GET", "/v1/settings"),
        ("POST", "/v1/codes"),
        ("GET", "/v1/notes/..%2f..%2fhome%2fmcp-token"),
        ("GET", "/v1/notes/"),
        ("GET", "http://elsewhere"),
        (7, None),
    ],
)
def test_the_view_can_only_look(server, method, path):
    before = (server.notes / "MEMORY.md").read_bytes()
    told = server.call("memory_page", method=method, path=path, body={"text": "mine"})["result"]
    assert told["isError"]
    assert told["structuredContent"]["status"] in {400, 403, 404}
    assert (server.notes / "MEMORY.md").read_bytes() == before


def test_the_view_sees_no_secret(server):
    hidden = "ghp_" + "a1B2" * 9
    (server.notes / "memory" / "key.md").write_text(f"# Key\n\n- The deploy key is {hidden}.\n")
    read = server.call("memory_page", method="GET", path="/v1/notes/memory/key.md")["result"]
    assert "The deploy key is" in read["structuredContent"]["answer"]["text"]
    assert hidden not in json.dumps(read)


@pytest.fixture(scope="module")
def browser():
    if not HAS_BROWSER:
        pytest.skip("there is no chromium")
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


class Host:
    """A host page with the extension's bridge, and a real server behind it."""

    def __init__(self, browser, server, **context):
        self._server = server
        self.page = browser.new_context(viewport={"width": 900, "height": 800}, locale="en-US").new_page()
        self.asked, self.errors = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.route("http://host.test/**", self._give)
        self.page.expose_function("callTool", self._call)
        self.page.goto("http://host.test/")
        self.page.wait_for_function("window.isReady")
        self.view = self.page.frame_locator("iframe")

    def _give(self, route):
        name = route.request.url.removeprefix("http://host.test/")
        if not name.startswith("m/"):
            route.fulfill(body=(NODE / "host.html").read_text(), content_type="text/html")
            return
        route.fulfill(body=(MODULES / name[2:]).read_bytes(), content_type="text/javascript")

    def _call(self, params):
        return self._server.call(params["name"], **params.get("arguments", {}))["result"]

    def begin(self, html, *, capabilities=None, **context):
        """Show the view, as a host does: in a sandbox, with the policy of the extension."""
        guarded = html.replace(
            "<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1
        )
        able = {"serverTools": {}, "openLinks": {}} if capabilities is None else capabilities
        return self.page.evaluate(
            "([html, able, context]) => begin(html, able, context)", [guarded, able, context]
        )

    def tell(self, what, params):
        self.page.evaluate("([what, params]) => bridge[what](params)", [what, params])

    def close(self):
        self.page.context.close()
        assert [url for url in self.asked if not url.startswith(("http://host.test/", "about:"))] == []
        assert self.errors == []


@pytest.fixture
def host(browser, server):
    assert (MODULES / ".installed-from").exists(), "run `make node` first"
    host = Host(browser, server)
    yield host
    host.close()


@needs_browser
@needs_bridge
def test_what_the_agent_searched_for_is_found_and_read_in_the_host(host, server):
    met = host.begin(
        view_of(server)["text"], theme="dark", locale="en-GB", containerDimensions={"maxHeight": 480}
    )
    assert met["name"] == "plainmind"
    host.tell("sendToolInput", {"arguments": {"query": "certificates of the sensor gateway"}})
    first = host.view.get_by_role("option").first
    expect(first).to_contain_text("memory/network.md:7")
    expect(first.locator("mark").first).to_be_visible()
    expect(host.view.get_by_role("searchbox")).to_have_value("certificates of the sensor gateway")
    assert host.page.evaluate("said.sizes") == [480]
    first.click()
    expect(host.view.locator("#L7")).to_have_attribute("aria-current", "true")
    expect(host.view.locator("html")).to_have_attribute("data-theme", "dark")
    for name in ("Edit", "Forget", "New note"):
        expect(host.view.get_by_role("button", name=name)).to_have_count(0)
    host.view.get_by_role("button", name="Back").click()
    host.view.get_by_role("searchbox").fill("who is Jonas Weber")
    expect(host.view.get_by_role("option").first.locator("mark").first).to_be_visible()
    host.tell("setHostContext", {"theme": "light"})
    expect(host.view.locator("html")).to_have_attribute("data-theme", "light")
    assert host.page.evaluate("bridge.teardownResource({})") == {}


@needs_browser
@needs_bridge
def test_what_the_agent_read_is_shown_and_links_are_the_hosts_to_open(host, server):
    (server.notes / "memory" / "linked.md").write_text(
        "# Linked\n\n- One [page](https://example.com/) and [[network]].\n- <img src=x onerror=alert(1)>\n"
    )
    host.begin(view_of(server)["text"], locale="de-DE")
    host.tell("sendToolInput", {"arguments": {"path": "memory/linked.md", "from": 3, "lines": 2}})
    expect(host.view.locator("#L4")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(host.view.locator("html")).to_have_attribute("lang", "de")
    host.view.get_by_role("link", name="page", exact=True).click()
    expect(host.view.locator("#L3")).to_be_visible()
    assert host.page.evaluate("said.links") == ["https://example.com/"]
    host.view.get_by_role("link", name="network", exact=True).click()
    expect(host.view.get_by_role("heading", name="network.md")).to_be_visible()


@needs_browser
@needs_bridge
def test_in_a_host_that_passes_nothing_on_the_view_shows_what_the_agent_was_given(host, server):
    host.begin(view_of(server)["text"], capabilities={}, theme="light")
    asked = {"query": "certificates of the sensor gateway"}
    host.tell("sendToolInput", {"arguments": asked})
    host.tell("sendToolResult", server.call("memory_search", **asked)["result"])
    expect(host.view.locator(".given")).to_contain_text("memory/network.md")


def test_all_modules_are_in_the_one_script_as_they_are_and_as_the_wheel_has_them():
    packed = {name: text.decode() for name, text in all_packed().items() if name.endswith(".js")}
    whole = one_script("hosted.js")
    for script in (whole, *(as_function(name, text) for name, text in packed.items())):
        assert not re.search(r"(?:^|[;}])\s*(?:import|export)\b", script, re.MULTILINE)
    assert whole.count("modules[") == len(packed) + 1
