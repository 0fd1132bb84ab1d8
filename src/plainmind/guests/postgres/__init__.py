"""The index in PostgreSQL with pgvector: one schema an installation, six tables a generation, for many hosts at once.

Read `migrations/0001-generations.sql` first, then `segments.py` (how what is searched by word is packed), `reader.py`
(what is asked), `writer.py`, `bulk.py` and `building.py` (how it changes), `connections.py` and `session.py` (how the
server is reached, and what every transaction says about itself), `replica.py` (who may be asked in its place), and
`store.py`, which ties them together.
"""
