"""What a plugin author needs besides `interlingua.types` and `.errors`: hooks, wire values, helpers."""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "catalogue": "ModelInfo Price PriceTier Rates find_model load_catalogue",
    "ids": "split_model_id",
    "json": (
        "EMPTY FrozenDict FrozenList dumps dumps_exact freeze freeze_object freeze_optional loads "
        "loads_fast replace_lone_surrogates thaw"
    ),
    "plugins.batches": "BatchAnswer BatchStatus",
    "plugins.encoding": (
        "Json Piece ProjectedMessages append_member concat_arrays encode_each json_array json_object was_answered"
    ),
    "plugins.hookspecs": "CONTRACT_VERSION PLUGIN_HOOKS PROJECT PROVIDER_HOOKS PluginHooks ProviderHooks hookimpl",
    "plugins.provider": "Distribution Provider Target",
    "plugins.registry": "Activity EntryPoints PROVIDERS ProviderEntry ROWS Registry load_format new_manager",
    "plugins.wire": (
        "Auth BatchLimits BlockLoss Connection ConnectionSettings Credentials Endpoint Loss Outgoing RequestContext "
        "Sign Step Verdict WireChunk WireRequest WireResponse bearer_auth describe_unsent error_class_for_status "
        "error_for_status fit_effort message_loss no_auth option_loss own_replay retry_after wrap_stream"
    ),
    "request.prepare": "estimate_input_tokens read_messages write_request",
    "response.decode": "Assembler",
    "response.framing": "Framer NdjsonFramer SseFramer",
}

if TYPE_CHECKING:
    from interlingua.catalogue import *
    from interlingua.ids import *
    from interlingua.json import *
    from interlingua.plugins.batches import *
    from interlingua.plugins.encoding import *
    from interlingua.plugins.hookspecs import *
    from interlingua.plugins.provider import *
    from interlingua.plugins.registry import *
    from interlingua.plugins.wire import *
    from interlingua.request.prepare import *
    from interlingua.response.decode import *
    from interlingua.response.framing import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
