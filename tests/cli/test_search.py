"""`search` finds lines, prints them for people and for programs, and says what it could not consult."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date

import pytest
from tests.cli.terminal import at_a_terminal

from plainmind.base.model import SearchHit, SearchResult
from plainmind.cli.console import Console
from plainmind.cli.search import citation, matched_spans, reason
from plainmind.text.terms import query_terms

TODAY = date(2026, 2, 12)


def test_hits_are_printed_with_score_place_and_indented_lines(cli, workspace):
    answer = cli("search", "backups Ana", "-n", "1", "--today", "2026-02-12")

    first, *rest = answer.out.splitlines()
    score, place = first.split("  ")
    assert 0 < float(score) <= 1
    assert place.startswith("memory/2026-02-10.md:")
    assert "  - Agreed with Ana: backups run at 02:15." in rest
    assert all(line.startswith("  ") or not line for line in rest)
    assert (answer.status, answer.err) == (0, "")


def test_filters_are_options_or_part_of_the_question_and_are_explained(cli, workspace):
    by_option = cli(
        "search", "backups", "--path", "2026-02-10", "--path", "x", "--until", "2026-02-10", "--explain"
    )
    in_question = cli("search", "gateway -printer path:network", "--json").json

    assert by_option.out.startswith("understood: only in 2026-02-10 or x; only until 2026-02-10\n\n")
    assert {line for line in by_option.out.splitlines() if ".md:" in line} == {by_option.out.splitlines()[2]}
    assert {hit["path"] for hit in in_question["results"]} == {"memory/network.md"}
    assert in_question["understood"] == ["only in network", "without “printer”"]


def test_a_day_that_the_question_names_is_explained(cli, workspace):
    printed = cli("search", "backups last Tuesday", "--explain", "--today", "2026-02-12").out
    told = cli("search", "backups of the last two days", "--json", "--today", "2026-02-12").json

    assert printed.startswith("understood: “last Tuesday” as 2026-02-10\n\n")
    assert told["understood"] == ["“the last two days” as 2026-02-10 to 2026-02-12"]


def test_a_filter_that_lets_nothing_pass_is_named(cli, workspace):
    answer = cli("search", "gateway", "--tag", "nobody")

    assert answer.out == ""
    assert "nothing was found; understood: only tagged #nobody" in answer.err


def test_a_day_that_is_none_is_explained(cli, workspace):
    assert "`since` names no day: whenever" in cli("search", "gateway", "--since", "whenever").err


def test_a_word_to_leave_out_needs_no_quotes(cli, workspace):
    answer = cli("search", "gateway", "-host", "-n", "3", "-path:people", "--json").json

    assert answer["query"] == "gateway -host -path:people"
    assert answer["understood"] == ["not in people", "without “host”"]
    assert "unknown option: -x" in cli("search", "gateway", "-x").err


def test_a_blank_line_stands_between_hits(cli, workspace):
    blocks = cli("search", "printer gateway backups", "--min-score", "0").out.split("\n\n")

    assert len([block for block in blocks if ".md:" in block.splitlines()[0]]) >= 2


def test_the_json_has_exactly_the_promised_shape(cli, workspace):
    answer = cli("search", "gateway", "host", "--json").json

    assert list(answer) == [
        "schema_version",
        "query",
        "results",
        "provider",
        "model",
        "mode",
        "confidence",
        "certain",
        "degraded",
        "timings",
    ]
    assert (answer["query"], answer["provider"], answer["mode"], answer["degraded"]) == (
        "gateway host", "builtin", "hybrid", [],
    )  # fmt: skip
    best = answer["results"][0]
    assert list(best) == [
        "path",
        "startLine",
        "endLine",
        "score",
        "snippet",
        "source",
        "headings",
        "citation",
    ]
    assert (best["path"], best["source"]) == ("memory/network.md", "memory")
    lines = (workspace / "memory" / "network.md").read_text().splitlines()
    assert best["snippet"].splitlines() == lines[best["startLine"] - 1 : best["endLine"]]
    assert best["citation"] == f"memory/network.md#L{best['startLine']}-L{best['endLine']}"
    assert all(milliseconds >= 0 for milliseconds in answer["timings"].values())


NOTE = """# Harbour

## Office

- The printer talks too much.

## Lighthouse

### Known errors

