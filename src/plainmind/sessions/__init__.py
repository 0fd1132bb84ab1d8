"""Conversations of agents, kept as plain files that lose nothing."""
