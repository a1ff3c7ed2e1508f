"""Published Hypothesis strategies: canonical values as they come up in the field, the ugly ones included.

Never knows a wire: a provider is only the origin of a message. Tests of adapters, stores and wrappers come in.
Everything drawn is valid: what is left of a history after core's own repairs can be sent.
"""

from __future__ import annotations

from interlingua_contract.strategies.blocks import EXTREMES, blocks, json_objects, media, texts
from interlingua_contract.strategies.conversations import MARK, conversations, messages, request_points
from interlingua_contract.strategies.tools import tools

__all__ = [
    "EXTREMES",
    "MARK",
    "blocks",
    "conversations",
    "json_objects",
    "media",
    "messages",
    "request_points",
    "texts",
    "tools",
]