- `ERR_SKEW`: the clock of the gateway ran ahead, so that an entry was dated after its day had closed, and again.
- `ERR_GAP`: a price list ended too early.

## Decided

- No telephones.
"""


@pytest.fixture
def harbour(workspace):
    (workspace / "memory" / "harbour.md").write_text(NOTE)


def test_a_hit_stands_below_its_path_of_headings_and_begins_with_what_answers(cli, harbour):
    lines = cli("search", "known errors ERR_GAP", "-n", "1").out.splitlines()

    assert lines[0].endswith("memory/harbour.md:7-16")
    assert lines[1] == "  Harbour › Lighthouse › Known errors"
    assert lines[2].startswith("  - `ERR_SKEW`")
    assert "  ## Decided" in lines


def test_an_answer_that_stands_in_several_places_is_printed_once(cli, workspace):
    for day in ("02", "03"):
        (workspace / "memory" / f"2026-11-{day}.md").write_text(
            f"# Day {day}\n\n- Mira feeds the otters at noon.\n"
        )

    printed = cli("search", "who feeds the otters", "--explain", "-n", "1").out.splitlines()
    (found,) = cli("search", "who feeds the otters", "--json", "-n", "1").json["results"]

    assert printed[0].endswith("memory/2026-11-03.md:1-3  (in 2 places)")
    assert "  also: memory/2026-11-02.md:1" in printed
    assert (found["places"], found["also"]) == (2, ["memory/2026-11-02.md#L1-L3"])
    assert cli("search", "who feeds the otters", "--brief", "-n", "1").out.endswith("  (in 2 places)\n")


def test_brief_shows_what_stands_below_the_front_matter(cli, workspace):
    note = "---\ntitle: Hall\ntags: [home]\n---\n\n# Printer\n\nIt stands in the hall.\n"
    (workspace / "memory" / "printer.md").write_text(note, encoding="utf-8")

    answer = cli("search", "--tag", "home", "--brief")

    assert answer.out.endswith("  Printer: It stands in the hall.\n")


def test_a_note_is_shown_without_what_it_is_called_and_with_what_else_its_fields_say(cli, workspace):
    fields = "---\ntitle: Hall\naliases:\n  - the hall printer\ntags: [home]\nstatus: broken\n---\n\n"
    (workspace / "memory" / "printer.md").write_text(fields + "It stands in the hall.\n", encoding="utf-8")

    _, *shown = cli("search", "the hall printer", "-n", "1").out.splitlines()

    assert shown == ["  status: broken", "  It stands in the hall."]
    assert cli("search", "is it broken?", "--brief", "-n", "1").out.endswith("  status: broken\n")


def test_brief_says_why_when_it_is_asked(cli, harbour):
    answer = cli("search", "which error was a price list", "--brief", "--explain", "-n", "2")
    lines = answer.out.splitlines()

    assert len(lines) == 4
    assert [line.startswith("  why: ") for line in lines] == [False, True, False, True]


def test_brief_is_one_line_a_hit(cli, harbour):
    answer = cli("search", "which error was a price list", "--brief", "-n", "2", "--min-score", "0")

    first, second = answer.out.splitlines()
    assert first.endswith("memory/harbour.md:12  `ERR_GAP`: a price list ended too early.")
    assert ".md:" in second
    assert cli("search", "known errors of the lighthouse", "--brief", "-n", "1").out.endswith(
        "  Known errors: `ERR_SKEW`: the clock of the gateway ran ahead, so that an entry was dated after its day had"
        " closed, and again.\n"
    )


def test_a_terminal_shows_what_fits(workspace, harbour, tmp_path):
    size = {"COLUMNS": "60", "LINES": "12", "NO_COLOR": "1", "PLAINMIND_HOME": str(tmp_path / "home")}
    where = ("--workspace", str(workspace))

    printed, _ = at_a_terminal("search", "known errors ERR_SKEW ERR_GAP", "-n", "2", *where, env=size)
    whole, _ = at_a_terminal("search", "ERR_GAP", "-n", "1", "--snippet-chars", "700", *where, env=size)
    brief, _ = at_a_terminal("search", "ERR_SKEW", "-n", "1", "--brief", *where, env=size)

    shown = printed.replace("\r", "").partition("harbour.md:")[2].partition("\n\n")[0].splitlines()
    assert shown[1:] == [
        "  Harbour › Lighthouse › Known errors",
        "  - `ERR_SKEW`: the clock of the gateway ran ahead, so that",
        "    an entry was dated after its day had closed, and again.",
        "  - `ERR_GAP`: a price list ended too early.",
    ]
    assert "## Decided" in whole
    assert len(brief.rstrip().splitlines()[-1]) <= 60


def test_citations_can_be_switched_off(cli, workspace):
    answer = cli("search", "gateway", "--json", "--config", "citations=off").json

    assert "citation" not in answer["results"][0]


def test_explain_adds_one_readable_line_and_every_component(cli, workspace):
    text = cli("search", "backups with Ana", "-n", "1", "--explain", "--today", "2026-02-12").out
    explained = cli("search", "backups with Ana", "-n", "1", "--explain", "--json").json["results"][0][
        "explanation"
    ]

    (why,) = [line for line in text.splitlines() if line.startswith("  why: ")]
    assert why.startswith("  why: line 3 has all 2 words (backups, Ana); ")
    assert "2 days old" in why
    assert {"coverage", "keywords", "meaning", "recency", "matched"} <= explained.keys()


def test_explain_says_what_the_second_look_found_and_what_it_changed(cli, workspace):
    answer = cli("search", "where do we keep the backups of the server", "--deep", "--explain")
    unknown = cli("search", "wo liegen eigentlich unsere Sicherungen des Servers", "--deep", "--explain")
    (first, *_) = cli("search", "backups with Ana", "--deep", "--explain", "--json").json["results"]

    assert re.search(r"^  why: .*; second look [+-]\d+\.\d, from place \d", answer.out, re.MULTILINE)
    read = re.compile(
        r"^note: second look: plainmind-reranker-2 read \d+ of \d+ results in \d+ ms", re.MULTILINE
    )
    assert read.search(answer.err)
    assert "second look does not know the language, from place 1" in unknown.out
    assert first["explanation"]["secondLook"].keys() == {"place", "logOdds"}
    assert "second look" not in cli("search", "backups with Ana", "--explain").out


def test_the_question_can_come_from_stdin(cli, workspace):
    assert cli("search", "-", "--json", stdin="\ufeffgateway host\n").json["query"] == "gateway host"


def test_without_quotes_it_is_the_same_question(cli, workspace):
    words = cli("search", "gateway", "-n", "2", "host", "--json").json
    quoted = cli("search", "gateway host", "-n", "2", "--json").json

    assert words["results"] == quoted["results"]


def test_nothing_found_is_one_sentence_and_no_failure(cli, workspace):
    answer = cli("search", "zebrafish spectrometer")

    assert (answer.status, answer.out) == (0, "")
    assert answer.err.count("\n") == 1
    assert "--min-score" in answer.err


def test_nothing_found_is_an_empty_list_for_programs(cli, workspace):
    answer = cli("search", "zebrafish spectrometer", "--json")

    assert (answer.status, answer.json["results"], answer.err) == (0, [], "")


def test_an_empty_workspace_says_what_to_do(cli, tmp_path):
    (tmp_path / "empty").mkdir()

    answer = cli("search", "anything", "--workspace", "empty")

    assert (answer.status, answer.out) == (0, "")
    assert "there is nothing to search" in answer.err
    assert "plainmind remember" in answer.err


def test_a_source_without_rows_answers_nothing(cli, workspace):
    assert cli("search", "gateway", "--source", "sessions", "--json").json["results"] == []
    assert cli("search", "gateway", "--source", "all", "--json").json["results"]


def test_a_write_is_found_by_the_next_search(cli, workspace):
    cli("search", "gateway")
    cli("remember", "The spare key hangs behind the barometer.")

    assert "barometer" in cli("search", "spare key", "-n", "1").out


@pytest.fixture
def unmounted(cli, workspace, tmp_path):
    """A workspace that was indexed and is gone now."""
    cli("sync")
    shutil.move(workspace, tmp_path / "elsewhere")
    return workspace


def test_answers_from_a_vanished_workspace_say_so_on_stderr(cli, unmounted):
    answer = cli("search", "gateway")

    assert answer.status == 0
    assert "memory/network.md" in answer.out
    assert answer.err.startswith("note: 3 files are missing on disk")


def test_strict_turns_a_partial_answer_into_status_3(cli, unmounted):
    assert cli("search", "gateway", "--strict").status == 3
    answer = cli("search", "gateway", "--strict", "--json")
    assert (answer.status, len(answer.json["degraded"])) == (3, 1)


def test_strict_is_content_with_a_whole_answer(cli, workspace):
    assert cli("search", "gateway", "--strict").status == 0


def test_without_a_provider_words_answer(cli, workspace):
    answer = cli("search", "gateway", "--json", "--config", "provider=none").json

    assert (answer["mode"], answer["provider"]) == ("keyword", "none")
    assert answer["results"][0]["path"] == "memory/network.md"


def test_a_citation_of_one_line_names_one_line():
    hit = SearchHit("MEMORY.md", 5, 5, 0.5, "x", "memory")

    assert citation(hit) == "MEMORY.md#L5"


@pytest.mark.parametrize(
    ("line", "query", "marked"),
    [
        ("The Gateway, and its hosts.", "gateway host", ["Gateway", "hosts"]),
        ("nothing here", "gateway", []),
        ("电池可以用三年", "电池 三年", ["电池", "三年"]),
        ("naïve Gastgeber", "naive", ["naïve"]),
        ("la «revisión», cada marzo", "revisión", ["revisión"]),
        ("under a [[Gateway Host|old host]]", "host", ["Host", "host"]),
        ("|gateway|tern|", "gateway", ["gateway"]),
        ("`ERR_LEDGER_SKEW`: the clock", "ERR_LEDGER_SKEW", ["ERR_LEDGER_SKEW"]),
    ],
)
def test_the_words_of_the_question_are_marked_in_the_answer(line, query, marked):
    spans = matched_spans(line, frozenset(query_terms(query).terms))

    assert [line[start:stop] for start, stop in spans] == marked


def test_the_reason_of_a_hit_counts_words_not_stems():
    explanation = {"matched": ["电池"], "meaning": 0.0, "exactToken": False, "namedDay": True}

    assert reason(explanation, "电池", "memory/2026-02-12.md", TODAY) == (
        "the line has the word (电池); from a day that the question names; today"
    )


@pytest.mark.parametrize(
    ("explanation", "why"),
    [
        ({"bestLine": 4, "matched": ["gateway"]}, "line 4 has 1 of 2 words (gateway); 2 days old"),
        (
            {"bestLine": 4, "passage": 0.5, "recency": 0.93},
            "line 4 has none of the words, but stands near some; 2 days old, weighs × 0.93",
        ),
        (
            {"bestLine": 1, "meaning": 0.61, "speaker": True, "recency": 1.0},
            "line 1 has none of the words; said by somebody whom the question names; meaning 0.61; 2 days old",
        ),
    ],
)
def test_the_reason_of_a_hit_names_its_line_and_what_spoke_for_it(explanation, why):
    assert reason(explanation, "gateway host", "memory/2026-02-10.md", TODAY) == why


def test_escape_sequences_in_notes_do_not_reach_a_terminal(monkeypatch, capsys):
    from plainmind.cli.search import print_hits

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    hit = SearchHit("memory/a.md", 1, 1, 0.5, "gateway \x1b]0;owned\x07 here", "memory")

    print_hits(Console(), SearchResult("gateway", (hit,), "none", "", "keyword"), today=TODAY)

    printed = capsys.readouterr().out
    assert "\x1b]" not in printed
    assert "\x1b[1mgateway\x1b[0m" in printed
    assert "\x1b[36mmemory/a.md:1\x1b[0m" in printed


def test_colours_can_be_declined(cli, workspace, monkeypatch):
    monkeypatch.setattr("plainmind.cli.console.is_terminal", lambda _stream: True)
    monkeypatch.setenv("TERM", "xterm")

    assert "\x1b[36m" in cli("search", "gateway").out
    assert "\x1b" not in cli("search", "gateway", "--no-color", "--quiet").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli("search", "gateway", "--quiet").out


def test_several_agents_are_asked_at_once(cli, workspace):
    for agent in ("one", "two"):
        assert cli("sync", "--agent", agent).status == 0
    together = cli("search", "gateway", "--agent", "one,two", "--json").json
    everybody = cli("search", "gateway", "--all-agents", "--json").json

    agents = {hit["path"].partition("/")[0] for hit in together["results"]}
    assert agents == {"one", "two"}
    assert {hit["path"] for hit in together["results"]} <= {hit["path"] for hit in everybody["results"]}


def test_an_agent_without_an_index_is_named(cli, workspace):
    cli("sync", "--agent", "one")
    answer = cli("search", "gateway", "--agent", "one,nobody")

    assert answer.status == 1
    assert "there is no index of nobody" in answer.err


def test_several_agents_can_be_asked_and_nothing_else_be_done_with_them(cli, workspace):
    for agent in ("one", "two"):
        cli("sync", "--agent", agent)
    explained = cli("search", "gateway", "--agent", "one, two,", "--explain", "--json").json["results"]
    before = sorted(path.name for path in (workspace / "memory").iterdir())
    refused = cli("remember", "for both", "--agent", "one,two")

    assert {hit["path"].partition("/")[0] for hit in explained} == {"one", "two"}
    assert all(hit["explanation"] for hit in explained)
    assert refused.status == 1
    assert "one,two" in refused.err
    assert sorted(path.name for path in (workspace / "memory").iterdir()) == before


def test_that_several_agents_found_nothing_does_not_mean_that_this_one_has_nothing(cli, workspace):
    cli("sync", "--agent", "one")
    answer = cli("search", "zyzzyva", "--all-agents", "--min-score", "0.99")

    assert "nothing was found" in answer.err
    assert "nothing to search" not in answer.err


def test_without_a_question_what_passes_a_filter_is_listed(cli, workspace):
    listed = cli("search", "--path", "2026-02-10", "--json").json

    assert {hit["path"] for hit in listed["results"]} == {"memory/2026-02-10.md"}
    assert {hit["score"] for hit in listed["results"]} == {1.0}


def test_a_brief_hit_shows_the_title_that_was_asked_for_and_names_the_line_that_answers(cli, workspace):
    (workspace / "memory" / "precision.md").write_text(
        '---\nmodule: "PR"\n\nalias: [PPV]\n---\n\n# Precision\n\nMore or less the opposite of recall.\n'
    )

    first = cli("search", "precision", "--brief").out.splitlines()[0]

    assert first.endswith("memory/precision.md:9  Precision: More or less the opposite of recall.")


def test_a_brief_hit_of_a_quotation_has_no_marks(cli, workspace):
    (workspace / "memory" / "quoted.md").write_text("# Letters\n\n>The ferryman sleeps until noon.\n")

    assert "memory/quoted.md:3  The ferryman sleeps" in cli("search", "ferryman sleeps", "--brief").out


def test_hits_without_a_chance_are_left_out_beside_a_better_one(cli, workspace):
    for number in range(8):
        (workspace / "memory" / f"{number}.md").write_text(f"# Heap {number}\n\nGravel, sand and clay.\n")
    (workspace / "memory" / "ferry.md").write_text("# Ferry\n\nThe ferryman sleeps until noon.\n")

    few = cli("search", "when does the ferryman sleep")
    asked = cli("search", "when does the ferryman sleep", "-n", "5")
    by_score = cli("search", "when does the ferryman sleep", "--min-score", "0")

    assert "0.00  " not in few.out
    assert "with a score of 0.00 left out; --min-score 0 shows them" in few.err
    for every in (asked, by_score):
        assert "0.00  " in every.out
        assert "left out" not in every.err
    scores = [hit["score"] for hit in cli("search", "when does the ferryman sleep", "--json").json["results"]]
    assert min(scores) < 0.005 < max(scores)


@pytest.mark.parametrize("question", ['"*"', '"``"', '"\ufeff"', 'printer "*"', '-"*" printer'])
def test_a_phrase_of_nothing_but_marks_stands_nowhere(cli, workspace, question):
    answer = cli("search", question)

    assert answer.status == 0
    assert ("VLAN 40" in answer.out) == ("printer" in question)


def test_where_nothing_certain_is_found_the_notes_that_were_not_read_are_named(cli, workspace, tmp_path):
    (workspace / "memory" / "minutes.md").write_text("- the zeppelin lands at noon\n" * 40)
    (workspace / "memory" / "linked.md").symlink_to(tmp_path / "elsewhere.md")
    small = ("--config", "maxFileBytes=1024")

    hint = "left out of every search: memory/linked.md (a symbolic link, not followed) and 1 other"
    assert hint in cli("search", "where does the zeppelin land?", *small).err
    assert any(
        note.startswith("left out of") for note in cli("search", "zeppelin", "--json", *small).json["notes"]
    )
    assert "left out" not in cli("search", "which VLAN has the printer?", *small).err
    (workspace / "memory" / "linked.md").unlink()
    hint = "memory/minutes.md (1,160 bytes, over the limit of 1,024 bytes); `plainmind status` lists"
    assert hint in cli("search", "where does the zeppelin land?", *small).err
    assert "left out" not in cli("search", "where does the airship land?").err


TALK = """\
# Call with Ben

