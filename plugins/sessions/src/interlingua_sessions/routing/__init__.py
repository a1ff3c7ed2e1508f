"""Routing: chooses the model that answers a turn by a chain of policies, and records the reason."""
