"""The entry memory: single sentences with a category and an importance, stored, recalled and forgotten one by one.

Read `model.py`, then `entry_file.py` (the truth: one JSON object a line), `entry_index.py` (what finds them again, in
LanceDB unless another store is named) and `memory.py`, which is the way in.
"""