Anna: Where did you put the ladder of the shed?
Ben: It leans at the back of the garage.
Anna: And who has the key of the shed?
Anna: The old one, I mean.
Ben: Mrs Holm, since June.

## Where is the spare fuse box?

### In the house

In the cellar behind the wine rack.

## Gutter

- Who cleans the gutter?
- Who pays the gutter?
- Buy a gutter.

## Boiler

- It stands in the cellar.
- Service of the boiler is in May.

What is the name of the plumber?
Lars Berg, he comes on Tuesdays.
"""


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("where did you put the ladder of the shed?", "4  Ben: It leans at the back of the garage."),
        ("who has the key of the shed?", "7  Ben: Mrs Holm, since June."),
        (
            "where is the spare fuse box?",
            "13  Where is the spare fuse box? In the cellar behind the wine rack.",
        ),
        ("who pays the gutter?", "18  Who pays the gutter?"),
        ("when is the service of the boiler?", "24  Service of the boiler is in May."),
        ("name of the plumber", "27  Lars Berg, he comes on Tuesdays."),
    ],
)
def test_a_brief_hit_is_the_line_that_answers_and_not_the_question(cli, workspace, question, line):
    (workspace / "memory" / "talk.md").write_text(TALK)

    assert cli("search", question, "--brief", "-n", "1").out.endswith(f"memory/talk.md:{line}\n")


CODE = """\
How do I restart the gateway?

