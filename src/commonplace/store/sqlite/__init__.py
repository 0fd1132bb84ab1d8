"""The index in SQLite: one file a generation, vectors and keywords in the same transaction as their chunk.

Read `schema.sql` first, then `folder.py` (which file is the index now), `generation.py` (one of them, open),
`reader.py` and `writer.py` (what is done with it), and `store.py`, which ties them together.
"""
