"""From a question to cited lines: one ranking idea a file, pure but for the engine that asks the index."""
