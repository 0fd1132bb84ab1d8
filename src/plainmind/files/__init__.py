"""Canonical bytes, safely: every byte that a person would miss is written through this package."""
