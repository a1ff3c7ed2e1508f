"""How this service speaks Chat Completions, as data for the shared format (sheet mistral).

Never translates: the format library does, by the dialect it is given.
The plugin object comes in.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from interlingua.types.options import AdapterCapabilities
from interlingua_chat_completions.capabilities import capabilities_of
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.format import ChatFormat
from interlingua_mistral.catalogue import facts_of, model_of

FORMAT = ChatFormat("mistral")

_DOCUMENTS = (
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    *("text/plain", "text/markdown", "text/csv"),  # written as text
)
_STATED: dict[str, Any] = {
    "supports_system_messages_in_list": False,  # refused behind an answer and behind results (decision 150)
    "supports_images": True,
    "supports_image_urls": True,
    "supports_tool_result_images": True,
    "supports_documents": True,
    "accepted_document_media_types": _DOCUMENTS,
    "tool_id_pattern": r"[A-Za-z0-9]{9}",
    "tool_id_max_length": 9,
}


@cache
def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model; the same object for the same name."""
    facts = facts_of(model)
    return _dialect(str(facts.get("reasoning")), lax=bool(facts.get("user_after_results")))


@cache
def _dialect(reasoning: str, *, lax: bool) -> Dialect:
    return Dialect(
        include_usage=False,  # there is no stream_options; usage comes by itself (§2, §6)
        temperature_range=(0.0, 1.5),
        top_k=True,
        seed_field="random_seed",
        effort_shape="none" if reasoning in ("none", "always") else "field",
        thinking_shape="none" if reasoning in ("none", "always") else "effort",
        content_chunks=True,
        reasoning_scope="model",
        empty_content="",
        after_results=None if lax else "OK.",
        after_answer="Continue.",
        prefill_field="prefix",
        tool_choices=frozenset(("auto", "required", "named")),  # with `none` some models answer garbled calls (§2)
        required_choice="any",
        parallel_tool_calls=True,
        structured="json_schema",
        file_urls=True,
        document_style="document_url",
        audio_style="string",
        result_parts=True,
        error_codes={"invalid_model": "ModelNotFoundError"},
        error_phrases={"guardrail": "ContentRefusedError"},
        request_id_headers=("mistral-correlation-id", "x-request-id"),
    )


@cache
def capabilities_for(model: str) -> AdapterCapabilities:
    """Return what this service can carry with a model; the same object for the same name."""
    return capabilities_of(dialect_of(model), _STATED, model_of(model))
