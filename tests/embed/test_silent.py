from __future__ import annotations

import pytest

from plainmind.base.errors import EmbeddingError
from plainmind.embed.protocol import NoEmbedder


def test_no_text_has_a_vector_and_the_identity_says_so() -> None:
    embedder = NoEmbedder()

    assert embedder.embed_documents(["one", "two"]) == [None, None]
    assert embedder.identity.dims == 0
    assert embedder.sends_text_to is None
    embedder.close()


def test_a_question_is_refused_with_the_way_out() -> None:
    with pytest.raises(EmbeddingError, match="makes no vectors") as caught:
        NoEmbedder().embed_query("anything")

    assert "auto" in str(caught.value.hint)
