"""Ollama's native chat API for interlingua."""
