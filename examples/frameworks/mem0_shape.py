"""A program written for mem0, over your notes: python mem0_shape.py "I prefer tea over coffee."."""

import sys

from plainmind.guests.integrations.mem0 import Memory

memory = Memory("~/notes")
known = memory.search(sys.argv[1], filters={"user_id": "anna"}, top_k=3)
print([found["memory"] for found in known["results"]])
memory.add([{"role": "user", "content": sys.argv[1]}], user_id="anna")
memory.close()
