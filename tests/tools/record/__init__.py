"""Recorders: they make the cassettes from a real server, so that tests and the demo can replay them.

Only `python -m tests.tools.record` sends anything; importing from here does not.
"""
