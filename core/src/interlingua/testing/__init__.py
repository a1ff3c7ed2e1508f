"""Tests of applications and plugins without network or keys.

`interlingua.testing.fixtures` is the pytest plugin that pytest loads by itself.
"""

from __future__ import annotations

from interlingua.testing.cassette import Cassette
from interlingua.testing.memory import AsyncMemoryTransport, MemoryReply, MemoryTransport, no_network
from interlingua.testing.scripted import ScriptedModel, ScriptedReply, SentRequest, call

__all__ = [
    "AsyncMemoryTransport", "Cassette", "MemoryReply", "MemoryTransport", "ScriptedModel", "ScriptedReply",
    "SentRequest", "call", "no_network",
]  # fmt: skip
