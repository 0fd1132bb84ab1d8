"""Where an index is kept: in memory, to understand it, and in SQLite."""
