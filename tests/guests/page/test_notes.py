"""Notes over `/v1`: found with a reason, read, written only over what was read, taken back, forgotten for good."""

import hashlib

import pytest

pytestmark = pytest.mark.timeout(60)


def etag_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def matching(etag):
    return {"If-Match": f'"{etag}"'}


def new_note(server, name, text="# New\n\n- first\n- second\n"):
    made = server.ask("PUT", f"/v1/notes/memory/{name}", {"text": text}, headers={"If-None-Match": "*"})
    assert made.status == 201, made.body
    return server.workspace / "memory" / name


def test_a_search_gives_cited_lines_with_the_words_marked_and_says_why(served):
    found = served.post("/v1/search", {"query": "which VLAN is the printer on", "explain": True})

    best = found["results"][0]
    assert (best["path"], best["bestLine"]) == ("MEMORY.md", 3)
    marked = next(line for line in best["lines"] if line["line"] == 3)
    assert "".join(marked["parts"]) == "- The printer is on VLAN 40."
    assert marked["parts"][1::2] == ["printer", "VLAN"]
    assert "line 3 has all 2 words (VLAN, printer)" in best["why"]
    assert found["certain"] is True


def test_a_newer_line_names_the_older_one(written):
    new_note(written, "people.md", "# People\n\n- Jonas Weber lives in Freiburg, Talstr. 14.\n")
    new_note(written, "2099-05-18.md", "- 08:00 Moved house: Jonas and Mei now live in Leipzig.\n")
    first, second = written.post("/v1/search", {"query": "where does Jonas live?"})["results"][:2]
    assert (first["path"], second["path"]) == ("memory/2099-05-18.md", "memory/people.md")
    assert first["older"] == [{"path": "memory/people.md", "startLine": 3, "endLine": 3}]
    assert second["older"] == []


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"paths": ["memory/net*"]}, {"memory/network.md"}),
        ({"tags": ["network"]}, {"memory/network.md"}),
        ({"since": "2026-11-15", "until": "2026-11-15"}, {"memory/2026-11-15.md"}),
        ({"scopes": ["shared"]}, set()),
    ],
)
def test_a_search_looks_only_where_its_filters_say(served, filters, paths):
    found = served.post("/v1/search", {"query": "gateway printer", "filters": filters})

    assert {hit["path"] for hit in found["results"]} == paths


def test_an_empty_question_is_answered_with_nothing(served):
    assert served.post("/v1/search", {"query": "  "})["results"] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "needs `query`"),
        ({"query": 3}, "`query` must be a text"),
        ({"query": "x", "limt": 3}, "has `limt`, which is not known here"),
        ({"query": "x", "limit": 0}, "`limit` must be at least 1"),
        ({"query": "x", "limit": True}, "`limit` must be a whole number"),
        ({"query": "x", "filters": {"tags": "home"}}, "`tags` must be a list"),
        ({"query": "x", "today": "soon"}, "`soon` is no day"),
        ([], "the body must be a JSON object"),
        (b"{", "not valid JSON"),
    ],
)
def test_a_question_that_cannot_be_understood_is_answered_with_a_sentence(served, body, said):
    answer = served.ask("POST", "/v1/search", body)

    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert said in answer.json["detail"]


def test_notes_are_listed_page_by_page(served):
    first = served.get("/v1/notes?limit=3")
    second = served.get(f"/v1/notes?limit=3&cursor={first['next']}")

    paths = [note["path"] for page in (first, second) for note in page["notes"]]
    assert paths == ["MEMORY.md", "memory/2026-11-15.md", "memory/gateway.md", "memory/network.md"]
    assert (first["total"], second["next"]) == (4, None)
    assert [note["path"] for note in served.get("/v1/notes?day=2026-11-15")["notes"]] == [
        "memory/2026-11-15.md"
    ]
    assert served.ask("GET", "/v1/notes?cursor=nonsense!").status == 400


def test_a_note_is_read_whole_or_by_lines_and_not_again_when_it_is_the_same(served):
    whole = served.ask("GET", "/v1/notes/memory/network.md")
    some = served.get("/v1/notes/memory/network.md?lines=4-6")

    note = whole.json
    assert note["etag"] == etag_of(served.workspace / "memory" / "network.md")
    assert whole.headers["etag"] == f'"{note["etag"]}"'
    assert (note["title"], note["tags"], note["totalLines"]) == ("Network", ["network", "home"], 6)
    assert some["text"].startswith("# Network\n\nThe printer hangs")
    assert (some["firstLine"], some["lineCount"], some["etag"]) == (4, 3, note["etag"])
    unchanged = served.ask(
        "GET", "/v1/notes/memory/network.md", headers={"If-None-Match": whole.headers["etag"]}
    )
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert served.ask("GET", "/v1/notes/memory/network.md?lines=99").status == 404
    assert served.ask("GET", "/v1/notes/memory/nothing.md").status == 404


