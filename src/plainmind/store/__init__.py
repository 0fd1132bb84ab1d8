"""Where the index is kept; read `protocol.py` first, then `memory.py`."""
