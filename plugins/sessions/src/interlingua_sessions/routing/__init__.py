"""Routing: which model answers a turn, by the policy chain, and why, on record."""
