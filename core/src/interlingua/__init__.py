"""interlingua: one canonical conversation, every provider's API, each provider a plugin.

The names that applications use; the others are in `interlingua.types`, `.errors`, `.output`, `.codec`, `.plugins`,
`.transport`, `.fallback`, `.limits` and `.testing`. A name is imported when it is first used (PEP 562), so importing
this costs little.
"""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua._lazy import lazy_names

_MODULES = ("codec", "errors", "fallback", "limits", "output", "plugins", "testing", "transport", "types")
_NAMES = {
    "_http.client": "AsyncClient Client",
    "_http.exchange": "Exchange",
    "_http.retry": "Retry",
    "_http.streams": "AsyncMessageStream AsyncOutputStream MessageStream OutputStream",
    "_plugins.registry": "Registry",
    "_pricing": "cost_of",
    "_request.rules": "validate_conversation",
    "codec": "dumps_message loads_message",
    "errors": (
        "APIConnectionError APITimeoutError AuthenticationError CallerError CapabilityError InterlinguaError "
        "ProviderError RateLimitError WireError"
    ),
    "output": "Answer Partial",
    "transport": "Timeout",
    "types": (
        "AudioBlock BlockEnd BlockStart CacheHint DocumentBlock ErrorEvent ImageBlock Message MessageComplete "
        "MessageStatus Role SideEffects StopReason StreamEvent TextBlock TextDelta ThinkingBlock "
        "ThinkingDelta ToolChoice ToolDefinition ToolResultBlock ToolUseBlock ToolUseEnd ToolUseInputDelta "
        "ToolUseStart Usage UsageUpdate VideoBlock assistant audio_block document_block image_block system "
        "tool_result tool_results user video_block"
    ),
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua._http.client import AsyncClient as AsyncClient, Client as Client
    from interlingua._http.exchange import Exchange as Exchange
    from interlingua._http.retry import Retry as Retry
    from interlingua._http.streams import AsyncMessageStream as AsyncMessageStream, MessageStream as MessageStream
    from interlingua._http.streams import AsyncOutputStream as AsyncOutputStream, OutputStream as OutputStream
    from interlingua._plugins.registry import Registry as Registry
    from interlingua._pricing import cost_of as cost_of
    from interlingua._request.rules import validate_conversation as validate_conversation
    from interlingua.codec import dumps_message as dumps_message, loads_message as loads_message
    from interlingua.errors import (
        APIConnectionError as APIConnectionError, APITimeoutError as APITimeoutError,
        AuthenticationError as AuthenticationError, CallerError as CallerError, CapabilityError as CapabilityError,
        InterlinguaError as InterlinguaError, ProviderError as ProviderError, RateLimitError as RateLimitError,
        WireError as WireError
    )
    from interlingua.output import Answer as Answer, Partial as Partial
    from interlingua.transport import Timeout as Timeout
    from interlingua.types import (
        AudioBlock as AudioBlock, BlockEnd as BlockEnd, BlockStart as BlockStart, CacheHint as CacheHint,
        DocumentBlock as DocumentBlock, ErrorEvent as ErrorEvent, ImageBlock as ImageBlock, Message as Message,
        MessageComplete as MessageComplete, MessageStatus as MessageStatus, Role as Role, SideEffects as SideEffects,
        StopReason as StopReason, StreamEvent as StreamEvent, TextBlock as TextBlock, TextDelta as TextDelta,
        ThinkingBlock as ThinkingBlock, ThinkingDelta as ThinkingDelta, ToolChoice as ToolChoice,
        ToolDefinition as ToolDefinition, ToolResultBlock as ToolResultBlock, ToolUseBlock as ToolUseBlock,
        ToolUseEnd as ToolUseEnd, ToolUseInputDelta as ToolUseInputDelta, ToolUseStart as ToolUseStart, Usage as Usage,
        UsageUpdate as UsageUpdate, VideoBlock as VideoBlock, assistant as assistant, audio_block as audio_block,
        document_block as document_block, image_block as image_block, system as system, tool_result as tool_result,
        tool_results as tool_results, user as user, video_block as video_block
    )
    # fmt: on

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
