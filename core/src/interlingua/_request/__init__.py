"""From what a caller gave to the bytes that are sent."""
