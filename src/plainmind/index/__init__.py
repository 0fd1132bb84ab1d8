"""Chunks kept and found again: what to index, how it is stored, and the drivers that hold it.

`sync.py` brings an index up to date. `protocol.py` says what an index promises, `driver.py` what it takes to keep one;
`drivers/memory.py` keeps one in dicts, `drivers/sqlite/` is in use, and guests bring others.
"""
