"""Conversations of other programs, copied into our own format; their files are only ever read."""
