"""interlingua: one canonical conversation, every provider's API, each provider a plugin.

The names that applications use; the others are in `interlingua.types`, `.errors`, `.output`, `.codec`, `.plugins`,
`.transport` and `.testing`. A name is imported when it is first used (PEP 562), so importing this costs little.
"""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua._lazy import lazy_names

_MODULES = ("codec", "errors", "output", "plugins", "testing", "transport", "types")
# Module -> the names that are imported from it when first used.
_NAMES = {
    "_http.client": "AsyncClient Client",
    "_http.exchange": "Exchange",
    "_http.output_streams": "AsyncOutputStream OutputStream",
    "_http.retry": "Retry",
    "_http.streams": "AsyncMessageStream MessageStream",
    "_plugins.registry": "Registry",
    "_pricing": "cost_of",
    "_request.rules": "validate_conversation",
    "codec": "dumps_message loads_message",
    "errors": (
        "APIConnectionError APITimeoutError AuthenticationError CallerError CapabilityError "
        "InterlinguaError ProviderError RateLimitError WireError"
    ),
    "output": "Answer Partial",
    "transport": "Timeout",
    "types.blocks": (
        "AudioBlock CacheHint DocumentBlock ImageBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock"
    ),
    "types.events": (
        "BlockEnd BlockStart ErrorEvent MessageComplete StreamEvent TextDelta ThinkingDelta ToolUseEnd "
        "ToolUseInputDelta ToolUseStart UsageUpdate"
    ),
    "types.factories": (
        "assistant audio_block document_block image_block system tool_result tool_results user video_block"
    ),
    "types.messages": "Message MessageStatus Role StopReason Usage",
    "types.options": "ToolChoice",
    "types.tools": "SideEffects ToolDefinition",
}

if TYPE_CHECKING:
    from interlingua._http.client import AsyncClient as AsyncClient
    from interlingua._http.client import Client as Client
    from interlingua._http.exchange import Exchange as Exchange
    from interlingua._http.output_streams import AsyncOutputStream as AsyncOutputStream
    from interlingua._http.output_streams import OutputStream as OutputStream
    from interlingua._http.retry import Retry as Retry
    from interlingua._http.streams import AsyncMessageStream as AsyncMessageStream
    from interlingua._http.streams import MessageStream as MessageStream
    from interlingua._plugins.registry import Registry as Registry
    from interlingua._pricing import cost_of as cost_of
    from interlingua._request.rules import validate_conversation as validate_conversation
    from interlingua.codec import *
    from interlingua.errors import *
    from interlingua.output import *
    from interlingua.transport import Timeout as Timeout
    from interlingua.types.blocks import *
    from interlingua.types.events import *
    from interlingua.types.factories import *
    from interlingua.types.messages import *
    from interlingua.types.options import *
    from interlingua.types.tools import *

    __version__: str
else:
    _get, __dir__, __all__ = lazy_names(__name__, _NAMES)
    __all__ += ["__version__"]

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value: Any = import_module("importlib.metadata").version("interlingua")
        elif name in _MODULES:
            value = import_module(f"interlingua.{name}")
        else:
            return _get(name)
        globals()[name] = value
        return value
