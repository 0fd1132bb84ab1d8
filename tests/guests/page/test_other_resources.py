"""Everything besides notes: days, conversations, tags, links, graph, map, entries, recalls, health, and events."""

import http.client
import json

import pytest

from plainmind import Memory, SearchContext
from plainmind.guests.page.call import Journal

pytestmark = pytest.mark.timeout(60)


def said(role, text):
    return {"type": "message", "message": {"role": role, "content": text}}


@pytest.fixture(scope="module")
def talked(written):
    """A conversation, and a question that an agent has asked."""
    with Memory(written.workspace, home=written.home) as memory:
        session = memory.sessions.create("agent:main:main")
        session.append(said("user", "Which wood is best for the hull?"))
        session.append(said("assistant", "Larch, and the key is sk-ant-api03-" + "A1b2C3d4" * 12))
    return written


def test_a_day_has_its_log_its_changes_and_what_was_said(talked):
    days = {day["day"]: day for day in talked.get("/v1/days")["days"]}
    assert days["2026-11-15"]["notes"] == 1
    assert days["2026-11-15"]["lines"] == 2
    assert talked.get("/v1/days?from=2026-11-15&to=2026-11-15")["days"] == [days["2026-11-15"]]

    day = talked.get("/v1/days/2026-11-15")
    assert "16:19 The gateway moved" in day["notes"][0]["text"]
    today = talked.get("/v1/session")["today"]
    assert [row["key"] for row in talked.get(f"/v1/days/{today}")["sessions"]] == ["agent:main:main"]
    assert talked.ask("GET", "/v1/days/soon").status == 400


def test_a_result_of_a_conversation_has_its_title(tmp_path):
    from tests.guests.page.conftest import PageServer, write_notes

    with Memory(write_notes(tmp_path / "notes"), home=tmp_path / "home") as memory:
        session = memory.sessions.create(
            "agent:main:main", displayName="About the hull, token ghp_" + "a1B2" * 9
        )
        session.append(said("user", "Which wood is best for the hull?"))
        session.append(said("assistant", "Larch is best for the hull."))
    with PageServer(
        tmp_path / "notes", tmp_path / "home", env={"PLAINMIND_SOURCES": "memory,sessions"}
    ) as server:
        found = server.sign_in().post("/v1/search", {"query": "which wood for the hull?"})["results"]
    (talk,) = [one for one in found if one["source"] == "sessions"]
    assert talk["title"].startswith("About the hull, token [redacted:github#")
    assert all(one["title"] is None for one in found if one["source"] == "memory")


def test_a_conversation_is_read_line_by_line_and_without_its_secrets(talked):
    row = talked.get("/v1/sessions")["sessions"][0]
    first = talked.get("/v1/sessions/agent%3Amain%3Amain?limit=1")
    rest = talked.get(f"/v1/sessions/{row['citation']}?from={first['nextLine']}")

    assert first["lines"][0]["speaker"] == "User"
    assert first["lines"][0]["text"] == "Which wood is best for the hull?"
    assert rest["lines"][0]["text"].startswith("Larch")
    assert "sk-ant" not in json.dumps(rest)
    assert rest["nextLine"] is None
    assert talked.ask("GET", "/v1/sessions/nobody").status == 404


def test_a_conversation_goes_for_good_after_it_was_shown(talked):
    with Memory(talked.workspace, home=talked.home) as memory:
        memory.sessions.create("agent:main:gone").append(said("user", "something to forget"))
    shown = talked.post("/v1/forget", {"session": "agent:main:gone"})
    assert shown["session"]["name"] == "agent:main:gone"

    talked.post("/v1/forget", {"code": shown["code"]})

    assert talked.ask("GET", "/v1/sessions/agent%3Amain%3Agone").status == 404


def test_a_session_begins_with_what_fits_its_budget(served):
    begun = served.get("/v1/start-context")

    assert "The printer is on VLAN 40" in begun["text"]
    assert begun["paths"][0] == "MEMORY.md"
    assert 0 < begun["chars"] <= begun["maxChars"]


def test_tags_and_links_lead_from_note_to_note(served):
    assert {"tag": "home", "notes": 2} in served.get("/v1/tags")["tags"]
    tagged = {note["path"]: note["lines"] for note in served.get("/v1/tags/home")["notes"]}
    assert tagged == {"memory/2026-11-15.md": [3], "memory/network.md": []}

    links = served.get("/v1/links/memory/network.md")
    assert {link["path"] for link in links["links"]} == {"memory/gateway.md", "MEMORY.md"}
    assert [link["path"] for link in links["backlinks"]] == ["memory/gateway.md"]
    assert served.ask("GET", "/v1/links/memory/nothing.md").status == 404