@pytest.mark.parametrize(
    "tags", ["W/{0}", '"other", {0}', '"other",W/"more",W/{0}', "*", "{1}", '"a, b" , {0}'], ids=repr
)
def test_a_proxy_may_weaken_an_etag_and_a_program_may_name_several(served, tags):
    etag = etag_of(served.workspace / "memory" / "network.md")
    named = tags.format(f'"{etag}"', etag)

    same = served.ask("GET", "/v1/notes/memory/network.md", headers={"If-None-Match": named})
    other = served.ask("GET", "/v1/notes/memory/gateway.md", headers={"If-None-Match": named})

    assert (same.status, same.body) == (304, b"")
    assert other.status == (304 if named == "*" else 200)


@pytest.mark.parametrize("tags", ["W/{0}", '"other", {0}', "*"], ids=repr)
def test_what_is_saved_may_name_its_version_as_a_proxy_passes_it_on(written, tags):
    file = new_note(written, "proxy.md")
    try:
        for method, body in (
            ("PUT", {"text": "- one\n- two\n"}),
            ("PATCH", {"old": "- two", "new": "- three"}),
        ):
            named = {"If-Match": tags.format(f'"{etag_of(file)}"')}
            stale = {"If-Match": 'W/"0", "1"'}
            assert written.ask(method, "/v1/notes/memory/proxy.md", body, headers=stale).status == 412
            assert written.ask(method, "/v1/notes/memory/proxy.md", body, headers=named).status == 200
        assert file.read_text() == "- one\n- three\n"
        gone = written.ask("PUT", "/v1/notes/memory/never.md", {"text": "x\n"}, headers={"If-Match": "*"})
        assert (gone.status, gone.kind, gone.json["current"]) == (412, "stale", None)
    finally:
        file.unlink()


def test_an_etag_that_is_none_names_no_version(written):
    file = new_note(written, "odd.md")

    for odd in ("W/", ",", '""', '"unclosed'):
        for method, body in (("PUT", {"text": "x\n"}), ("PATCH", {"old": "first", "new": "x"})):
            answer = written.ask(method, "/v1/notes/memory/odd.md", body, headers={"If-Match": odd})
            assert answer.status == 412, (method, odd)
    assert "first" in file.read_text()


def test_who_saves_over_a_file_that_has_changed_gets_the_present_text_and_overwrites_nothing(written):
    file = new_note(written, "two-tabs.md")
    read = written.get("/v1/notes/memory/two-tabs.md")
    first = written.ask(
        "PUT",
        "/v1/notes/memory/two-tabs.md",
        {"text": "# New\n\n- first tab\n"},
        headers=matching(read["etag"]),
    )
    second = written.ask(
        "PUT",
        "/v1/notes/memory/two-tabs.md",
        {"text": "# New\n\n- second tab\n"},
        headers=matching(read["etag"]),
    )

    assert first.status == 200
    assert first.json["etag"] == etag_of(file)
    assert (second.status, second.kind) == (412, "stale")
    assert second.json["current"]["text"] == file.read_text() == "# New\n\n- first tab\n"
    assert second.json["current"]["etag"] == etag_of(file)


def test_a_whole_text_needs_the_version_it_was_made_from(written):
    file = new_note(written, "blind.md")

    answer = written.ask("PUT", "/v1/notes/memory/blind.md", {"text": "gone\n"})

    assert (answer.status, answer.kind) == (428, "precondition-required")
    assert "first" in file.read_text()
    again = written.ask("PUT", "/v1/notes/memory/blind.md", {"text": "x"}, headers={"If-None-Match": "*"})
    assert again.status == 412


def test_a_file_keeps_its_line_endings_its_mark_and_its_encoding(written):
    file = written.workspace / "memory" / "windows.md"
    file.write_bytes(b"\xef\xbb\xbf# Old\r\n\r\n- caf\xc3\xa9\r\n")
    read = written.get("/v1/notes/memory/windows.md")
    assert read["text"] == "# Old\n\n- café\n"

    written.ask(
        "PUT", "/v1/notes/memory/windows.md", {"text": "# Old\n\n- thé\n"}, headers=matching(read["etag"])
    )

    assert file.read_bytes() == b"\xef\xbb\xbf# Old\r\n\r\n- th\xc3\xa9\r\n"


