"""The page and its HTTP interface `/v1`: one process serves both, and MCP, to a browser and to programs."""
