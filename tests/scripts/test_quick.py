"""`make quick` runs the tests nearest to what was changed, and stops when its time is up."""

from __future__ import annotations

from collections import Counter

import pytest
import quick

pytest_plugins = ["pytester"]


@pytest.fixture
def tree(tmp_path):
    for path in ("text/test_terms.py", "guests/qmd/test_program.py", "scripts/test_lock.py", "test_house.py"):
        file = tmp_path / "tests" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("src/plainmind/text/terms.py", ["tests/text/test_terms.py", "tests/text"]),
        ("src/plainmind/text/markdown.py", ["tests/text"]),
        ("src/plainmind/guests/qmd/program.py", ["tests/guests/qmd/test_program.py", "tests/guests/qmd"]),
        ("tests/scripts/test_lock.py", ["tests/scripts/test_lock.py"]),
        ("tests/text/conftest.py", ["tests/text"]),
        ("scripts/lock.py", ["tests/scripts"]),
        ("pyproject.toml", ["tests/test_house.py"]),
        ("src/plainmind/gone/away.py", []),
        ("examples/workspace/MEMORY.md", []),
    ],
)
def test_a_changed_file_has_tests_that_are_nearest(tree, changed, tests):
    assert quick.nearest_tests(Counter({changed: 1}), root=tree) == tests


def test_files_come_before_folders_and_the_most_changed_before_the_others(tree):
    changed = Counter(
        {"src/plainmind/text/markdown.py": 5, "scripts/lock.py": 9, "tests/scripts/test_lock.py": 1}
    )

    assert quick.nearest_tests(changed, root=tree) == [
        "tests/scripts/test_lock.py",
        "tests/scripts",
        "tests/text",
    ]


def test_what_comes_too_late_is_left_out_and_counted(pytester):
    pytester.makepyfile("import time\ndef test_one(): time.sleep(0.3)\ndef test_two(): assert False\n")

    done = pytester.runpytest_inprocess("-p", "time_budget", "--budget=0.2", "-p", "no:cacheprovider")

    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["1 tests did not fit into the time: `make test` runs them"])
