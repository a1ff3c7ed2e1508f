"""The clients and the transport."""
