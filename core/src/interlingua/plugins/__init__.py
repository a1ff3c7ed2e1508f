"""What a plugin author needs besides `interlingua.types` and `.errors`: hooks, wire values, helpers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.catalogue import LazyPrices, ModelInfo, Price, PriceTier, Rates, find_model, load_catalogue, refuse
    from interlingua.ids import TOOL_PREFIX, UlidMinter, split_model_id, ulid_value
    from interlingua.json import (
        EMPTY,
        FrozenDict,
        FrozenList,
        dumps,
        freeze,
        freeze_object,
        freeze_objects,
        freeze_optional,
        line_fault,
        loads,
        loads_fast,
        replace_lone_surrogates,
        thaw,
    )
    from interlingua.plugins.encoding import (
        GrowingArray,
        Json,
        Piece,
        ProjectedMessages,
        append_member,
        concat_arrays,
        encode_each,
        gather,
        inside,
        json_array,
        json_object,
        keep_grown,
        remembered,
        take_grown,
        was_answered,
    )
    from interlingua.plugins.hookspecs import (
        CONTRACT_VERSION,
        PLUGIN_HOOKS,
        PROJECT,
        PROVIDER_HOOKS,
        PluginHooks,
        ProviderHooks,
        hookimpl,
        hookspec,
    )
    from interlingua.plugins.provider import Distribution, Provider, Target
    from interlingua.plugins.registry import (
        FORMATS,
        PLUGINS,
        PROVIDERS,
        REQUIRED,
        ROWS,
        EntryPoints,
        InstalledEntryPoints,
        ProviderEntry,
        Registry,
        chained_callers,
        check_general,
        distribution_of,
        new_manager,
        provider_manager,
        register,
    )
    from interlingua.plugins.wire import (
        Auth,
        BlockLoss,
        Connection,
        ConnectionSettings,
        Loss,
        RequestContext,
        Step,
        Verdict,
        WireChunk,
        WireRequest,
        WireResponse,
        bearer_auth,
        error_class_for_status,
        error_for_status,
        message_loss,
        no_auth,
        option_loss,
        retry_after,
        wrap_stream,
    )
    from interlingua.request.prepare import estimate_input_tokens, write_request
    from interlingua.response.assemble import Assembler
    from interlingua.response.framing import Framer, NdjsonFramer, SseFramer

# Where each name is defined: loaded when first used (PEP 562).
_MODULES = {
    "catalogue": "LazyPrices ModelInfo Price PriceTier Rates find_model load_catalogue refuse",
    "ids": "TOOL_PREFIX UlidMinter split_model_id ulid_value",
    "json": (
        "EMPTY FrozenDict FrozenList dumps freeze freeze_object freeze_objects freeze_optional line_fault loads "
        "loads_fast replace_lone_surrogates thaw"
    ),
    "plugins.encoding": (
        "GrowingArray Json Piece ProjectedMessages append_member concat_arrays encode_each gather inside "
        "json_array json_object keep_grown remembered take_grown was_answered"
    ),
    "plugins.hookspecs": (
        "CONTRACT_VERSION PLUGIN_HOOKS PROJECT PROVIDER_HOOKS PluginHooks ProviderHooks hookimpl hookspec"
    ),
    "plugins.provider": "Distribution Provider Target",
    "plugins.registry": (
        "EntryPoints FORMATS InstalledEntryPoints PLUGINS PROVIDERS ProviderEntry REQUIRED ROWS Registry "
        "chained_callers check_general distribution_of new_manager provider_manager register"
    ),
    "plugins.wire": (
        "Auth BlockLoss Connection ConnectionSettings Loss RequestContext Step Verdict WireChunk WireRequest "
        "WireResponse bearer_auth error_class_for_status error_for_status message_loss no_auth option_loss "
        "retry_after wrap_stream"
    ),
    "request.prepare": "estimate_input_tokens write_request",
    "response.assemble": "Assembler",
    "response.framing": "Framer NdjsonFramer SseFramer",
}
_MODULE_OF = {_name: _module for _module, _names in _MODULES.items() for _name in _names.split()}

__all__ = [
    "CONTRACT_VERSION",
    "EMPTY",
    "FORMATS",
    "PLUGINS",
    "PLUGIN_HOOKS",
    "PROJECT",
    "PROVIDERS",
    "PROVIDER_HOOKS",
    "REQUIRED",
    "ROWS",
    "TOOL_PREFIX",
    "Assembler",
    "Auth",
    "BlockLoss",
    "Connection",
    "ConnectionSettings",
    "Distribution",
    "EntryPoints",
    "Framer",
    "FrozenDict",
    "FrozenList",
    "GrowingArray",
    "InstalledEntryPoints",
    "Json",
    "LazyPrices",
    "Loss",
    "ModelInfo",
    "NdjsonFramer",
    "Piece",
    "PluginHooks",
    "Price",
    "PriceTier",
    "ProjectedMessages",
    "Provider",
    "ProviderEntry",
    "ProviderHooks",
    "Rates",
    "Registry",
    "RequestContext",
    "SseFramer",
    "Step",
    "Target",
    "UlidMinter",
    "Verdict",
    "WireChunk",
    "WireRequest",
    "WireResponse",
    "append_member",
    "bearer_auth",
    "chained_callers",
    "check_general",
    "concat_arrays",
    "distribution_of",
    "dumps",
    "encode_each",
    "error_class_for_status",
    "error_for_status",
    "estimate_input_tokens",
    "find_model",
    "freeze",
    "freeze_object",
    "freeze_objects",
    "freeze_optional",
    "gather",
    "hookimpl",
    "hookspec",
    "inside",
    "json_array",
    "json_object",
    "keep_grown",
    "line_fault",
    "load_catalogue",
    "loads",
    "loads_fast",
    "message_loss",
    "new_manager",
    "no_auth",
    "option_loss",
    "provider_manager",
    "refuse",
    "register",
    "remembered",
    "replace_lone_surrogates",
    "retry_after",
    "split_model_id",
    "take_grown",
    "thaw",
    "ulid_value",
    "was_answered",
    "wrap_stream",
    "write_request",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"interlingua.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
