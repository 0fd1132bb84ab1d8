"""The index in SQLite: one file a generation, vectors and keywords in the same transaction as their chunk.

Read `schema.sql` first, then `segments.py` and `postings.py` (how what is searched is packed), `reader.py` (what is
asked) with `store/arithmetic/` (how it is computed), `writer.py`, `bulk.py`, `moving.py` and `erasing.py` (how it
changes), `folder.py` and `generation.py` (which file is the index now, and that file, open), and `store.py`, which
ties them together.
"""
