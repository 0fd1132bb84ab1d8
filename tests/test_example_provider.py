"""The provider of the guide, installed as a package would be, and used by the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.contracts.test_embedder import (  # noqa: F401  the promises of every embedder, run on this one
    test_a_blank_question_is_an_error_and_not_a_vector_of_zeros,
    test_a_blank_text_has_no_vector_and_spoils_no_other,
    test_a_question_is_nearest_to_the_text_that_answers_it,
    test_a_text_has_the_same_vector_alone_and_in_company,
    test_closing_twice_does_no_harm,
    test_each_vector_stands_where_its_text_stands,
    test_hostile_text_is_embedded_like_any_other,
    test_it_can_be_shared_between_threads,
    test_it_says_who_it_is_and_where_text_goes,
    test_no_texts_give_no_vectors,
    test_vectors_are_unit_length_float32_of_the_promised_size,
)

from plainmind.embed.protocol import Embedder, EmbeddingSettings, create_embedder, known_providers

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "provider"
MODULE = EXAMPLE / "src" / "plainmind_letters" / "__init__.py"
GUIDE = ROOT / "docs" / "guides" / "write-a-provider.md"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with what an installer leaves behind: the module, and metadata that names its entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site-packages"
    (folder / "plainmind_letters").mkdir(parents=True)
    (folder / "plainmind_letters" / "__init__.py").write_text(MODULE.read_text())
    metadata = folder / f"plainmind_letters-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def embedder(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.delitem(sys.modules, "plainmind_letters", raising=False)
    return create_embedder("letters", EmbeddingSettings(provider="letters"))


def test_the_installed_provider_is_known_by_its_name(embedder: Embedder) -> None:
    assert "letters" in known_providers()
    assert embedder.identity.provider == "letters"


@pytest.mark.timeout(60)
def test_the_command_indexes_and_searches_with_it(installed: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Memory\n\n- The thermostat hangs in the hall.\n")
    environment = dict(os.environ, PYTHONPATH=str(installed), PLAINMIND_HOME=str(tmp_path / "home"))

    def plainmind(*words: str) -> dict[str, object]:
        run = subprocess.run(
            [sys.executable, "-m", "plainmind", *words, "--json", "--workspace", str(notes)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert run.returncode == 0, run.stderr
        answer: dict[str, object] = json.loads(run.stdout)
        return answer

    subprocess.run(
        [sys.executable, "-m", "plainmind", "config", "set", "provider", "letters"],
        check=True,
        env=environment,
        capture_output=True,
    )
    found = plainmind("search", "termostats", "--min-score", "0")

    assert found["results"], "a misspelt word is found by its letters"
    assert found["provider"] == "letters"
    assert plainmind("status")["provider"] == "letters"


def test_the_guide_shows_the_files_as_they_are() -> None:
    guide = GUIDE.read_text()

    assert MODULE.read_text().strip() in guide
    assert (EXAMPLE / "pyproject.toml").read_text().strip() in guide
