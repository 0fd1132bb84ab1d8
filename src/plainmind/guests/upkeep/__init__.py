"""Keeping the memory true: what could be tidied is proposed, a person accepts it, and the files keep everything."""
