"""Mistral's models, and the dialect and capabilities of each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities
from interlingua_chat_completions.dialect import Dialect, capabilities_of

_DOCUMENTS = (
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    *("text/plain", "text/markdown", "text/csv"),  # written as text
)
_STATED: dict[str, Any] = {
    "supports_system_messages_in_list": False,  # refused after an answer and after results (decision 018)
    "supports_images": True,
    "supports_image_urls": True,
    "supports_tool_result_images": True,
    "supports_tool_result_documents": True,
    "supports_documents": True,
    "accepted_document_media_types": _DOCUMENTS,
    "tool_id_pattern": r"[A-Za-z0-9]{9}",
    "tool_id_max_length": 9,
}


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def find_listed(name: str) -> ModelInfo | None:
    """Return the catalogue's entry for a name or alias."""
    return find_model(models(), name)


def facts_of(name: str) -> FrozenDict:
    """Return the model's facts; an absent fact is unknown.

    `efforts` are the accepted efforts, if its reasoning is adjustable; `reasoning` is then `effort`, else `always`.
    `user_after_results` is true if a user message directly after tool results is accepted (recorded traffic; the
    documentation says that it is rejected: WIRE.md, Order of messages).
    """
    model = find_listed(name)
    return EMPTY if model is None else model.facts


@cache
def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model; the same name returns the same object."""
    facts = facts_of(model)
    return _dialect(tuple(facts.get("efforts") or ()), lax=bool(facts.get("user_after_results")))


@cache
def _dialect(efforts: tuple[str, ...], *, lax: bool) -> Dialect:
    return Dialect(
        include_usage=False,  # there is no stream_options; usage comes without (WIRE.md, Usage)
        temperature_range=(0.0, 1.5),
        top_k=True,
        seed_field="random_seed",
        effort_shape="field" if efforts else "none",  # other models refuse the field (WIRE.md, Request)
        effort_values=efforts,
        thinking_shape="effort" if efforts else "none",
        content_chunks=True,
        reasoning_scope="model",
        empty_content="",
        after_results=None if lax else "OK.",
        prefill_field="prefix",
        tool_choices=frozenset(("auto", "required", "named")),  # `none`: WIRE.md, Tools
        required_choice="any",
        parallel_tool_calls=True,
        structured="json_schema",
        any_keyword=True,  # the SDK's own strict schemas keep them (WIRE.md, Request)
        file_urls=True,
        document_style="document_url",
        audio_style="string",
        result_parts=True,
        error_codes={"invalid_model": "ModelNotFoundError"},
        error_phrases={"guardrail": "ContentRefusedError"},
        request_id_headers=("mistral-correlation-id", "x-request-id"),
    )


@cache
def capabilities_for(model: str) -> ModelCapabilities:
    """Return the capabilities of a model; the same name returns the same object."""
    return capabilities_of(dialect_of(model), _STATED, find_listed(model))
