"""A real model behind all three wires on this machine, for recording cassettes and for live tests."""
