"""Text to vectors: read `protocol.py` first."""