def test_a_file_with_bytes_that_are_no_text_is_not_written_as_a_whole(written):
    file = written.workspace / "memory" / "damaged.md"
    file.write_bytes(b"# Damaged\n\n- \xff\x81\x00 here\n")
    read = written.get("/v1/notes/memory/damaged.md")

    answer = written.ask(
        "PUT",
        "/v1/notes/memory/damaged.md",
        {"text": read["text"] + "- more\n"},
        headers=matching(read["etag"]),
    )

    assert read["writable"] is False
    assert answer.status == 400
    assert b"\xff\x81\x00" in file.read_bytes()


def test_an_exact_text_is_replaced_and_only_one_that_stands_there_once(written):
    file = new_note(written, "exact.md")

    done = written.ask("PATCH", "/v1/notes/memory/exact.md", {"old": "- second", "new": "- 2nd"})
    missing = written.ask("PATCH", "/v1/notes/memory/exact.md", {"old": "- third", "new": "- 3rd"})
    stale = written.ask(
        "PATCH", "/v1/notes/memory/exact.md", {"old": "- first", "new": "- 1st"}, headers=matching("0" * 64)
    )

    assert (done.status, done.json["line"], done.json["etag"]) == (200, 4, etag_of(file))
    assert (missing.status, missing.kind) == (409, "conflict")
    assert (stale.status, stale.kind) == (412, "stale")
    assert file.read_text() == "# New\n\n- first\n- 2nd\n"


def test_most_of_a_file_goes_only_when_that_is_said(written):
    long = "# Long\n\n" + "- a line of the file\n" * 40
    file = new_note(written, "long.md", long)
    tag = etag_of(file)

    refused = written.ask("PUT", "/v1/notes/memory/long.md", {"text": "# Long\n"}, headers=matching(tag))
    allowed = written.ask(
        "PUT", "/v1/notes/memory/long.md", {"text": "# Long\n", "allowShrink": True}, headers=matching(tag)
    )

    assert (refused.status, refused.kind, allowed.status) == (409, "would-shrink", 200)
    assert file.read_text() == "# Long\n"


@pytest.mark.parametrize("name", [".hidden.md", "notes.txt", "a%0ab.md", "deep/" * 80 + "x.md"])
def test_a_file_that_would_never_be_found_is_not_made(written, name):
    answer = written.ask("PUT", f"/v1/notes/memory/{name}", {"text": "x\n"}, headers={"If-None-Match": "*"})

    assert answer.status in {403, 404}
    assert not any(path.name.endswith(".txt") for path in written.workspace.rglob("*"))


def test_a_file_that_a_rule_of_the_folder_leaves_out_is_taken_back(written):
    notes = written.workspace.parent / "folder-of-notes"
    notes.mkdir()
    (notes / "one.md").write_text("# One\n")
    (notes / ".plainmindignore").write_text("secret/\n")
    from plainmind import Memory
    from plainmind.base.errors import PlainmindError

    with Memory(notes, home=written.workspace.parent / "other-home") as memory:
        with pytest.raises(PlainmindError):
            memory.write("secret/x.md", "x\n", base_hash=None)
        memory.write("open/x.md", "x\n", base_hash=None)

    assert not (notes / "secret" / "x.md").exists()
    assert (notes / "open" / "x.md").read_text() == "x\n"


@pytest.mark.parametrize("durable", [False, True])
def test_a_note_with_the_same_key_is_written_once(written, durable):
    body = {"text": f"only once ({durable})", "durable": durable}
    key = {"Idempotency-Key": f"a-key-{durable}"}

    first = written.ask("POST", "/v1/notes", body, headers=key)
    second = written.ask("POST", "/v1/notes", body, headers=key)
    other = written.ask("POST", "/v1/notes", body, headers={"Idempotency-Key": f"other-{durable}"})
    wrong = written.ask("POST", "/v1/notes", {**body, "text": "something else"}, headers=key)

    assert (wrong.status, wrong.kind) == (409, "conflict")
    assert (first.status, second.status, other.status) == (201, 200, 201)
    assert first.json["id"] == second.json["id"]
    text = (written.workspace / first.json["path"]).read_text()
    assert text.count(body["text"]) == 2
    assert first.json["path"] == "MEMORY.md" if durable else first.json["path"].startswith("memory/20")


