"""What indexes and searches: an engine that does both itself, and what answers while it does not."""
