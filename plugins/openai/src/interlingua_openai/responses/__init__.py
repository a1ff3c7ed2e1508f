"""The Responses wire format, both directions and its stream."""
