"""The command line: each command parses, calls the memory and prints."""
