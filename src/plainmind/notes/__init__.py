"""Where text comes from: the workspace, parts of its files, and hints that something changed."""
