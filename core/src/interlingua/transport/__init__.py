"""Transport: bytes out, bytes in, over HTTP; the only room that knows an HTTP library, and loads it lazily.

Never knows what the bytes mean, never retries and never writes a secret into a log or an error.
The client comes in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua.transport.outgoing import Outgoing, no_key, outgoing
from interlingua.transport.timeout import Limits, Timeout

if TYPE_CHECKING:
    from interlingua.transport.aio import AsyncAnswer, AsyncTransport
    from interlingua.transport.sync import Answer, SyncTransport

_LATER = {"Answer": "sync", "AsyncAnswer": "aio", "AsyncTransport": "aio", "SyncTransport": "sync"}

__all__ = [
    "Answer",
    "AsyncAnswer",
    "AsyncTransport",
    "Limits",
    "Outgoing",
    "SyncTransport",
    "Timeout",
    "no_key",
    "outgoing",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