```sh
systemctl restart gw
```

Who owns the gateway box?
---
Not the landlord of the house.

## Backup of the gateway

***
```sh
tar czf gw.tgz /etc/gw
```
"""


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("how do I restart the gateway?", "4  systemctl restart gw"),
        ("who owns the gateway box?", "7  Who owns the gateway box?"),
        ("backup of the gateway", "15  Backup of the gateway: tar czf gw.tgz /etc/gw"),
    ],
)
def test_what_frames_code_and_sections_is_no_answer_of_a_brief_hit(cli, workspace, question, line):
    (workspace / "memory" / "gateway.md").write_text(CODE)

    assert cli("search", question, "--brief", "-n", "1").out.endswith(f"memory/gateway.md:{line}\n")


def test_a_brief_hit_of_a_conversation_is_the_reply(cli, workspace, tmp_path):
    said = [
        {"role": "user", "content": "Where did I put the spare key of the boat house?"},
        {"role": "assistant", "content": "It hangs behind the barometer."},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(said))
    cli("import", "messages", str(tmp_path / "chat.json"))

    found = cli("search", "where did I put the spare key of the boat house", "--brief", "--source", "all")

    assert found.out.splitlines()[0].endswith("Assistant: It hangs behind the barometer.")


def test_a_brief_heading_is_shown_with_the_line_below_it_that_says_most(cli, workspace):
    (workspace / "memory" / "boiler.md").write_text(
        "# The Vaillant boiler\n\nIt stands in the cellar.\n\nServiced in May.\n\n# Bare\n"
    )

    assert (
        cli("search", "vaillant boiler serviced", "--brief")
        .out.splitlines()[0]
        .endswith("memory/boiler.md:5  The Vaillant boiler: Serviced in May.")
    )
    assert cli("search", "bare", "--brief", "-n", "1").out.endswith("memory/boiler.md:7  Bare\n")


def test_the_title_of_an_empty_note_that_is_hardly_near_is_no_hit(cli, tmp_path):
    cli("init", "other")
    (tmp_path / "other" / "memory" / "boat.md").write_text("- the boat is red\n")

    found = cli("search", "paint plan", "--workspace", "other", "--min-score", "0")

    assert found.out.splitlines()[0].endswith("memory/boat.md:1")
    assert "MEMORY.md" not in found.out


def test_a_brief_hit_of_a_task_says_whether_it_is_done(cli, workspace):
    (workspace / "memory" / "tasks.md").write_text("- [ ] ask the notary\n- [x] order the certificate\n")

    assert cli("search", "order the certificate", "--brief", "-n", "1").out.endswith(
        "  [x] order the certificate\n"
    )
    assert cli("search", "ask the notary", "--brief", "-n", "1").out.endswith("  [ ] ask the notary\n")


TABLES = """\
# On-call

