"""Recorders: they make the cassettes from a real server, so that tests and the demo can replay them.

Nothing is sent when a test imports from here; only `python -m tests.record` sends. Besides it, the tests of recorded
traffic come in, for they make the same requests.
"""
