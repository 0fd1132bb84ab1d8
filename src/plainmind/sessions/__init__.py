"""Conversations of agents, kept as plain files that lose nothing: `store.py` is the way in."""