def test_the_graph_around_a_note_ends_at_its_depth_and_its_limit(served):
    near = served.get("/v1/graph?note=memory/gateway.md&depth=1")
    far = served.get("/v1/graph?note=memory/gateway.md&depth=2")
    small = served.get("/v1/graph?note=memory/gateway.md&depth=2&limit=2")

    assert {node["path"] for node in near["nodes"]} == {"memory/gateway.md", "memory/network.md"}
    assert {(edge["from"], edge["to"]) for edge in near["edges"]} == {
        ("memory/gateway.md", "memory/network.md"),
        ("memory/network.md", "memory/gateway.md"),
    }
    assert {node["path"]: node["depth"] for node in far["nodes"]}["MEMORY.md"] == 2
    assert (len(small["nodes"]), small["truncated"], far["truncated"]) == (2, True, False)
    assert served.ask("GET", "/v1/graph?depth=3").status == 400


def test_a_new_note_moves_no_other_on_the_map(written):
    def places():
        written.post("/v1/search", {"query": "tide"})  # the index has read what is there
        return {point["path"]: (point["x"], point["y"]) for point in written.get("/v1/map")["points"]}

    for number in range(24):
        note = written.workspace / "memory" / f"topic-{number}.md"
        note.write_text(
            f"# Topic {number}\n\nAll about {['ships', 'tides', 'harbours'][number % 3]} {number}.\n"
        )
    before = places()
    (written.workspace / "memory" / "entirely-new.md").write_text("# Violins\n\nStrings and varnish.\n")
    after = places()

    assert len(set(before.values())) > 20
    assert {path: after[path] for path in before} == before
    assert "memory/entirely-new.md" in after
    made = written.get("/v1/map")["madeAt"]
    assert written.post("/v1/map", {})["madeAt"] >= made


def test_what_an_agent_was_given_is_shown_and_judged(written):
    with Memory(written.workspace, home=written.home) as memory:
        from plainmind.agent.recalls import Asker, lines_of_hits
        from plainmind.agent.scope import THE_OWNER

        scoped = memory.within(THE_OWNER)
        begun = scoped.begin_recall("search", "which VLAN?", asker=Asker("mcp", "claude-code"))
        begun.end(lines_of_hits(scoped.search("printer VLAN").hits), "the printer is on VLAN 40")
    recall = written.get("/v1/recalls")["recalls"][0]
    assert (recall["who"], recall["question"]) == ("claude-code", "which VLAN?")
    given = recall["given"][0]
    assert given["path"] == "MEMORY.md"

    judged = written.post(
        f"/v1/recalls/{recall['id']}/verdict", {"verdict": "useful", "line": given["number"]}
    )

    assert judged["given"][0]["verdict"] == "useful"
    assert written.get(f"/v1/recalls/{recall['id']}")["given"][0]["verdict"] == "useful"
    wrong = written.ask("POST", f"/v1/recalls/{recall['id']}/verdict", {"verdict": "great", "line": 1})
    assert wrong.status == 400


def test_status_checks_and_settings_are_told_without_secrets(served):
    served.ask("POST", "/v1/search", {"query": "gateway"})  # which brings the index up to date
    assert served.get("/v1/status")["files"] == 4
    assert all(
        check["verdict"] in {"ok", "warning", "problem"} for check in served.get("/v1/doctor")["checks"]
    )
    settings = {row["key"]: row["value"] for row in served.get("/v1/settings")["settings"]}
    assert settings["agentId"] == "main"


def listen(server, last=None):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {"Authorization": f"Bearer {server.token}"} | ({"Last-Event-ID": last} if last else {})
    line.request("GET", "/v1/events", headers=headers)
    answer = line.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
    return line, events_of(answer)


def events_of(answer):
    event = {}
    while True:
        said = answer.readline().decode().rstrip("\n")
        name, _, text = said.partition(": ")
        if said:
            event[name] = text
        elif event:
            yield event.get("id"), event.get("event"), json.loads(event.get("data", "{}"))
            event = {}


def test_a_note_that_is_saved_in_an_editor_is_told_of_and_what_was_missed_is_told_later(written):
    line, events = listen(written)
    _, hello, _ = next(events)
    (written.workspace / "memory" / "edited.md").write_text("# By hand\n")
    # A file that is just being written may be told of while it is still empty; then it is told of again.
    told = (event for event in events if event[1] == "note.changed" and "edited" in event[2]["path"])
    changed = next(event for event in told if event[2]["etag"] == written_etag("# By hand\n"))
    line.close()
    (written.workspace / "memory" / "edited.md").unlink()

    line, events = listen(written, last=changed[0])
    gone = next(event for event in events if event[1] == "note.changed" and "edited" in event[2]["path"])
    line.close()

    assert hello == "hello"
    assert gone[2]["etag"] is None


