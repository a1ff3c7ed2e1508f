"""Names for plugin authors: hooks, wire values, helpers. Values are in `interlingua.types`, errors in `.errors`."""
# ruff: noqa: I001, PLC0414  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua._lazy import deprecated as deprecated, lazy_names as lazy_names

_NAMES = {
    "_catalogue": "ModelInfo find_model load_catalogue",
    "_display": "LiveOutput messages_markdown",
    "_http.io": "run_without_waiting",
    "_ids": "quote_model",
    "_json": "EMPTY FrozenDict dumps dumps_trimmed freeze_object loads loads_lossy repair_surrogates thaw",
    "_lazy": "deprecated lazy_names",
    "_plugins.connection": (
        "BatchAnswer BatchLimits BatchStatus Connection ConnectionSettings HttpRequest KeyExchange bearer_auth no_auth"
    ),
    "_plugins.contract": "CONTRACT_VERSION",
    "_plugins.encoding": (
        "Json encode_each form_body json_array json_array_concat json_object json_object_with model_saw multipart_body"
    ),
    "_plugins.errors": "error_class_for_status error_for_status retry_after",
    "_plugins.hookspecs": "hookimpl",
    "_plugins.losses": (
        "BlockLoss budget_as_effort demand_call message_loss nearest_effort note_for option_loss placeholder_text"
    ),
    "_plugins.presets": "Preset PresetTable",
    "_plugins.provider": "Provider",
    "_plugins.registry": "InstrumentedWork Registry format_provider",
    "_plugins.wire": "FollowUp RequestContext WireChunk WireRequest WireResponse replay_state",
    "_request.prefix": "estimate_tokens",
    "_request.prepare": "build_request",
    "_response.decode": "MessageAssembler",
    "types.messages": "Loss",
    "types.options": "explain_arguments unknown_argument",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua._catalogue import (
        ModelInfo as ModelInfo, find_model as find_model, load_catalogue as load_catalogue
    )
    from interlingua._display import LiveOutput as LiveOutput, messages_markdown as messages_markdown
    from interlingua._http.io import run_without_waiting as run_without_waiting
    from interlingua._ids import quote_model as quote_model
    from interlingua._json import (
        EMPTY as EMPTY, FrozenDict as FrozenDict, dumps as dumps, dumps_trimmed as dumps_trimmed,
        freeze_object as freeze_object, loads as loads, loads_lossy as loads_lossy,
        repair_surrogates as repair_surrogates, thaw as thaw
    )
    from interlingua._plugins.connection import (
        BatchAnswer as BatchAnswer, BatchLimits as BatchLimits, BatchStatus as BatchStatus, Connection as Connection,
        ConnectionSettings as ConnectionSettings, HttpRequest as HttpRequest, KeyExchange as KeyExchange,
        bearer_auth as bearer_auth, no_auth as no_auth
    )
    from interlingua._plugins.contract import CONTRACT_VERSION as CONTRACT_VERSION
    from interlingua._plugins.encoding import (
        Json as Json, encode_each as encode_each, form_body as form_body, json_array as json_array,
        json_array_concat as json_array_concat, json_object as json_object, json_object_with as json_object_with,
        model_saw as model_saw, multipart_body as multipart_body
    )
    from interlingua._plugins.errors import (
        error_class_for_status as error_class_for_status, error_for_status as error_for_status,
        retry_after as retry_after
    )
    from interlingua._plugins.hookspecs import hookimpl as hookimpl
    from interlingua._plugins.losses import (
        BlockLoss as BlockLoss, budget_as_effort as budget_as_effort, demand_call as demand_call,
        message_loss as message_loss, nearest_effort as nearest_effort, note_for as note_for,
        option_loss as option_loss, placeholder_text as placeholder_text
    )
    from interlingua._plugins.presets import Preset as Preset, PresetTable as PresetTable
    from interlingua._plugins.provider import Provider as Provider
    from interlingua._plugins.registry import (
        InstrumentedWork as InstrumentedWork, Registry as Registry, format_provider as format_provider
    )
    from interlingua._plugins.wire import (
        FollowUp as FollowUp, RequestContext as RequestContext, WireChunk as WireChunk, WireRequest as WireRequest,
        WireResponse as WireResponse, replay_state as replay_state
    )
    from interlingua._request.prefix import estimate_tokens as estimate_tokens
    from interlingua._request.prepare import build_request as build_request
    from interlingua._response.decode import MessageAssembler as MessageAssembler
    from interlingua.types.messages import Loss as Loss
    from interlingua.types.options import explain_arguments as explain_arguments, unknown_argument as unknown_argument
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
