"""Text to vectors: read `protocol.py` first, then `registry.py`."""