def written_etag(text):
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_that_lines_were_forgotten_is_told_with_their_path_and_without_their_words(written):
    note = written.workspace / "memory" / "told.md"
    note.write_text("# Told\n\n- the parrot is green\n")
    line, events = listen(written)
    next(events)
    shown = written.post("/v1/forget", {"what": "memory/told.md#L3"})
    written.post("/v1/forget", {"code": shown["code"]})
    heard = next(event for event in events if event[1] == "note.forgotten")
    line.close()

    assert heard[2].keys() == {"path", "at"}
    assert heard[2]["path"] == "memory/told.md"


def test_who_was_away_for_too_long_is_told_to_load_everything_anew(written):
    line, events = listen(written, last="123-4")

    assert next(events)[1] == "reset"
    line.close()


def test_a_journal_keeps_so_many_events_and_knows_whom_it_cannot_serve():
    journal = Journal(most=3, clock=lambda: 1000.0)
    for number in range(5):
        journal.tell("recall", {"id": number})

    assert [event.number for event in journal.since(2)] == [3, 4, 5]
    assert journal.since(1) is None
    assert journal.place_of("1000-2") == 2
    assert journal.place_of("1000-1") is None
    assert journal.place_of("1000-6") is None
    assert journal.place_of("999-3") is None


def test_another_context_sees_only_what_is_shared_with_it(written):
    shared = written.workspace / "memory" / "shared-with" / "everyone"
    shared.mkdir(parents=True, exist_ok=True)
    (shared / "open.md").write_text("# Open\n\nThe clubhouse is in Onomichi. #club\n")
    context = SearchContext("anna", "direct", "", channel="telegram")
    from plainmind.guests.page.gate import TokenFile

    token = TokenFile(str(written.home)).add("anna", ("read", "write", "forget", "review"), context, "today")

    listed = written.get("/v1/notes", token=token)["notes"]
    found = written.post("/v1/search", {"query": "printer VLAN gateway clubhouse"}, token=token)["results"]
    assert {note["path"] for note in listed} == {"memory/shared-with/everyone/open.md"}
    assert {hit["path"] for hit in found} == {"memory/shared-with/everyone/open.md"}
    assert written.get("/v1/tags", token=token)["tags"] == [{"tag": "club", "notes": 1}]
    for target in (
        "/v1/notes/MEMORY.md", "/v1/history", "/v1/sessions", "/v1/map", "/v1/settings", "/v1/doctor", "/v1/entries",
        "/v1/proposals",
    ):  # fmt: skip
        answer = written.ask("GET", target, token=token)
        assert (answer.status, answer.kind) == (403, "forbidden"), target
    put = written.ask(
        "PUT", "/v1/notes/MEMORY.md", {"text": "mine"}, token=token, headers={"If-Match": '"x"'}
    )
    edit = written.ask("PATCH", "/v1/notes/MEMORY.md", {"old": "VLAN 40", "new": "VLAN 41"}, token=token)
    gone = written.ask("POST", "/v1/forget", {"what": "MEMORY.md#L3"}, token=token)
    assert [answer.status for answer in (put, edit, gone)] == [403, 403, 403]
    kept = written.post("/v1/notes", {"text": "Anna was here"}, token=token)
    assert kept["path"].startswith("memory/shared-with/")
    assert str(written.workspace) not in json.dumps(written.get("/v1/status", token=token))


