"""This memory in the form that other libraries ask for: Claude's memory tool, sessions of the OpenAI Agents SDK."""
