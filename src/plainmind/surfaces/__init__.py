"""Translations of the memory for people and programs; nothing is decided here."""
