"""Connects this memory to the programs in which agents live: their settings, their hooks, their plugins."""
