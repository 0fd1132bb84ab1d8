"""From a question to cited lines; pure, but for the engine that asks the index."""
