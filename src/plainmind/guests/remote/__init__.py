"""Embedding providers on other machines: read `wire.py` first, then `embedder.py`; imported only when one is chosen."""
