"""The weights of Plainmind's reranker: files, and no code."""
