"""Coverage floors count lines and branches together, and a package nobody saw does not pass."""

from __future__ import annotations

import check_coverage


def entry(
    statements: int, covered: int, branches: int = 0, covered_branches: int = 0
) -> dict[str, dict[str, int]]:
    return {
        "summary": {
            "num_statements": statements,
            "covered_lines": covered,
            "num_branches": branches,
            "covered_branches": covered_branches,
        }
    }


def test_a_missed_branch_counts():
    files = {"src/plainmind/text/chunks.py": entry(8, 8, 2, 1)}

    assert check_coverage.percentage(files, "src/plainmind/text/") == 90.0


def test_only_files_of_the_package_count():
    files = {"src/plainmind/text/a.py": entry(10, 10), "src/plainmind/files/b.py": entry(10, 0)}

    assert check_coverage.percentage(files, "src/plainmind/text/") == 100.0
    assert check_coverage.percentage(files, "src/plainmind/") == 50.0


def test_a_package_that_was_never_imported_has_no_coverage():
    assert check_coverage.percentage({}, "src/plainmind/text/") is None
