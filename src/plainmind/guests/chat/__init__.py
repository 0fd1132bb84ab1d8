"""A reference agent: a conversation with a model, flush before compaction, the models it can speak to."""
