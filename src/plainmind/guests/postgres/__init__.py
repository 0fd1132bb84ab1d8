"""The index in PostgreSQL with pgvector: one schema an installation, six tables a generation, for many hosts at once.

Read `migrations/0001-generations.sql` first, then `view.py` (what is asked), `change.py` (how it changes, and how what
is searched by word is packed), `connections.py` (how the server is reached, and what every transaction says about
itself), and `store.py`, which ties them together for the engine in `plainmind.index`, and knows which replica may be
asked in the server's place.
"""
