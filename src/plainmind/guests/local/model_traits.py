"""Which weights a model file holds, and what its family of models wants to read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from plainmind.base.pattern import pattern
from plainmind.base.value import value

_SAMPLES, _SAMPLE_BYTES = 64, 4096


def fingerprint(path: str) -> str:
    """Hash the file's size and samples spread evenly over it: hashing 300 MB would take a second at every start."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(str(size).encode())
        last = max(0, size - _SAMPLE_BYTES)
        for sample in range(_SAMPLES):
            file.seek(last * sample // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


@value
class Prompts:
    """The words before a question and before a text; both may be empty."""

    query: str = ""
    document: str = ""


NO_PROMPTS = Prompts()
_TASK = "Given a web search query, retrieve relevant passages that answer the query"

# The first pattern that is found in a name wins. A model that was trained with such words loses several points of
# recall without them, one that was not loses with them: so only names that we know get any.
_FAMILIES = (
    (r"embedding-?gemma|gemma-embedding", Prompts("task: search result | query: ", "title: none | text: ")),
    (r"nomic-embed|nomic-bert", Prompts("search_query: ", "search_document: ")),
    (r"qwen3?-embedding", Prompts(f"Instruct: {_TASK}\nQuery:")),
    (r"e5.*-instruct", Prompts(f"Instruct: {_TASK}\nQuery: ")),
    (r"\be5-(small|base|large)", Prompts("query: ", "passage: ")),
    (r"bge-(small|base|large)-zh", Prompts("为这个句子生成表示以用于检索相关文章：")),
    (
        r"bge-(small|base|large)-en|mxbai-embed|arctic-embed-(xs|s|m|l)\b(?!-v2)",
        Prompts("Represent this sentence for searching relevant passages: "),
    ),
    (r"arctic-embed-[ml]-v2", Prompts("query: ")),
)
_PATTERNS = tuple((pattern(source), prompts) for source, prompts in _FAMILIES)
_GAPS = pattern(r"[\s_/.]+")


def prompts_for(names: Sequence[str]) -> Prompts:
    """Find the family by any of a model's names, `embeddinggemma-300M-Q8_0.gguf` or `Nomic Embed Text v1.5`."""
    for family, prompts in _PATTERNS:
        if any(family.search(_GAPS.sub("-", name).lower()) for name in names):
            return prompts
    return NO_PROMPTS
