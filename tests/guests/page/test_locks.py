"""Who does not get in: other pages and hosts, old codes, tokens without the right, paths and bodies that would harm."""

import contextlib
import json
import os
import resource
import socket
import stat
import subprocess
import threading
import time

import pytest
from tests.guests.page.conftest import write_notes
from tests.support.mcp_process import COMMAND
from tests.support.page_server import PageServer

from plainmind.agent.scope import THE_OWNER
from plainmind.base.errors import PlainmindError
from plainmind.guests.page.gate import Callers, PageSessions, TokenFile
from plainmind.guests.page.server import STATIC

pytestmark = pytest.mark.timeout(90)

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


# --- other pages and other hosts ---


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:1"},  # a page of another port
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},  # what a browser says of another port of 127.0.0.1
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("target", ["/v1/notes", "/v1/session", "/v1/events", "/static/app.js"])
def test_a_page_of_another_origin_gets_nothing_even_with_the_token(served, headers, target):
    answer = served.ask("GET", target, headers=headers)

    assert (answer.status, answer.kind) == (403, "origin")
    assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_of_another_origin_is_refused_and_nothing_allows_one(served):
    answer = served.ask(
        "OPTIONS",
        "/v1/notes",
        token=None,
        headers={"Origin": "http://127.0.0.1:1", "Access-Control-Request-Method": "POST"},
    )

    assert answer.status == 403
    assert not any(name.startswith("access-control-") for name in answer.headers)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example", "", None]
)
def test_another_host_gets_nothing(served, host):
    if host is None:
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:
            line.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b" 403 " in line.recv(65_536).split(b"\r\n")[0]
        return
    for target in ("/", "/v1/notes"):
        answer = served.ask("GET", target, headers={"Host": host})
        assert (answer.status, answer.kind) == (403, "host")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LocalHost"])
def test_the_names_of_this_machine_are_its_own(served, name):
    assert served.ask("GET", "/v1/session", headers={"Host": f"{name}:{served.port}"}).status == 200


def test_the_page_says_what_it_may_load_and_no_answer_sets_a_cookie(served):
    page = served.ask("GET", "/", token=None)

    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    for answer in (page, served.ask("GET", "/v1/session"), served.ask("GET", "/v1/nothing")):
        assert answer.headers["content-security-policy"] == policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in answer.headers
    assert served.ask("GET", "/v1/session").headers["cache-control"] == "no-store"


# --- tokens, codes and rights ---


@pytest.mark.parametrize("token", [None, "", "wrong", "pm_" + "x" * 43, "é", "x" * 100_000])
def test_nothing_is_told_without_a_token(served, token):
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}

    for method, target, body in (
        ("GET", "/v1/notes", None),
        ("GET", "/v1/status", None),
        ("GET", "/v1/events", None),
        ("POST", "/v1/search", {"query": "printer"}),
        ("POST", "/v1/codes", {}),
    ):
        with contextlib.suppress(ConnectionError):  # a header beyond all measure is not answered at all
            answer = served.ask(method, target, body, token=None, headers=headers)
            assert answer.status in {400, 401, 431}
            assert b"VLAN" not in answer.body


def test_a_code_opens_one_session_and_only_from_the_page_itself(served):
    code = served.new_code()
    elsewhere = [
        served.begin(code, **{"Sec-Fetch-Site": site}) for site in ("cross-site", "same-site", "none", None)
    ]
    first, second = served.begin(code), served.begin(code)

    assert [answer.status for answer in elsewhere] == [403] * 4
    assert first.status == 201
    assert (second.status, second.kind) == (401, "code")
    assert served.begin("never given").status == 401
    token = first.json["token"]
    assert served.ask("DELETE", "/v1/session", token=token).status == 204
    after = served.ask("GET", "/v1/notes", token=token)
    assert (after.status, after.kind) == (401, "session-over")


def test_a_code_is_too_old_after_a_minute_and_a_session_after_half_a_day_without_use():
    clock = Clock()
    sessions = PageSessions(frozenset({"read"}), clock)
    old, _ = sessions.make_code()
    clock.now += 61
    assert sessions.begin(old) is None

    code, seconds = sessions.make_code()
    token, _ = sessions.begin(code)
    for _ in range(3):
        clock.now += 11 * 3600
        assert sessions.find(token) is not None  # it is used, and lasts
    clock.now += 12 * 3600 + 1
    assert sessions.find(token) is None
    assert seconds == 60
    for _ in range(2000):
        sessions.make_code()
    assert len(vars(sessions)["_codes"]) <= 32  # whoever asks for codes without end fills nothing


