"""`Dialect`: differences between services of this format as data, and the capabilities that result from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, freeze_object
from interlingua.types import ModelCapabilities, ReplayScope

API = "chat"
ENDPOINT = r"/chat/completions$"
ToolChoiceKind = Literal["auto", "none", "required", "named"]
ALL_CHOICES: frozenset[ToolChoiceKind] = frozenset(("auto", "none", "required", "named"))
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
AUDIO = ("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3")
DOCUMENTS = ("application/pdf", "text/plain", "text/markdown", "text/csv")
_JSON_MODE = {"response_format": {"type": "json_object"}}
CAPABILITY_FIELDS = frozenset(field.name for field in attrs.fields(ModelCapabilities))


@attrs.frozen(kw_only=True, eq=False)
class Dialect:
    """The deviations of one service from the format. Compared by identity: make one per profile and keep it.

    Attributes:
        system_role: role of system messages, `system` or `developer`.
        single_system: the service takes one system message only; leading ones are joined.
        max_tokens_field: `max_completion_tokens`, or `max_tokens` for older services.
        least_tokens: the smallest accepted limit on the answer's tokens.
        include_usage: `stream_options.include_usage` is accepted and needed for usage in streams.
        sampling: temperature, top_p and penalties are accepted.
        temperature_range: lowest and highest accepted value; values outside are moved to them.
        top_k: `top_k` is accepted.
        seed_field: name of the seed's field; None if there is no field.
        stop: stop sequences are accepted.
        stop_limit: highest number of stop sequences in one request.
        user_field: field for the end user's id; None if there is no field.
        user_length: longest accepted id in characters; a longer id is left out (cut, it might be another user's).
        effort_shape: field `reasoning_effort`, object `reasoning`, or none.
        effort_values: accepted efforts; empty means all. Another becomes the nearest.
        thinking_shape: how thinking is switched: `thinking: {type}`, `enable_thinking` with `thinking_budget` (flag),
            the effort `none`, the object `reasoning`, or not.
        thinks_by_default: a model with the shape `type` thinks unless it is switched off.
        thinking_members: further members of the object `thinking`, sent unless thinking is switched off.
        reasoning_fields: message and delta fields that hold reasoning text, in order of preference.
        reasoning_echo: field in which reasoning is sent back to the service; None if it accepts no reasoning.
        reasoning_scope: the models that reasoning is sent back to: the same one, or any of the same provider.
        reasoning_missing: value of that field in an assistant turn with calls but no reasoning; None leaves it out.
        reasoning_details: the array `reasoning_details` is sent back verbatim.
        content_chunks: an assistant's content may be a list of chunks; reasoning is sent back as a `thinking` chunk
            before the text, and the service's own parts unchanged.
        refusal_parts: a refusal is sent back as a `refusal` part, else as text.
        empty_content: content of a turn that only calls tools.
        after_results: text of an assistant turn inserted between tool results and a user message, if the service
            rejects one directly after the other; None inserts no turn.
        prefill_field: field that is set to true on a final assistant message that the service should continue, if
            the provider option of this name is true. Services reject the field on any other message, and a final
            assistant message without it. None: a final assistant message is accepted.
        needs_user: a request without a user message is rejected.
        tool_choices: accepted forms of `tool_choice`; `none` is emulated by leaving the tools out.
        forces_thinking: a call can be forced while the model thinks.
        required_choice: the word for "some tool".
        max_tools: most tools in one request; None if no limit is known.
        parallel_tool_calls: the field of this name is accepted.
        strict_tools: tools whose schema allows it are sent with `strict`.
        strict_option: the provider option `strict_tools` (true, or names of tools) makes tools strict.
        structured: how an answer's schema is enforced; only `json_schema` enforces it strictly. Services with it also
            have the JSON mode `json_object`, unless their capabilities say otherwise.
        object_root: the root of an answer's schema must be an object, and an answer is forced in strict mode only.
        any_keyword: a strict schema may use any keyword of JSON Schema; else only those of OpenAI's strict mode.
        schema_alone: an answer's schema is accepted neither together with tools nor in a streamed request.
        image_data_urls: base64 images are data URLs, else bare base64.
        image_details: accepted words for an image's `detail`; others are left out.
        file_urls: file parts may hold a URL.
        file_parts: documents that are not text are sent as `file` parts.
        document_style: documents are `file` parts, or `document_url` parts.
        audio_style: audio is an object with data and format, or a string, base64 or URL.
        result_parts: tool results may hold parts, not only text.
        cache_breakpoints: content parts take cache markers (WIRE.md, Prompt caching).
        cache_style: the marker: `prompt_cache_breakpoint`, or `cache_control` with a lifetime, which results and tools
            accept too.
        cache_key_field: field that identifies the session if hints request caching, so that its requests reach one
            cache (WIRE.md, Prompt caching); None if there is no field.
        error_prefix: prepended to the text of a failed tool's result, because this wire has no error flag.
        error_codes: further error words, word -> class name in `interlingua.errors`; `status 434` stands for a status.
        error_phrases: phrases of error messages in lower case, phrase -> class name; they have precedence over words.
        finish_optional: the service may stream an answer whose choices have no `finish_reason`; `[DONE]` ends it.
        request_id_headers: headers with the id of a failed request, in order of preference.
        citation_fields: lists beside `choices` that hold the sources of the text.
        stripped: body fields that the service rejects; they are left out, with a loss if the caller set them.
    """

    system_role: str = "system"
    single_system: bool = False
    max_tokens_field: str = "max_tokens"
    least_tokens: int = 0
    include_usage: bool = True
    sampling: bool = True
    temperature_range: tuple[float, float] | None = None
    top_k: bool = False
    seed_field: str | None = "seed"
    stop: bool = True
    stop_limit: int | None = None
    user_field: str | None = None
    user_length: int | None = None
    effort_shape: Literal["field", "object", "none"] = "none"
    effort_values: tuple[str, ...] = ()
    thinking_shape: Literal["type", "flag", "effort", "object", "none"] = "none"
    thinks_by_default: bool = True
    thinking_members: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_echo: str | None = None
    reasoning_scope: ReplayScope = "provider"
    reasoning_missing: str | None = None
    reasoning_details: bool = False
    content_chunks: bool = False
    refusal_parts: bool = False
    empty_content: str | None = None
    after_results: str | None = None
    prefill_field: str | None = None
    needs_user: bool = False
    tool_choices: frozenset[ToolChoiceKind] = ALL_CHOICES
    forces_thinking: bool = True
    required_choice: str = "required"
    max_tools: int | None = None
    parallel_tool_calls: bool = False
    strict_tools: bool = False
    strict_option: bool = False
    structured: Literal["json_schema", "json_object", "none"] = "none"
    object_root: bool = False
    any_keyword: bool = False
    schema_alone: bool = False
    image_data_urls: bool = True
    image_details: tuple[str, ...] = ("auto", "low", "high")
    file_urls: bool = False
    file_parts: bool = True
    document_style: Literal["file", "document_url"] = "file"
    audio_style: Literal["object", "string"] = "object"
    result_parts: bool = False
    cache_breakpoints: bool = False
    cache_style: Literal["breakpoint", "cache_control"] = "breakpoint"
    cache_key_field: str | None = None
    error_prefix: str = "Error: "
    error_codes: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    error_phrases: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    finish_optional: bool = False
    request_id_headers: tuple[str, ...] = ("x-request-id",)
    citation_fields: tuple[str, ...] = ()
    stripped: frozenset[str] = frozenset()

    @property
    def takes_reasoning(self) -> bool:
        """Whether reasoning can be sent back in some form."""
        return self.reasoning_echo is not None or self.reasoning_details or self.content_chunks


def capabilities_of(
    dialect: Dialect, stated: Mapping[str, Any], model: ModelInfo | None, api: str = API
) -> ModelCapabilities:
    """Return the capabilities of one model.

    Args:
        dialect: decides reasoning, schemas, forcing, parallel calls and cache markers.
        stated: the preset's own statements, by field name; lists become tuples.
        model: the catalogue's entry; None for an unknown model, which has the preset's defaults and `assumed`.
        api: name of the API.
    """
    facts: dict[str, Any] = {
        "supports_tools": True,
        "supports_system_prompt": True,
        "supports_streaming": True,
        "supports_streaming_tool_calls": True,
        "supports_parallel_tool_calls": True,
        "supports_system_messages_in_list": not dialect.single_system,
        "supports_structured_output": dialect.structured == "json_schema",
        "structured_output_streams": dialect.structured != "none",
        "json_mode": {} if dialect.structured == "none" else _JSON_MODE,  # both forms: WIRE.md, Structured outputs
        "schema_all_required": dialect.structured == "json_schema",  # strict mode (WIRE.md, Structured outputs)
        "supports_tool_choice": "required" in dialect.tool_choices,
        "supports_named_tool_choice": "named" in dialect.tool_choices,
        "supports_prompt_caching": dialect.cache_breakpoints,
        "max_cache_hints": 4 if dialect.cache_breakpoints else 0,
        "supports_thinking": dialect.takes_reasoning,
        "thinking_scope": dialect.reasoning_scope if dialect.takes_reasoning else "never",
        "accepts_unsigned_thinking": dialect.takes_reasoning,
        "accepted_image_media_types": IMAGES,
        "accepted_audio_media_types": AUDIO,
        "accepted_document_media_types": DOCUMENTS,
        # ids are opaque here (WIRE.md, Tools): these characters are in ids that services issue themselves
        "tool_id_pattern": r"[A-Za-z0-9_.:-]{1,64}",
        **stated,
        "api": api,
        "assumed": model is None,
    }
    if model is not None:
        facts["max_context_tokens"] = model.max_context_tokens or facts.get("max_context_tokens", 0)
        facts["max_output_tokens"] = model.max_output_tokens or facts.get("max_output_tokens", 0)
        facts.update(model.capabilities)
    return ModelCapabilities(**{name: _tuple(value) for name, value in facts.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
