"""What is said to the program: its arguments, and an environment in which it finds its own files and nothing else's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.guests.qmd.options import SearchMode
from plainmind.memory.backend import BackendFailed

_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"}
)
_PASSED_ON_PREFIXES = ("CUDA_", "GGML_", "LC_", "LLAMA_", "NODE_LLAMA_CPP_", "QMD_")
_KEPT_BACK_PREFIX = "QMD_TRUST_"  # lets a folder that it stands in run programs

# By its name: without one, a folder `.qmd` where it stands, or above, takes the place of its home.
OWN_INDEX = ("--index", "index")

_MOST_ASKED = (
    8_000  # characters; the system refuses to start a program with more than 128 KiB in one argument
)
_NOT_TEXT = pattern(r"[\x00-\x20\x7f-\xa0\ud800-\udfff]+")
_EXCLUSION = pattern(r'(?<!\S)-+(?=[\w"])')
_KIND_OF_LINE = pattern(r"(?i)^(lex|vec|hyde|expand|intent):")

# What it takes when nobody has said otherwise; a name is enough to see whether it was fetched.
_USUAL_MODELS = {
    "embed": "embeddinggemma-300M-Q8_0.gguf",
    "generate": "qmd-query-expansion-1.7B-q4_k_m.gguf",
    "rerank": "qwen3-reranker-0.6b-q8_0.gguf",
}


@value
class Homes:
    """The folders that the program takes for its own."""

    config: str
    cache: str

    @classmethod
    def beneath(cls, folder: str) -> Homes:
        """In a folder that is ours."""
        return cls(os.path.join(folder, "xdg-config"), os.path.join(folder, "xdg-cache"))

    @property
    def config_file(self) -> str:
        """Where it looks for its collections."""
        return os.path.join(self.config, "qmd", "index.yml")

    @property
    def index_file(self) -> str:
        """Where it keeps its index."""
        return os.path.join(self.cache, "qmd", "index.sqlite")

    @property
    def models(self) -> str:
        """Where it keeps models that it has fetched."""
        return os.path.join(self.cache, "qmd", "models")


def environment(environ: Mapping[str, str], homes: Homes, program: str) -> dict[str, str]:
    """Let through what it needs. `CI` is not among it: set, it turns its models off; empty, it makes it crash."""
    kept = {
        name: text
        for name, text in environ.items()
        if name in _PASSED_ON
        or (name.startswith(_PASSED_ON_PREFIXES) and not name.startswith(_KEPT_BACK_PREFIX))
    }
    # A program that was installed beside its own Node finds it there.
    path = os.pathsep.join(filter(None, (kept.get("PATH"), os.path.dirname(program))))
    return {
        **kept,
        "PATH": path,
        "NO_COLOR": "1",
        "XDG_CONFIG_HOME": homes.config,
        "XDG_CACHE_HOME": homes.cache,
        "QMD_CONFIG_DIR": os.path.dirname(homes.config_file),
    }


def find_program(command: str, environ: Mapping[str, str]) -> str:
    """The program's absolute path. Raises BackendFailed when there is none."""
    from shutil import which

    home = environ.get("HOME") or os.path.expanduser("~")
    wanted = home + command[1:] if command.startswith("~/") else command
    # An empty path would be that of this process, and a relative one would depend on where somebody stands.
    path = os.pathsep.join(part for part in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(part))
    found = which(wanted, path=path or os.devnull) if os.path.isabs(wanted) or "/" not in wanted else None
    if found is None:
        raise BackendFailed(
            f"there is no program `{command}`",
            hint="install it with `npm install -g @tobilu/qmd`, or give its absolute path as `qmd.command`",
        )
    return found


def configured_models(environ: Mapping[str, str]) -> dict[str, str]:
    """The models that somebody has chosen, by what they are for."""
    chosen = {kind: environ.get(f"QMD_{kind.upper()}_MODEL", "") for kind in _USUAL_MODELS}
    return {kind: model for kind, model in chosen.items() if model}


def present_models(environ: Mapping[str, str], homes: Homes) -> frozenset[str]:
    """Which models are on this machine, by what they are for: it hangs when it has to fetch one and cannot."""
    try:
        fetched = [name.casefold() for name in os.listdir(homes.models)]
    except OSError:
        fetched = []
    wanted = _USUAL_MODELS | configured_models(environ)
    return frozenset(kind for kind, model in wanted.items() if _is_present(model, fetched))


def _is_present(model: str, fetched: Sequence[str]) -> bool:
    if os.path.isabs(model):
        return os.path.isfile(model)
    return any(name.endswith(os.path.basename(model).casefold()) for name in fetched)


def in_one_line(query: str) -> str:
    """A question as it can be handed to a program; empty when nothing of it can be."""
    return " ".join(_NOT_TEXT.sub(" ", query).split())[:_MOST_ASKED]


def search_arguments(
    query: str, mode: SearchMode, models: frozenset[str], collections: Sequence[str], limit: int
) -> tuple[list[str], str | None]:
    """The arguments of a search, and what it does without: never a command that would wait for a missing model.

    With a model for embedding alone, it is told what to look for by words and what by meaning, so that it need not
    ask a second model to say the question in other words, nor a third to compare.
    """
    asked = in_one_line(query)
    wanted = [part for name in collections for part in ("-c", name)]
    options = ["--json", "-n", str(limit), *wanted]
    if mode == "search":
        return ["search", *options, "--", asked], None
    if "embed" not in models:
        without = "qmd has no model for meaning here: words alone were searched"
        return ["search", *options, "--", asked], without
    if mode == "vsearch":
        return ["query", *options, "--no-rerank", "--", _by_meaning(asked)], None
    if {"generate", "rerank"} <= models:
        return ["query", *options, "--", _KIND_OF_LINE.sub(r"\1 ", asked)], None
    both = "\n".join(filter(None, (_by_words(asked), _by_meaning(asked))))
    return ["query", *options, "--no-rerank", "--", both], None


def _by_words(asked: str) -> str:
    """A line for words; none when only quotation marks would be left. It refuses one without its other half."""
    words = asked.replace('"', " ").strip() if asked.count('"') % 2 else asked
    return f"lex: {words}" if words else ""


def _by_meaning(asked: str) -> str:
    """A line for meaning, in which it refuses words that are to be left out."""
    return f"vec: {_EXCLUSION.sub('', asked)}"
