import hashlib
import importlib.util
import sys
import types

import pytest

from plainmind.base import model
from plainmind.base.model import sha256_bytes, sha256_text


def test_the_hash_is_that_of_the_utf8_bytes():
    assert sha256_text("naïve 東京") == hashlib.sha256("naïve 東京".encode()).hexdigest()


def test_a_lone_surrogate_has_a_hash_of_its_own():
    assert len({sha256_text("\udc80"), sha256_text("\udc81"), sha256_text("?")}) == 3


def test_large_and_small_data_are_hashed_alike():
    for size in (0, 100, 1 << 20, (1 << 20) + 1):
        data = b"x" * size
        assert sha256_bytes(data) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("known", [(), ("_sha2",), ("_sha256",)])
def test_the_hash_is_the_same_whatever_this_python_was_built_with(monkeypatch, known):
    own = types.ModuleType("own")
    own.sha256 = hashlib.sha256
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, own if name in known else None)
    spec = importlib.util.spec_from_file_location("model_anew", model.__file__)
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)

    assert anew.sha256_text("naïve 東京") == sha256_text("naïve 東京")
