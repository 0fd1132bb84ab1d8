"""The memory for any program that speaks MCP: over standard input and output, and over HTTP."""
