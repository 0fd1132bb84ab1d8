"""A crew of CrewAI whose memory is yours: python crewai_crew.py "Where does the billing gateway run?"."""

import sys

from crewai import LLM, Agent, Crew, Memory, Task

from plainmind.guests.integrations.crewai import PlainmindStorage

storage = PlainmindStorage("~/notes")
llm = LLM(model="gpt-4.1")
memory = Memory(storage=storage, embedder=storage.embedder, llm=llm)

assistant = Agent(role="Assistant", goal="Answer questions", backstory="You remember well.", llm=llm)
task = Task(description=sys.argv[1], expected_output="A short answer", agent=assistant)
print(Crew(agents=[assistant], tasks=[task], memory=memory).kickoff())
storage.close()