def test_a_change_is_seen_in_the_history_and_taken_back(written):
    file = new_note(written, "mistake.md")
    written.ask("PATCH", "/v1/notes/memory/mistake.md", {"old": "- second", "new": "- wrong"})
    listed = written.get("/v1/history?path=memory/mistake.md")["versions"]

    change = written.get(f"/v1/history/{listed[0]['id']}")
    assert ("- wrong" in change["text"], "- second" in change["before"]) == (True, True)
    undone = written.post("/v1/undo", {})
    assert undone["remarks"] == []
    assert (undone["path"], "- second" in file.read_text()) == ("memory/mistake.md", True)
    back = written.post(f"/v1/history/{listed[0]['id']}/restore", {})
    assert "- wrong" in file.read_text()
    assert back["etag"] == etag_of(file)
    assert written.ask("POST", "/v1/history/nothing/restore", {}).status == 404


def test_what_an_editor_did_between_two_changes_is_told_by_the_version_kept_after_it(written):
    file = new_note(written, "by-hand.md")
    written.ask("PATCH", "/v1/notes/memory/by-hand.md", {"old": "- second", "new": "- wrong"})
    by_hand = file.read_text().replace("- wrong", "- right")
    file.write_text(by_hand)
    written.ask("PATCH", "/v1/notes/memory/by-hand.md", {"old": "- right", "new": "- at last"})
    listed = written.get("/v1/history?path=memory/by-hand.md")["versions"]
    kept = next(one for one in listed if one["operation"] == "before edit")

    change = written.get(f"/v1/history/{kept['id']}")

    assert change["text"] == by_hand
    assert change["before"] is not None
    assert "- right" not in change["before"]


def test_what_is_forgotten_was_shown_first_and_is_gone_for_good(written):
    file = new_note(written, "forget.md", "# New\n\n- keep this\n- the canary is yellow\n- and this\n")
    written.post("/v1/search", {"query": "canary"})
    shown = written.post("/v1/forget", {"what": "memory/forget.md#L4"})
    assert [line["text"] for line in shown["lines"]] == ["- the canary is yellow"]
    assert "canary" in file.read_text()

    gone = written.post("/v1/forget", {"code": shown["code"]})
    again = written.ask("POST", "/v1/forget", {"code": shown["code"]})

    assert gone["applied"] is True
    assert file.read_text() == "# New\n\n- keep this\n- and this\n"
    assert (again.status, again.kind) == (409, "code")
    found = written.post("/v1/search", {"query": "canary"})["results"]
    assert not any("canary" in hit["snippet"] for hit in found)
    versions = written.get("/v1/history?path=memory/forget.md")["versions"]
    texts = [written.get(f"/v1/history/{one['id']}")["text"] or "" for one in versions if one["available"]]
    assert not any("canary" in text for text in texts)


def test_several_places_go_together_and_nothing_goes_when_a_line_has_changed(written):
    file = new_note(written, "several.md", "# New\n\n- one\n- two\n- three\n")
    places = ["memory/several.md#L3", "memory/several.md#L5"]
    shown = written.post("/v1/forget", {"what": places})
    stale = written.post("/v1/forget", {"what": ["memory/several.md#L4"]})

    written.post("/v1/forget", {"code": shown["code"]})
    late = written.ask("POST", "/v1/forget", {"code": stale["code"]})

    assert (late.status, late.kind) == (409, "code")
    assert file.read_text() == "# New\n\n- two\n"
    assert written.ask("POST", "/v1/forget", {"what": [places[0], places[0]]}).status == 400
    assert written.ask("POST", "/v1/forget", {}).status == 400


def test_notes_are_listed_from_any_row_on_with_title_and_beginning(served):
    rows = served.get("/v1/notes")["notes"]

    listed = served.get("/v1/notes?offset=2&limit=1&preview=true")

    assert listed["total"] == len(rows)
    assert [row["path"] for row in listed["notes"]] == [rows[2]["path"]]
    network = served.get("/v1/notes?prefix=memory/net&preview=true")["notes"][0]
    assert network["title"] == "Network"
    assert network["preview"].startswith("The printer hangs behind the [[gateway]]")
    (memory,) = served.get("/v1/notes?prefix=MEMORY&preview=true")["notes"]
    assert memory["preview"] == "The printer is on VLAN 40. The gateway runs on the Mac Studio in the cellar."
    assert served.get("/v1/notes?offset=99")["notes"] == []
