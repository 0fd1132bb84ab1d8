"""A release is refused while something stands in its way, and says what."""

from __future__ import annotations

import pytest
import release

import plainmind

CHANGELOG = "# Changelog\n\n## [0.2.0] - 2026-11-16\n"


def test_the_version_is_the_one_in_the_code():
    assert release.version() == plainmind.__version__


def test_nothing_stands_in_the_way():
    assert list(release.faults("0.2.0", CHANGELOG, "v0.1.0\n", "")) == []


@pytest.mark.parametrize(
    ("changelog", "tags", "status", "said"),
    [
        ("## [Unreleased]\n", "", "", "CHANGELOG.md has no section `## [0.2.0] - DATE`"),
        (CHANGELOG, "v0.1.0\nv0.2.0\n", "", "the tag v0.2.0 is there already"),
        (CHANGELOG, "", " M README.md\n", "there are changes that are not committed"),
    ],
)
def test_what_stands_in_the_way_is_said(changelog, tags, status, said):
    (fault,) = release.faults("0.2.0", changelog, tags, status)

    assert fault.startswith(said)