def test_a_session_ends_after_a_week_however_much_it_is_used():
    clock = Clock()
    sessions = PageSessions(frozenset({"read"}), clock)
    token, _ = sessions.begin(sessions.make_code()[0])
    for _ in range(15):
        clock.now += 11 * 3600
        assert sessions.find(token) is not None
    clock.now += 11 * 3600

    assert sessions.find(token) is None


NEEDS = [
    ("GET", "/v1/notes", None, "read"),
    ("GET", "/v1/events", None, "read"),
    ("POST", "/v1/search", {"query": "x"}, "read"),
    ("POST", "/v1/notes", {"text": "x"}, "write"),
    ("PUT", "/v1/notes/memory/x.md", {"text": "x"}, "write"),
    ("PATCH", "/v1/notes/MEMORY.md", {"old": "VLAN", "new": "LAN"}, "write"),
    ("POST", "/v1/undo", {}, "write"),
    ("POST", "/v1/history/x/restore", {}, "write"),
    ("POST", "/v1/entries", {"text": "x"}, "write"),
    ("POST", "/v1/map", {}, "write"),
    ("POST", "/v1/forget", {"what": "VLAN"}, "forget"),
    ("POST", "/v1/forget", {"code": "x"}, "forget"),
    ("POST", "/v1/recalls/x/verdict", {"verdict": "useful"}, "review"),
    ("POST", "/v1/entries/x/accept", {}, "review"),
    ("POST", "/v1/proposals/x/accept", {}, "review"),
    ("POST", "/v1/upkeep", {}, "review"),
    ("POST", "/v1/codes", {}, "open"),
]


def test_a_token_can_do_what_it_has_the_right_for_and_nothing_else(served):
    rights = ("read", "write", "forget", "review")
    file = TokenFile(str(served.home))
    tokens = {
        right: file.add(f"no-{right}", [one for one in rights if one != right], THE_OWNER, "today")
        for right in (*rights, "open")
    }
    before = (served.workspace / "MEMORY.md").read_bytes()

    for method, target, body, right in NEEDS:
        answer = served.ask(method, target, body, token=tokens[right])
        assert (answer.status, answer.kind) == (403, "forbidden"), target
        assert answer.json["right"] == right
    assert (served.workspace / "MEMORY.md").read_bytes() == before
    assert served.ask("GET", "/v1/notes", token=tokens["write"]).status == 200


def test_a_token_is_made_listed_and_revoked_while_the_server_runs(served):
    made = json.loads(served.run("tokens", "add", "phone", "--json", "--rights", "read,write"))

    assert served.ask("GET", "/v1/notes", token=made["token"]).status == 200
    listed = served.run("tokens", "list")
    assert "phone  read, write  the owner" in listed
    assert made["token"] not in listed
    served.run("tokens", "revoke", "phone")
    assert served.ask("GET", "/v1/notes", token=made["token"]).status == 401
    unknown = "this token is not known here: it was revoked, or is of another home"
    for token in (made["token"], "pmt_none"):
        wrong = served.ask("GET", "/v1/notes", token=token)
        assert (wrong.status, wrong.kind, wrong.json["detail"]) == (401, "unauthorized", unknown)
        assert "`plainmind tokens`" in wrong.json["hint"]
    none = served.ask("GET", "/v1/notes", token=None)
    assert (none.status, none.kind, none.json["detail"]) == (401, "unauthorized", "a bearer token is needed")


def test_every_operation_is_in_the_list_of_those_that_need_a_right():
    from plainmind.guests.page.table import operations

    writing = {(one.method, one.path) for one in operations() if one.right not in {"", "any", "read"}}
    tried = {(method, right) for method, _, _, right in NEEDS}

    assert {(one.method, one.right) for one in operations() if one.right not in {"", "any"}} <= tried
    assert all(method != "GET" for method, _ in writing)


def test_only_hashes_of_tokens_are_kept_and_only_their_owner_can_read_them(tmp_path):
    tokens = TokenFile(str(tmp_path))
    token = tokens.add("one", ("read",), THE_OWNER, "2026-11-16")

    file = tmp_path / "page" / "tokens.json"
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tokens.find(token).name == "one"
    for wrong in ("two words", "", "../x", "one"):
        with pytest.raises(PlainmindError):
            tokens.add(wrong, ("read",), THE_OWNER, "2026-11-16")


