"""Secrets in a text, found and replaced in a copy: `engine.py` is the way in, every other file knows one kind."""
