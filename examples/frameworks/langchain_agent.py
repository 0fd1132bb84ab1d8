"""An agent of LangChain that remembers: python langchain_agent.py "Where does the billing gateway run?"."""

import sys

from langchain.agents import create_agent

from plainmind.guests.integrations.langchain import PlainmindMiddleware

memory = PlainmindMiddleware("~/notes")
agent = create_agent("openai:gpt-5", middleware=[memory])

answer = agent.invoke({"messages": [("user", sys.argv[1])]})
print(answer["messages"][-1].content)
memory.close()
