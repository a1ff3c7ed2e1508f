"""A real model behind all three wires on this machine, for recording cassettes and for live tests.

No provider, adapter or recorded traffic lives here.
Recorders and live tests come in, through `server.LocalServer`.
"""
