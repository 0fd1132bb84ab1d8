"""Every kind of conversation with QMD as the engine, with one that tells all it has, and with the index instead."""

from __future__ import annotations

import inspect

import pytest
from tests.support.qmd_program import QmdProgram
from tests.support.scope_surfaces import shown
from tests.support.scope_world import CONTEXTS, FULL, QUERIES, SPELLINGS, TEXTS, Text, fill, opened, write

# One question for several texts at once would find none: every word of it must be in one file.
_OTHERS = [text.ask for text in TEXTS if text.scope not in {"private", "past", "nobody"}]
ASKED = QUERIES if FULL else [*_OTHERS[::2], "code", "MEMORY.md"]

JOURNAL = Text("journal", "qmd/journal/june.md", "private")  # a folder that only QMD's settings name

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 if FULL else 120)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("matrix")
    fill(place)
    return place


class TellingEverything(QmdProgram):
    """Whatever it is asked, and by whomever, it answers with all files that it knows, by every name it can think of."""

    def __init__(self, folder):
        super().__init__(folder)
        source, run = self.path.read_text().rsplit("\nrun(", 1)
        told = inspect.getsource(_everything).replace("_everything", "_found")
        self.path.write_text(f"{source}\n{told}\nrun({run}")


def _everything(argv):  # of the program that it becomes a part of
    with open(_index()) as file:  # noqa: F821
        known = json.load(file)  # noqa: F821
    with open(os.path.join(os.environ["QMD_CONFIG_DIR"], "index.yml")) as file:  # noqa: F821
        folders = {name: each["path"] for name, each in json.load(file)["collections"].items()}  # noqa: F821
    asked = [argv[place + 1] for place in range(argv.index("--")) if argv[place] == "-c"]
    answers = []
    for name, files in known.items():
        for path, text in files.items():
            places = [f"{name}/{path}"]
            for each in asked:  # as a file of what was asked for, and by the way from there to where it is
                way = os.path.relpath(os.path.join(folders[name], path), folders[each])  # noqa: F821
                places += [
                    f"{each}/{path}",
                    f"{each}/{way}",
                    f"{each}/./{way}",
                    f"{each}/{folders[name]}/{path}",
                ]
            shown = f"@@ -1,1 @@ (0 before, 0 after)\n{text}"
            answers += [
                {"score": 0.9, "file": f"qmd://{place}", "line": 1, "title": path, "snippet": shown}
                for place in places
            ]
    return answers


@pytest.fixture(scope="module", params=["qmd", "telling everything", "fallback"])
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def memory(place, engine):
    kind = TellingEverything if engine == "telling everything" else QmdProgram
    program = kind(place / engine)
    command = "no-such-program" if engine == "fallback" else str(program.path)
    write(place / "journal" / "june.md", JOURNAL)
    paths = [{"path": str(place / "journal"), "name": "journal"}]
    qmd = {"command": command, "paths": paths, "sessions": {"enabled": True}, "update": {"debounceMs": 0}}
    with opened(place, backend="qmd", qmd=qmd) as memory:
        memory.sync()
        yield memory


@pytest.mark.parametrize("who", CONTEXTS)
def test_what_is_not_for_a_conversation_never_comes_out_of_the_engine_either(memory, engine, who):
    context, visible = CONTEXTS[who]
    scoped = memory.within(context)
    answers = [
        (query, shown(lambda query=query: scoped.search(query, max_results=50, min_score=0.0)))
        for query in (ASKED[:2] if engine == "telling everything" else ASKED)  # it always says the same
    ]

    allowed = {text.name for text in TEXTS if text.scope in (visible or ())}
    for query, answer in answers:
        told = {text.name for text in TEXTS if text.tell in answer}
        assert told <= allowed
        wanted = {text.name for text in TEXTS if text.ask == query} & allowed
        assert wanted <= told | {"past", "archived"}
    # It was filtered before: the last look found nothing to stop.
    assert memory.policy.checkpoint.withheld == 0
    by_engine = any("provider='qmd'" in answer for _, answer in answers)
    assert by_engine == (engine != "fallback" and visible is not None)


@pytest.mark.parametrize("who", CONTEXTS)
def test_what_only_qmd_was_told_of_is_the_owner_s(memory, engine, who):
    context, visible = CONTEXTS[who]
    scoped = memory.within(context)
    answers = [shown(lambda spelled=spelled: scoped.get(spelled(JOURNAL.path))) for spelled in SPELLINGS]
    answers.append(shown(lambda: scoped.search(JOURNAL.ask, min_score=0.0)))
    answers.append(shown(scoped.list))

    assert (JOURNAL.tell in " ".join(answers)) == ("private" in (visible or ()))
    assert memory.policy.checkpoint.withheld == 0
