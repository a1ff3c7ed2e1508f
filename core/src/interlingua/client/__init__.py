"""The client: a conversation in, an answer out, over whichever provider the model's name says.

Never holds knowledge of a wire, and keeps everything that is not input or output in one place for both worlds.
Applications come in, through `interlingua`; the command line too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.client.aio import AsyncClient
    from interlingua.client.aio_stream import AsyncMessageStream
    from interlingua.client.retry import Retry
    from interlingua.client.sync import Client
    from interlingua.client.sync_stream import MessageStream

_LATER = {
    "AsyncClient": "aio",
    "AsyncMessageStream": "aio_stream",
    "Client": "sync",
    "MessageStream": "sync_stream",
    "Retry": "retry",
}

__all__ = ["AsyncClient", "AsyncMessageStream", "Client", "MessageStream", "Retry"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
