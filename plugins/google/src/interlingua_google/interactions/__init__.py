"""Google's Interactions API: a conversation as steps (WIRE.md, Interactions)."""
