"""Secrets in a text, found and replaced in a copy: `engine.py` is the way in, the others know one family each."""
