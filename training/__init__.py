"""Programs that make our models from named inputs; nothing of it is in the package."""
