from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plainmind.base.errors import ConfigError
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.embed.protocol import EmbeddingSettings, NoEmbedder, create_embedder, known_providers

SETTINGS = EmbeddingSettings()


def install_plugin(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """A package as an installer would leave it: a module, and metadata that names its entry point."""
    (folder / "shouting_embedder.py").write_text(
        "from plainmind.embed.protocol import create_silent as create\n"
    )
    metadata = folder / "shouting-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[plainmind.embedders]\nshouting = {target}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_auto_is_the_builtin_model_whatever_model_was_meant_for_others() -> None:
    embedder = create_embedder("auto", EmbeddingSettings(model="text-embedding-3-small"))

    assert isinstance(embedder, BuiltinEmbedder)
    assert embedder.identity.provider == "builtin"


def test_none_answers_by_keywords_alone() -> None:
    assert isinstance(create_embedder("none", SETTINGS), NoEmbedder)


def test_a_misspelt_provider_gets_the_nearest_name_and_all_others() -> None:
    with pytest.raises(ConfigError, match="unknown embedding provider: `Bultin`") as caught:
        create_embedder("Bultin", SETTINGS)

    assert caught.value.key == "provider"
    assert (
        caught.value.hint
        == "did you mean `builtin`? this version knows auto, builtin, gemini, local, none, onnx, openai, voyage"
    )


def test_a_provider_like_no_other_still_gets_the_list() -> None:
    with pytest.raises(ConfigError) as caught:
        create_embedder("xyzzy", SETTINGS)

    assert caught.value.hint == "this version knows auto, builtin, gemini, local, none, onnx, openai, voyage"


def test_an_installed_package_can_bring_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, "shouting_embedder:create")

    assert isinstance(create_embedder("shouting", SETTINGS), NoEmbedder)
    assert known_providers() == (
        "auto",
        "builtin",
        "gemini",
        "local",
        "none",
        "onnx",
        "openai",
        "shouting",
        "voyage",
    )


@pytest.mark.parametrize("target", ["no_such_module:create", "shouting_embedder:no_such_name"])
def test_a_broken_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    install_plugin(tmp_path, monkeypatch, target)

    with pytest.raises(ConfigError, match="`shouting` cannot be loaded") as caught:
        create_embedder("shouting", SETTINGS)

    assert target in str(caught.value.hint)


def test_choosing_our_own_provider_does_not_look_for_plugins() -> None:
    script = (
        "import sys; from plainmind.embed.protocol import create_embedder as create;"
        "from plainmind.embed.protocol import EmbeddingSettings as S;"
        "create('auto', S()); print('importlib.metadata' in sys.modules, 'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout == "False False\n"
