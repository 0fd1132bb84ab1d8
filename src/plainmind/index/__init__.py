"""Chunks kept and found again: what to index, how it is stored, and the drivers that hold it."""
