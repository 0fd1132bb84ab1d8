"""The agent's side of a memory: who may see what, tools, recalled text as data, what a session begins with."""
