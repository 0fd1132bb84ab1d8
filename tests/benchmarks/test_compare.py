"""Peers do the same work beside ours and are judged alike; the page in the repository is what its figures say."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from datetime import date
from pathlib import Path

import pytest
from compare import course
from compare import work as work_module
from compare.course import Course, Rounds, Runner, figures_of, summary_of, vectors_on_loopback
from compare.judge import CUT, Judge, Shown, holds, plain
from compare.page import PAGE, RESULTS, losses, page_of, table
from compare.peer import Peer, paragraphs
from compare.peers import PEERS
from compare.peers.plainmind import Plainmind
from compare.peers.ripgrep import words_of
from compare.processes import Resident, Taken, run, seconds_of, tree
from compare.work import gather

from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import Evidence, Question, read_dataset

LINUX = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are looked at through /proc"
)
DAY = date(2026, 6, 1)
LOOKER = """
import pathlib, sys
words = sys.argv[2].lower().split()
for note in sorted(pathlib.Path(sys.argv[1]).rglob("*.md")):
    for line in note.read_text().splitlines():
        if any(word in line.lower() for word in words):
            print(line)
"""


class Looker(Peer):
    """Shows the first lines with any word of the question; has no index and cannot stay open."""

    name = "looker"
    title = "Looker"
    registry = "this test"
    finds_by = "words"
    fairness = "It is a toy.\n\nIt is ours."

    def version(self, tools):
        return "1"

    def index(self, place, *, first):
        return []

    def search(self, place, question):
        return [sys.executable, "-S", "-c", LOOKER, str(place.workspace), question.text]

    def shown(self, place, question, output):
        return [Shown("somewhere", line) for line in output.splitlines()[:6]]

    def kept(self, place):
        return []


class Broken(Looker):
    name = "broken"
    title = "Broken"

    def search(self, place, question):
        return [sys.executable, "-S", "-c", "import sys; sys.exit('no licence')"]


@pytest.fixture
def dataset(tmp_path):
    """One workspace with two questions, one of which has no answer."""
    folder = tmp_path / "set" / "boats"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "harbour.md").write_text("# Harbour\n\n- The crane lifts nine tonnes.\n")
    rows = [
        {
            "id": "a", "query": "how much does the crane lift", "category": "fact",
            "gold": [{"path": "memory/harbour.md", "line_start": 3, "line_end": 3}],
        },
        {"id": "b", "query": "who paints it", "category": "absent", "gold": []},
    ]  # fmt: skip
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "set"


@LINUX
@pytest.mark.timeout(120)
def test_a_course_measures_ours_beside_a_peer_and_leaves_out_who_fails(tmp_path, dataset):
    work = gather(tmp_path / "work", dataset=dataset, around=None, limit=None)
    told, kept = [], []
    runners = [
        Runner(
            peer, tools=tmp_path / "tools", folder=tmp_path / peer.name, base=work.workspace,
            vectors="http://127.0.0.1:9/v1", server=os.getpid(),
        )
        for peer in (Plainmind(), Looker(), Broken())
    ]  # fmt: skip

    Course(
        runners, work, rounds=Rounds(first=1, cold=1, edits=1), tell=told.append, keep=lambda: kept.append(1)
    ).run()
    ours, looker, broken = (figures_of(one) for one in runners)

    assert (work.files, [one.id for one in work.questions]) == (1, ["a"])
    assert ours["answers"]["recall_cut"] == ours["answers"]["hit"] == 1.0
    assert {"first", "again", "cold", "warm", "edit", "edit by commands"} == set(ours["times"])
    assert ours["kept_bytes"] > 0
    assert ours["changed_files"] == 0
    assert ours["open_bytes"] > 1e6
    assert "not_found" not in ours
    assert not ours["failure"]
    assert {"cold", "warm", "edit", "edit by commands"} == set(looker["times"])
    assert looker["answers"]["recall"] == 1.0
    assert "no licence" in broken["failure"]
    assert not broken["answers"]
    assert any("Broken is left out" in line for line in told)
    assert len(kept) >= 3
    page = page_of(_figures([ours, looker, broken]))
    assert "| recall@6, 700 characters a result | **1.000** | **1.000** | – |" in page
    assert "Broken stopped taking part" in page
    assert "- It is a toy.\n- It is ours." in page


class Indexer(Looker):
    name = "indexer"
    title = "Indexer"

    def index(self, place, *, first):
        return [[sys.executable, "-S", "-c", "pass"]]


@LINUX
@pytest.mark.timeout(120)
def test_an_index_that_is_slow_to_bring_up_to_date_is_brought_there_once(tmp_path, dataset, monkeypatch):
    work = gather(tmp_path / "work", dataset=dataset, around=None, limit=None)
    rounds = Rounds(first=1, cold=3, edits=2)

    def measured(name):
        indexer = Runner(
            Indexer(), tools=tmp_path / "tools", folder=tmp_path / name, base=work.workspace,
            vectors="http://127.0.0.1:9/v1", server=os.getpid(),
        )  # fmt: skip
        Course([indexer], work, rounds=rounds, tell=lambda _: None, keep=lambda: None).run()
        return {what: len(indexer.laps[what]) for what in ("cold", "again", "edit by commands")}

    assert measured("quick") == {"cold": 3, "again": 3, "edit by commands": 2}
    monkeypatch.setattr(course, "SLOW_S", 0.0)
    assert measured("slow") == {"cold": 3, "again": 1, "edit by commands": 0}


def test_the_page_in_the_repository_is_what_its_figures_say():
    assert PAGE.read_text(encoding="utf-8") == page_of(json.loads(RESULTS.read_text(encoding="utf-8")))


def test_the_figures_in_the_repository_are_of_everybody_and_name_versions_and_commands():
    figures = json.loads(RESULTS.read_text(encoding="utf-8"))
    peers = {peer["name"]: peer for peer in figures["peers"]}

    assert {"plainmind", "openclaw", "qmd", "memsearch", "basic-memory", "mem0", "ripgrep"} <= set(peers)
    assert all(peer["version"] and peer["commands"]["search"] for peer in peers.values())
    assert all(peer["fairness"] for peer in peers.values())


def test_a_row_that_somebody_else_wins_is_told():
    ours = _peer("plainmind", "Plainmind", cpu=8.0, recall=0.9)
    other = _peer("quick", "Quick", cpu=1.5, recall=0.4)

    assert losses([ours, other]) == ["search, open: Plainmind 8.0 ms; Quick 1.5 ms."]
    rows = {row[0]: row[1:] for row in table([ours, other])}
    assert rows["search, open"] == ("8.0 ms (16 ms)", "**1.5 ms (3.0 ms)**")
    assert rows["recall@6, 700 characters a result"] == ("**.900**", ".400")
    assert rows["first index"] == ("–", "–")


def test_an_edit_that_was_not_found_is_told_as_such():
    blind = {**_peer("plainmind", "Plainmind", cpu=8.0, recall=0.9), "not_found": ["edit"]}

    assert ("edit → found, open", "not found") in [tuple(row) for row in table([blind])]


def test_evidence_counts_when_the_shown_text_has_its_line_whatever_its_marks(tmp_path):
    (tmp_path / "note.md").write_text(f"# Boats\n\n- The **crane** lifts `nine` tonnes.\n- {'long ' * 90}\n")
    question = Question("q", "?", "fact", DAY, (Evidence("note.md", 3, 4),))
    judge = Judge(tmp_path)

    nothing = judge.judge(question, [Shown("note.md", "The crane lifts ten tonnes.")])
    half = judge.judge(question, [Shown("x", "?"), Shown("x", "says: The crane lifts\n  nine tonnes.")])
    late = judge.judge(question, [Shown("x", "." * CUT + "the crane lifts nine tonnes. " + "long " * 50)])
    seventh = judge.judge(question, [*[Shown("x", "?")] * 6, Shown("x", "the crane lifts nine tonnes.")])

    assert (nothing.recall, nothing.hit) == (0.0, False)
    assert (half.recall, half.hit, half.recall_cut) == (0.5, False, 0.5)
    assert (late.recall, late.hit, late.recall_cut, late.hit_cut) == (1.0, True, 0.0, False)
    assert seventh.recall == 0.0


def test_of_a_long_line_two_hundred_characters_are_enough_and_fewer_are_not():
    line = "".join(chr(97 + at * at % 23) for at in range(400))

    assert holds(line[100:320], line)
    assert not holds(line[100:290], line)
    assert plain("| *A* - `b` |") == "ab"


def test_only_questions_of_the_dev_halves_are_asked(tmp_path):
    work = gather(tmp_path, around=None, limit=None)
    unseen = {
        question.text
        for workspace in read_dataset(str(work_module.EVALS), queries="unseen")
        for question in workspace.questions
    }

    assert len(work.questions) > 400
    assert unseen.isdisjoint(question.text for question in work.questions)
    assert all((tmp_path / piece.path).exists() for one in work.questions for piece in one.evidence)


@LINUX
def test_the_time_and_memory_of_children_count(tmp_path):
    burn = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {burn!r}]); print('done')"

    taken = run([sys.executable, "-S", "-c", parent], dict(os.environ), tmp_path, every_s=0.01)

    assert taken.output == "done\n"
    assert taken.cpu_seconds >= 0.2
    assert taken.seconds >= 0.2
    assert taken.peak_bytes > 4e6


@LINUX
def test_a_command_that_fails_is_an_error_with_its_own_words(tmp_path):
    with pytest.raises(PlainmindError, match="out of paper"):
        run([sys.executable, "-S", "-c", "import sys; sys.exit('out of paper')"], dict(os.environ), tmp_path)


@LINUX
def test_a_command_that_takes_too_long_is_ended_and_said_to_be(tmp_path):
    waiting = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    with pytest.raises(PlainmindError, match=r"was ended: it took more than 1 s"):
        run(waiting, {}, tmp_path, most_s=1.0)


def test_a_program_that_stays_open_is_asked_and_leaves_nothing_behind(tmp_path):
    program = (
        "import json, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        "print(json.dumps({'child': child.pid}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    end = sum(range(2_000_000))\n"
        "    print(json.dumps({'heard': json.loads(line)['search'], 'child': child.pid}), flush=True)\n"
    )
    resident = Resident([sys.executable, "-S", "-c", program], dict(os.environ), tmp_path, tmp_path / "said")

    answer, taken = resident.ask(search="boats")
    resident.close()

    assert answer["heard"] == "boats"
    assert 0 < taken.cpu_seconds <= taken.seconds * 2
    assert taken.peak_bytes > 4e6
    until = time.monotonic() + 20
    while Path(f"/proc/{answer['child']}/cmdline").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{answer['child']}/cmdline").exists()


@LINUX
def test_a_program_that_ends_is_an_error_with_its_own_words(tmp_path):
    with pytest.raises(PlainmindError, match="out of paper"):
        Resident(
            [sys.executable, "-S", "-c", "import sys; sys.exit('out of paper')"], dict(os.environ), tmp_path,
            tmp_path / "said",
        )  # fmt: skip


@LINUX
def test_our_vectors_are_served_as_openai_has_it_in_both_encodings():
    from array import array
    from base64 import b64decode

    from plainmind.embed.builtin import BuiltinEmbedder

    def ask(address, **request):
        body = json.dumps({"model": "any", **request}).encode()
        with urllib.request.urlopen(f"{address}/embeddings", data=body, timeout=60) as answer:
            return [row["embedding"] for row in json.load(answer)["data"]]

    with vectors_on_loopback() as (address, server):
        plainly = ask(address, input=["the crane", ""])
        packed = ask(address, input="the crane", encoding_format="base64")
        assert seconds_of(server) > 0
        assert server in tree(os.getpid())

    ours = list(BuiltinEmbedder().embed_documents(["the crane"])[0])
    assert plainly[0] == pytest.approx(ours)
    assert len(plainly[1]) == len(ours)
    assert list(array("f", b64decode(packed[0]))) == pytest.approx(ours)


def test_ripgrep_is_asked_for_the_words_that_count_and_pairs_of_characters():
    assert words_of("Where is the crane?") == ["crane"]
    assert words_of("起重机") == ["起重", "重机"]
    assert words_of("is it") == ["is it"]


def test_every_peer_says_what_is_unfair_and_where_it_is_from():
    assert next(iter(PEERS)) == "plainmind"
    for peer in PEERS.values():
        assert paragraphs(peer.fairness)
        assert peer.registry
        assert peer.finds_by


def test_times_are_medians_and_count_what_was_served():
    times = summary_of(
        [Taken(0.010, 0.004, 0.001, 1), Taken(0.020, 0.008, 0.001, 1), Taken(0.9, 0.5, 0.0, 1)]
    )

    assert (times["runs"], times["wall_p50"], times["cpu_p50"], times["served_p50"]) == (3, 20.0, 9.0, 1.0)


def _peer(name, title, *, cpu, recall):
    return {
        "name": name,
        "title": title,
        "times": {"warm": {"cpu_p50": cpu, "wall_p50": 2 * cpu, "cpu_p95": 9.0}},
        "answers": {"recall_cut": recall, "categories": {}},
    }


def _figures(peers):
    return {
        "day": "2026-11-16", "python": "3.11.7", "absent": {}, "peers": peers,
        "machine": {"cores": 2, "processor": "some", "system": "Linux"},
        "work": {"files": 1, "bytes": 1e6, "questions": 1},
        "empty_python": summary_of([Taken(0.02, 0.01, 0.0, 1)]),
    }  # fmt: skip
