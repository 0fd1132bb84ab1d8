"""Embedding models that run on this machine: GGUF through llama.cpp, ONNX, and how they are fetched."""