| Week | Who |
|---|---|
| 2026-W47 | Bea |
| 2026-W48 | Amara |

## Insurance

| What | Company | Policy |
|:---|---:|---|
| Household | Baloise | HH-448 |
| Dog walker | Petplan | PP-4411 |
| Dog | Petplan | PP-5512 |

## Vans

Van | Tyres
--- | ---
red | winter
"""


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("who is on call in week 48?", "6  | 2026-W48 | Amara |"),
        ("policy number of the dog insurance", "14  | Dog | Petplan | PP-5512 |"),
        ("which company insures the household?", "12  | Household | Baloise | HH-448 |"),
        ("tyres of the red van", "20  red | winter"),
        ("which tyres?", "18  Van | Tyres"),
    ],
)
def test_a_brief_hit_of_a_table_is_the_row_that_was_asked_for(cli, workspace, question, line):
    (workspace / "memory" / "tables.md").write_text(TABLES)

    number, text = line.split("  ", 1)
    printed = cli("search", question, "--brief", "-n", "1").out
    assert f"memory/tables.md:{number}  " in printed
    assert printed.endswith(f"{text}\n")


@pytest.mark.parametrize(
    ("note", "question", "line"),
    [
        ("# Rent\n\nUntil 2025-12-31 the rent was 980 €.\nSince 2026-01-01 the rent is 1,045 €.\n",
         "how much rent do we pay now?", "4  Rent: Since 2026-01-01 the rent is 1,045 €."),
        ("# Rent\n\nUntil 2025-12-31 the rent was 980 €.\nSince 2026-01-01 the rent is 1,045 €.\n",
         "rent", "4  Rent: Since 2026-01-01 the rent is 1,045 €."),
        ("# Rent\n\nUntil 2025-12-31 the rent was 980 €.\nSince 2026-01-01 the rent is 1,045 €.\n",
         "what was the rent before?", "3  Rent: Until 2025-12-31 the rent was 980 €."),
        ("# Rent\n\nUntil then the rent was 980 €.\nSince 2027-01-01 the rent is 1,045 €.\n",
         "rent", "3  Rent: Until then the rent was 980 €."),
        ("# Phone plan\n\nOld: Congstar, 22 € a month.\nCurrent: Fraenk, 10 € a month.\n",
         "phone plan", "4  Phone plan: Current: Fraenk, 10 € a month."),
        ("# Password manager\n\nWe used 1Password.\n\n2026-03-01: switched to Bitwarden.\n",
         "which password manager do we use?", "5  Password manager: 2026-03-01: switched to Bitwarden."),
        ("# Miete\n\nBis Ende 2025 betrug die Miete 700 Euro.\nSeit Januar 2026 beträgt die Miete 760 Euro.\n",
         "Miete", "4  Miete: Seit Januar 2026 beträgt die Miete 760 Euro."),
        ("# Car\n\nThe winter tyres were bought in 2021.\nThe parking place is now number 31.\n",
         "winter tyres of the car", "3  The winter tyres were bought in 2021."),
    ],
)  # fmt: skip
def test_a_brief_hit_is_the_line_that_holds_unless_it_is_asked_what_was(cli, workspace, note, question, line):
    (workspace / "memory" / "note.md").write_text(note)

    number, text = line.split("  ", 1)
    printed = cli("search", question, "--brief", "-n", "1").out
    assert f"memory/note.md:{number}  " in printed
    assert printed.endswith((f"{text}\n", f"{text.partition(': ')[2]}\n"))


def test_a_table_of_other_weeks_is_no_certain_answer(cli, workspace):
    rows = "".join(
        f"| 2026-W{week} | {name} |\n" for week, name in ((46, "Luca"), (47, "Bea"), (48, "Amara"))
    )
    (workspace / "memory" / "on-call.md").write_text(f"# On-call\n\n| Week | Who |\n|---|---|\n{rows}")

    assert "nothing certain" in cli("search", "who is on call in week 52?").err
    found = cli("search", "who is on call in week 48?", "--brief")
    assert "nothing certain" not in found.err
    assert "Amara" in found.out.splitlines()[0]
