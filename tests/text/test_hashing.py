import hashlib

from commonplace.text.hashing import chunk_id, sha256_text


def test_the_hash_is_that_of_the_utf8_bytes():
    assert sha256_text("naïve 東京") == hashlib.sha256("naïve 東京".encode()).hexdigest()


def test_a_lone_surrogate_has_a_hash_of_its_own():
    assert len({sha256_text("\udc80"), sha256_text("\udc81"), sha256_text("?")}) == 3


def test_a_chunk_is_named_by_place_content_and_model():
    expected = hashlib.sha256(b"memory:memory/a.md:3:7:abc:static").hexdigest()
    assert chunk_id("memory", "memory/a.md", 3, 7, "abc", "static") == expected
