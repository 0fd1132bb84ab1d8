"""Settings: what can be set, where each value comes from, and how a person changes one."""
