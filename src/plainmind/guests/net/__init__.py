"""TODO: one line about this package."""
