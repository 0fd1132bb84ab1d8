"""From files to an index: what changed, chunks, and one sync at a time."""
