"""The index in LanceDB tables, in a local folder or an object store: one table a generation, one pointer to it.

Read `rows.py` first (what a table holds), then `place.py` (which version of which table answers), `overview.py` and
`view.py` (what is asked), `table.py` (how it changes), and `store.py`, which ties them together for the engine in
`plainmind.index`.
"""