def test_a_program_is_given_notes_without_secrets_and_what_it_was_given_is_written_down(written):
    from plainmind.agent.scope import THE_OWNER
    from plainmind.guests.page.gate import TokenFile

    secret = "sk-ant-api03-" + "A1b2C3d4" * 12
    note = written.workspace / "memory" / "keys.md"
    note.write_text(f"# Keys\n\n- The key of the lighthouse is {secret}\n- It is turned at night.\n")
    rights = ("read", "write", "forget", "review")
    token = TokenFile(str(written.home)).add("assistant", rights, THE_OWNER, "today")

    person = written.get("/v1/notes/memory/keys.md")
    program = written.get("/v1/notes/memory/keys.md", token=token)
    found = written.post("/v1/search", {"query": "key of the lighthouse", "explain": True}, token=token)
    assert (secret in person["text"], person["writable"]) == (True, True)
    assert (secret in program["text"], program["writable"]) == (False, False)
    assert found["results"][0]["path"] == "memory/keys.md"
    assert secret not in json.dumps(found)

    saved = written.ask(
        "PUT",
        "/v1/notes/memory/keys.md",
        {"text": program["text"]},
        token=token,
        headers={"If-Match": f'"{program["etag"]}"'},
    )
    edited = written.ask(
        "PATCH", "/v1/notes/memory/keys.md", {"old": "at night", "new": "at dusk"}, token=token
    )
    assert (saved.status, edited.status) == (400, 200)
    assert secret in note.read_text()
    asked = [row for row in written.get("/v1/recalls")["recalls"] if row["who"] == "assistant"]
    assert [(row["kind"], row["surface"]) for row in asked[:2]] == [("search", "http"), ("read", "http")]


def test_a_proposal_is_made_looked_at_accepted_and_undone(written):
    note = written.workspace / "memory" / "twice.md"
    ferry = "- The ferry to Vinga leaves at nine in the morning.\n"
    lines = ferry + "- The rope of the mooring at Vinga lies behind the red dinghy since May.\n"
    before = f"# Twice\n\n{lines}\n## Again\n\n{lines}"
    note.write_text(before)
    run = written.post("/v1/upkeep", {})
    listed = written.get("/v1/proposals?kind=repeated")
    about = [one for one in listed["proposals"] if "ferry" in one["cites"][0]["text"]]
    other = next(one["id"] for one in listed["proposals"] if "rope" in one["cites"][0]["text"])
    assert run["waiting"] == listed["waiting"] >= 2

    done = written.post(f"/v1/proposals/{about[0]['id']}/accept", {})
    assert done == {"done": [about[0]["id"]], "void": [], "changed": ["memory/twice.md"]}
    assert note.read_text().count("ferry") == 1
    written.post("/v1/undo", {})
    assert note.read_text() == before
    assert written.post(f"/v1/proposals/{other}/reject", {})["done"] == [other]
    assert other not in {one["id"] for one in written.get("/v1/proposals")["proposals"]}
    assert written.ask("POST", "/v1/proposals/nothing/accept", {}).status == 404
    assert written.get("/v1/upkeep")["lastRun"]["at"]


def test_a_list_of_files_is_always_that_of_this_moment(tmp_path):
    from tests.guests.page.conftest import write_notes

    from plainmind.guests.page.call import Files

    notes = write_notes(tmp_path / "notes")
    with Memory(notes, home=tmp_path / "home") as memory:
        files = Files(memory)

        def seen():
            return {one.path: one.size for one in files.now()}

        def there():
            return {str(one.relative_to(notes)): one.stat().st_size for one in notes.rglob("*.md")}

        for _ in range(2):
            assert seen() == there()
        (notes / "MEMORY.md").write_text("# Less\n")
        assert seen() == there()
        (notes / "memory" / "new.md").write_text("# New\n")
        assert seen() == there()
        (notes / "memory" / "gateway.md").unlink()
        assert seen() == there()
        (notes / "memory" / "deeper").mkdir()
        (notes / "memory" / "deeper" / "x.md").write_text("# X\n")
        (notes / "memory" / "new.md").rename(notes / "memory" / "deeper" / "renamed.md")
        assert seen() == there()
        (notes / "memory" / "gateway.md").write_text("# Back again\n")
        (notes / "memory" / "network.md").unlink()
        assert seen() == there()
        for number in range(30):
            (notes / "memory" / f"many-{number}.md").write_text("# Many\n")
        assert seen() == there()


def test_links_follow_the_notes_as_they_are_now(written):
    place = written.workspace / "memory"
    (place / "sailor.md").write_text("# Sailor\n\nMet on the [[Blue whale]].\n")
    (place / "ship.md").write_text("# Ship\n\nWithout a name.\n")

    def leads():
        return [link["path"] for link in written.get("/v1/links/memory/sailor.md")["links"]]

    def backlinks():
        return [one["path"] for one in written.get("/v1/links/memory/ship.md")["backlinks"]]

    assert (leads(), backlinks()) == ([None], [])
    (place / "ship.md").write_text("# Blue whale\n\nIt has a name now.\n")
    assert (leads(), backlinks()) == (["memory/ship.md"], ["memory/sailor.md"])
    (place / "sailor.md").write_text("# Sailor\n\nNever met.\n")
    assert (leads(), backlinks()) == ([], [])
    (place / "sailor.md").unlink()
    (place / "ship.md").unlink()
