"""The redaction corpus: secrets of many kinds where people and tools leave them, and ordinary text; see README.md."""
