"""Which weights a model file holds, what its family of models wants to read, and how it is asked with that."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from plainmind.base.errors import EmbeddingError
from plainmind.base.lazy import pattern
from plainmind.base.model import Vector
from plainmind.base.value import value
from plainmind.embed.protocol import FullEmbedder, check_vectors

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


class PromptedEmbedder(FullEmbedder):
    """Embeds on this machine, with the words that the model's family wants before a question and before a text."""

    sends_text_to = None

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        if _is_blank(text):
            raise EmbeddingError("nothing to embed: the query has no words")
        return self._embed([self._prompts.query + text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; a blank one has no vector."""
        wanted = [self._prompts.document + text for text in texts if not _is_blank(text)]
        made = iter(self._embed(wanted) if wanted else ())
        return [None if _is_blank(text) else next(made) for text in texts]

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = self._vectors(texts)
        return check_vectors(vectors, expected_count=len(texts), expected_dims=self.identity.dims)

    @property
    def _prompts(self) -> Prompts:
        raise NotImplementedError

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors as the model made them, not yet checked."""
        raise NotImplementedError


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
