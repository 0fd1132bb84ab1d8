from plainmind.index.plan import Disappearance
from plainmind.index.sync import Disappearances


def test_what_is_remembered_is_there_for_the_next_process(tmp_path):
    Disappearances(str(tmp_path)).write("memory", Disappearance(frozenset({"a", "b"}), 12.5))

    assert Disappearances(str(tmp_path)).read("memory") == Disappearance(frozenset({"a", "b"}), 12.5)
    assert Disappearances(str(tmp_path)).read("sessions") is None


def test_forgetting_leaves_nothing(tmp_path):
    notes = Disappearances(str(tmp_path))
    notes.write("memory", Disappearance(frozenset({"a"}), 1.0))
    notes.write("memory", None)

    assert notes.read("memory") is None


def test_forgetting_nothing_writes_nothing(tmp_path):
    Disappearances(str(tmp_path / "state")).write("memory", None)

    assert not (tmp_path / "state").exists()


def test_a_note_that_makes_no_sense_counts_as_none(tmp_path):
    for damaged in ("", "{", "[]", '{"memory": 3}', '{"memory": {"paths": 1, "seenAt": "x"}}'):
        (tmp_path / "missing.json").write_text(damaged)
        assert Disappearances(str(tmp_path)).read("memory") is None
