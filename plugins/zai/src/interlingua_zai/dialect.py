"""Z.ai's models, and the dialect and capabilities of each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities
from interlingua_chat_completions.dialect import Dialect, capabilities_of

# Business codes of failed answers (WIRE.md, Errors). The code decides, not the status: a 429 may be an empty account.
_CODES: dict[str, tuple[int, ...]] = {
    "AuthenticationError": (1000, 1001, 1002, 1003, 1004),
    "PermissionDeniedError": (
        1110,
        1111,
        1112,
        1121,
        1220,
        1311,
    ),  # account inactive or locked; model not in plan
    "QuotaExceededError": (1113, 1304, 1308, 1309, 1310, 1313),  # arrears, quotas, plan expired, fair use
    "BadRequestError": (1210, 1212, 1213, 1214, 1215, 1221, 1222, 1231),
    "ModelNotFoundError": (1211,),
    "ServerError": (1120, 1230, 1234),  # temporary, so worth another try
    "ContextWindowExceededError": (1261,),
    "ContentRefusedError": (1300, 1301),
    "RateLimitError": (1302, 1303, 1305),
    "OverloadedError": (1312,),
}
BUSINESS_CODES: dict[str, str] = {str(code): name for name, codes in _CODES.items() for code in codes}
BUSINESS_CODES["status 434"] = "PermissionDeniedError"  # without a code

# Text documents go as text; there is no other file and no audio (WIRE.md, Request).
_STATED: dict[str, Any] = {
    "blank_text": "beside_calls",  # recorded
    "supports_documents": True,
    "accepted_document_media_types": ["text/plain", "text/markdown", "text/csv"],
    "accepted_audio_media_types": [],
}


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def find_listed(name: str) -> ModelInfo | None:
    """Return the catalogue's entry for a name; names are not case-sensitive."""
    return find_model(models(), name.lower())


def facts_of(name: str) -> FrozenDict:
    """Return the model's facts; an absent fact is unknown.

    `efforts`: accepted values of `reasoning_effort`; `thinking`: `always` if it cannot be switched off; `preserved`:
    the model reads the reasoning of earlier turns if the request does not clear it.
    """
    model = find_listed(name)
    return EMPTY if model is None else model.facts


@cache
def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model; the same name returns the same object."""
    facts = facts_of(model)
    return Dialect(
        include_usage=False,  # usage comes without it (WIRE.md, Streams)
        needs_user=True,
        user_field="user_id",
        effort_shape="field" if facts.get("efforts") else "none",
        effort_values=tuple(facts.get("efforts") or ()),
        thinking_shape="none" if facts.get("thinking") in ("always", "never") else "type",
        thinking_members={"clear_thinking": False} if facts.get("preserved") else {},
        reasoning_fields=("reasoning_content",),
        reasoning_echo="reasoning_content",
        tool_choices=frozenset(("auto",)),
        structured="json_object",
        image_data_urls=False,
        file_parts=False,
        error_codes=BUSINESS_CODES,
        request_id_headers=("x-log-id", "x-request-id"),
        citation_fields=("web_search",),
    )


@cache
def capabilities_for(name: str) -> ModelCapabilities:
    """Return the capabilities of a model: images only if the catalogue lists them, and no forced tool."""
    return capabilities_of(dialect_of(name), _STATED, find_listed(name))
