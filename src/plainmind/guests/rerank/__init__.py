"""A second look: a small model reads the question together with each of the best snippets and says which answer it."""
