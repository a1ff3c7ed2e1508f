"""Names for plugin authors: hooks, wire values, helpers. Values are in `interlingua.types`, errors in `.errors`."""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua._lazy import lazy_names as lazy_names  # noqa: PLC0414  public here, too

# Module -> the names that are imported from it when first used.
_NAMES = {
    "_catalogue": "ModelInfo find_model load_catalogue",
    "_http.io": "run_without_waiting",
    "_json": "EMPTY FrozenDict dumps dumps_trimmed freeze freeze_object loads loads_lossy repair_surrogates thaw",
    "_lazy": "lazy_names",
    "_plugins.batches": "BatchAnswer BatchStatus",
    "_plugins.connection": (
        "Auth BatchLimits Connection ConnectionSettings Credentials HttpRequest bearer_auth no_auth"
    ),
    "_plugins.contract": "CONTRACT_VERSION OLDEST_CONTRACT",
    "_plugins.encoding": "Json Piece encode_each json_array json_array_concat json_object json_object_with model_saw",
    "_plugins.errors": "error_class_for_status error_for_status retry_after",
    "_plugins.hookspecs": "hookimpl",
    "_plugins.losses": "BlockLoss Loss Verdict message_loss nearest_effort option_loss placeholder_text",
    "_plugins.provider": "Provider",
    "_plugins.registry": "InstrumentedWork Registry format_provider",
    "_plugins.wire": "RequestContext WireChunk WireRequest WireResponse map_stream replay_state",
    "_request.prepare": "estimate_tokens read_messages write_request",
    "_response.decode": "MessageAssembler",
    "_response.framing": "Framer SseFramer",
}

if TYPE_CHECKING:
    from interlingua._catalogue import *
    from interlingua._http.io import run_without_waiting as run_without_waiting  # noqa: PLC0414  this alone
    from interlingua._json import *
    from interlingua._plugins.batches import *
    from interlingua._plugins.connection import *
    from interlingua._plugins.contract import *
    from interlingua._plugins.encoding import *
    from interlingua._plugins.errors import *
    from interlingua._plugins.hookspecs import *
    from interlingua._plugins.losses import *
    from interlingua._plugins.provider import *
    from interlingua._plugins.registry import *
    from interlingua._plugins.wire import *
    from interlingua._request.prepare import *
    from interlingua._response.decode import *
    from interlingua._response.framing import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