def test_a_damaged_file_of_tokens_shuts_out_programs_and_not_the_page(written):
    file = written.home / "page" / "tokens.json"
    before = file.read_bytes() if file.exists() else None
    file.write_text("{")
    try:
        program = written.ask("GET", "/v1/notes", token="pm_whatever")
        assert (program.status, "cannot be understood" in program.json["detail"]) == (400, True)
        assert written.ask("GET", "/v1/notes").status == 200
    finally:
        file.unlink()
        if before is not None:
            file.write_bytes(before)


def test_with_read_only_every_token_can_only_read(tmp_path):
    tokens = TokenFile(str(tmp_path))
    token = tokens.add("all", ("read", "write", "forget", "review"), THE_OWNER, "2026-11-16")
    callers = Callers(PageSessions(frozenset({"read"})), tokens, "secret", read_only=True)

    assert callers.find(token).rights == {"read"}


def test_a_server_that_is_read_only_says_so_and_changes_nothing(tmp_path):
    notes = write_notes(tmp_path / "notes")
    with PageServer(notes, tmp_path / "home", "--read-only") as server:
        server.sign_in()
        refused = server.ask("POST", "/v1/notes", {"text": "x"})

        assert server.get("/v1/session")["rights"] == ["read"]
        assert (refused.status, "--read-only" in refused.json["detail"]) == (403, True)
        assert not (notes / "memory" / f"{server.get('/v1/session')['today']}.md").exists()
        token = (server.home / "mcp-token").read_text().strip()
        tools = server.ask_mcp(token, "tools/list")["tools"]
        assert {tool["name"] for tool in tools} >= {"memory_search", "memory_get"}
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
        asked = {"name": "memory_append", "arguments": {"text": "x"}}
        assert "no tool" in server.ask_mcp(token, "tools/call", asked)["message"]
        assert sorted(os.listdir(notes / "memory")) == ["2026-11-15.md", "gateway.md", "network.md"]


# --- paths and bodies ---


@pytest.mark.parametrize(
    "path",
    [
        "..%2f..%2f..%2fetc%2fpasswd", "../home/page/tokens.json", "memory/..%2f..%2fhome%2fmcp-token",
        "%2fetc%2fpasswd", "memory%5c..%5c..%5cx.md", "memory/%00.md", "....//....//etc/passwd",
        "memory/link.md", "memory/linked/x.md", "..%2foutside%2fx.md", "memory%2f..%2f..%2foutside%2fx.md",
        "..%2Foutside%2Fnew.md",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_memory(served, path):
    secret = served.workspace.parent / "outside"
    secret.mkdir(exist_ok=True)
    (secret / "x.md").write_text("outside")
    with contextlib.suppress(FileExistsError):
        os.symlink(secret / "x.md", served.workspace / "memory" / "link.md")
        os.symlink(secret, served.workspace / "memory" / "linked")

    for method, body, headers in (
        ("GET", None, {}),
        ("PUT", {"text": "mine\n"}, {"If-None-Match": "*"}),
        ("PATCH", {"old": "outside", "new": "mine"}, {}),
    ):
        answer = served.ask(method, f"/v1/notes/{path}", body, headers=headers)
        assert answer.status in {400, 403, 404, 412, 503}, (method, answer.body)
        assert b"root:" not in answer.body
        assert b"outside" not in answer.body or b"is not" in answer.body
    assert (secret / "x.md").read_text() == "outside"
    assert sorted(os.listdir(secret)) == ["x.md"]


def test_no_address_leads_out_of_the_folder_of_the_page(served):
    """The files outside have names that could be sent, so that only the folder keeps them in."""
    outside = served.workspace.parent / "outside.json"
    outside.write_text('"outside"')
    up = os.path.relpath(outside, STATIC)
    assert (
        outside.samefile(os.path.join(STATIC, up)),
        served.ask("GET", "/static/texts/en.json").status,
    ) == (True, 200)

    for target in (
        f"/static/{up}", f"/static/{up.replace('/', '%2f')}", f"/static/{up.replace('..', '%2e%2e')}",
        f"/static/{outside}", f"/static/%2f{str(outside)[1:]}", f"/{outside}", f"/static/texts/../{up}",
        f"/static/texts/..%2f{up}", "/static/../server.py", "/server.py", "/static/", "/static/texts",
    ):  # fmt: skip
        answer = served.ask("GET", target, token=None)
        assert (answer.status, answer.kind) == (404, "not-found"), target
        assert b"import" not in answer.body


def send_raw(server, head, body=b""):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(head + body)
        with contextlib.suppress(ConnectionResetError):
            return line.recv(65_536)
    return b""


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(served):
    head = (
        f"POST /v1/notes HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {served.token}\r\n"
        "Content-Type: application/json\r\n"
    )
    began = time.monotonic()
    told = send_raw(served, f"{head}Content-Length: 1073741824\r\n\r\n".encode(), b'{"text": "')
    assert b" 413 " in told.split(b"\r\n")[0]
    assert time.monotonic() - began < 20  # it is not waited for

    # The same without saying how much it will be: it is cut off as soon as it is too much.
    before = memory_of(served.process.pid)
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    chunked = send_raw(
        served, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode(), piece * (16_384 if FULL else 320)
    )
    assert not chunked or b" 413 " in chunked.split(b"\r\n")[0]
    assert memory_of(served.process.pid) - before < 40_000_000
    assert served.ask("GET", "/v1/session").status == 200


def memory_of(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
def test_a_body_that_is_not_plain_json_is_not_read(served, headers, status):
    answer = served.ask("POST", "/v1/search", {"query": "printer"}, headers=headers)

    assert answer.status == status


def test_a_body_nested_beyond_all_measure_is_answered_with_a_sentence(served):
    answer = served.ask("POST", "/v1/search", b"[" * 100_000)

    assert answer.status == 400


def test_a_thousand_connections_do_not_keep_others_out(tmp_path):
    """More than the server may have open: without a limit for strangers it could answer nobody."""
    lines, opened = [], []
    with PageServer(write_notes(tmp_path / "notes"), tmp_path / "home", most_files=600) as server:
        server.sign_in()
        try:
            for number in range(1_000):
                line = socket.socket()
                line.settimeout(10)
                with contextlib.suppress(OSError):  # let go already
                    line.connect(("127.0.0.1", server.port))
                    if number % 2:
                        line.sendall(b"GET / HTTP/1.1\r\nHost: ")  # and never the rest
                lines.append(line)
                if number % 50 == 49:
                    opened.append(len(os.listdir(f"/proc/{server.process.pid}/fd")))
            answer = server.ask("POST", "/v1/search", {"query": "printer VLAN"}, timeout=30)
            assert (answer.status, answer.json["results"][0]["path"]) == (200, "MEMORY.md")
            assert max(opened) < 560  # and there is always room for those who have a token
        finally:
            for line in lines:
                line.close()
        assert server.end() == 0


def test_requests_at_the_same_time_are_all_answered(served):
    answers = []

    def ask():
        answers.append(served.ask("POST", "/v1/search", {"query": "printer"}).status)

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(answers) <= {200, 503}
    assert answers.count(200) >= 20


# --- what is left behind ---


def test_no_secret_is_logged_or_left_on_disk(tmp_path):
    notes = write_notes(tmp_path / "notes")
    with PageServer(notes, tmp_path / "home") as server:
        code = server.new_code()
        token = server.begin(code).json["token"]
        named = json.loads(server.run("tokens", "add", "bot", "--json", "--rights", "read"))["token"]
        server.ask("GET", "/v1/notes", token="wrong-but-secret")
        server.ask("GET", f"/v1/notes?token={named}", token=named)
        server.ask("POST", "/v1/search", b"{", token=token)
        (place,) = (tmp_path / "home" / "page").glob("server-*.json")
        secret = json.loads(place.read_text())["secret"]
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert server.ask("POST", "/v1/codes", {}, token=secret).status == 201
        assert server.end() == 0
        written = server.errors

    kept = b"".join(file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file())
    for hidden in (code, token, named, "wrong-but-secret", secret):
        assert hidden not in written
        assert hidden.encode() not in kept
    assert "secret" not in place.read_text()


# --- the commands ---


def run(*arguments, **more):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **more
    )


def test_a_second_server_of_the_same_memory_says_where_the_first_one_is(served):
    second = run("serve", "--port", "0", *served.place)

    assert second.returncode == 1
    assert served.url in second.stderr
    assert "plainmind page" in second.stderr


def test_an_address_that_others_reach_needs_a_certificate(tmp_path):
    notes = write_notes(tmp_path / "notes")
    refused = run(
        "serve", "--host", "0.0.0.0", "--port", "0", "--workspace", notes, "--home", tmp_path / "home"
    )
    half = run("serve", "--certificate", "x.pem", "--workspace", notes, "--home", tmp_path / "home")
    wrong = run(
        "serve", "--certificate", notes / "MEMORY.md", "--key", notes / "MEMORY.md", "--workspace", notes
    )

    assert (refused.returncode, "other machines can reach" in refused.stderr) == (1, True)
    assert "--certificate" in refused.stderr
    assert half.returncode == 2
    assert wrong.returncode == 1
