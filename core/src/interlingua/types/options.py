"""Options of a request, and the capabilities that a plugin declares for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

import attrs

from interlingua._json import EMPTY, FieldError, FrozenDict, as_tuple, freeze_object, freeze_optional
from interlingua._values import CONVERT_ALWAYS, validated

if TYPE_CHECKING:
    from interlingua.types.messages import RoutingDecision
    from interlingua.types.tools import ToolDefinition

_C = TypeVar("_C", bound=Callable[..., Any])

ReplayScope = Literal["never", "model", "api", "provider"]


@validated
@attrs.frozen(kw_only=True, cache_hash=True)  # hashed for every request
class ModelCapabilities:
    """The capabilities of one model through its plugin (format.md, Options and capabilities).

    Attributes:
        supports_thinking: thinking blocks can be sent back.
        supports_images: images in user messages.
        supports_tools: tool definitions, calls and results.
        supports_system_prompt: system messages.
        supports_structured_output: an answer forced into a JSON schema.
        supports_streaming: answers as streams.
        supports_streaming_tool_calls: call arguments arrive in pieces.
        supports_parallel_tool_calls: several calls in one answer.
        supports_prompt_caching: cache hints can be expressed in this API.
        supports_system_messages_in_list: system messages may be anywhere, not only at the front.
        supports_tool_changes: tools may be added and removed within the conversation, so that what was cached stays.
        supports_effort_changes: the effort may change within the conversation in the same way.
        supports_format_changes: the schema of answers may change within the conversation in the same way.
        supports_deferred_tools: tools may be deferred until the service's search finds them.
        max_context_tokens: window in tokens; 0 if unknown.
        max_output_tokens: longest answer in tokens; 0 if unknown.
        accepted_image_media_types: IANA media types.
        supports_audio: audio in user messages.
        supports_video: video in user messages.
        supports_documents: documents in user messages.
        supports_citations: citations on assistant text can be sent back to the provider and API they came from.
        supports_tool_result_images: images, audio and video inside tool results.
        supports_tool_result_documents: documents inside tool results, whether or not user messages hold them.
        supports_image_urls: images by URL; otherwise core fetches them before sending.
        supports_tool_choice: forcing the model to call some tool.
        supports_named_tool_choice: forcing it to call one tool by name.
        accepted_audio_media_types: IANA media types.
        accepted_video_media_types: IANA media types.
        accepted_document_media_types: IANA media types.
        thinking_scope: how close the origin must be for its thinking and signatures to be sent back.
        accepts_unsigned_thinking: thinking without a signature may be sent back within that scope.
        signed_blocks: types of further blocks whose signatures are sent back within that scope: `text`, `tool_use`.
        blank_text: places where blank text of users and assistants may be sent; elsewhere it is removed.
        tool_id_pattern: regular expression that a call id must match, whole.
        tool_id_max_length: longest call id.
        tool_name_pattern: regular expression that a tool name must match, whole.
        tool_name_max_length: longest tool name.
        max_cache_hints: maximum number of cache markers in one request; 0 if the API has no markers.
        caches_only_hints: without cache hints nothing of a prompt is cached.
        max_images: maximum number of images in one request; here and below 0 means no known limit.
        max_image_bytes: largest image, in bytes before base64.
        max_image_side: longest side of an image in pixels.
        many_images: with more images than this in a request, `many_images_side` applies instead of `max_image_side`.
        many_images_side: that longest side in pixels.
        max_document_pages: maximum number of PDF pages in one request.
        max_media_bytes: maximum bytes of media in one request, before base64.
        structured_output_with_tools: a response schema, or the JSON mode, may be sent together with tools.
        structured_output_streams: a response schema, or the JSON mode, may be sent for a streamed answer.
        json_mode: `provider_options` that make an answer some JSON object; empty if the service has no JSON mode.
        structured_in_prompt: the service shows the response schema to the model.
        forced_tool_with_thinking: a call may be forced while the model is asked to think.
        thinks_by_default: the model thinks unless the request disables it.
        schema_all_required: a schema is enforced only if each object requires all its properties.
        schema_open_maps: objects with properties of any name, `additionalProperties`, in a response schema.
        schema_recursive: a response schema may refer to itself.
        schema_max_optional: maximum number of optional properties in a response schema; from here on, 0 means no limit.
        schema_max_unions: maximum number of unions (`anyOf`) in it.
        schema_max_depth: maximum number of levels of objects in it.
        schema_max_properties: maximum number of properties in it.
        schema_max_enum_values: maximum number of enum values in it.
        api: the API that these facts are about.
        assumed: the model is not in the catalogue and these are its provider's defaults.
    """

    supports_thinking: bool = False
    supports_images: bool = False
    supports_tools: bool = False
    supports_system_prompt: bool = False
    supports_structured_output: bool = False
    supports_streaming: bool = False
    supports_streaming_tool_calls: bool = False
    supports_parallel_tool_calls: bool = False
    supports_prompt_caching: bool = False
    supports_system_messages_in_list: bool = False
    supports_tool_changes: bool = False
    supports_effort_changes: bool = False
    supports_format_changes: bool = False
    supports_deferred_tools: bool = False
    max_context_tokens: int = 0
    max_output_tokens: int = 0
    accepted_image_media_types: tuple[str, ...] = ()
    supports_audio: bool = False
    supports_video: bool = False
    supports_documents: bool = False
    supports_citations: bool = False
    supports_tool_result_images: bool = False
    supports_tool_result_documents: bool = False
    supports_image_urls: bool = False
    supports_tool_choice: bool = False
    supports_named_tool_choice: bool = False
    accepted_audio_media_types: tuple[str, ...] = ()
    accepted_video_media_types: tuple[str, ...] = ()
    accepted_document_media_types: tuple[str, ...] = ()
    thinking_scope: ReplayScope = "never"
    accepts_unsigned_thinking: bool = False
    signed_blocks: tuple[str, ...] = ()
    blank_text: Literal["nowhere", "beside_calls", "anywhere"] = "nowhere"
    tool_id_pattern: str = r"[A-Za-z0-9_-]{1,64}"
    tool_id_max_length: int = 64
    tool_name_pattern: str = r"[A-Za-z0-9_-]{1,64}"
    tool_name_max_length: int = 64
    max_cache_hints: int = 0
    caches_only_hints: bool = False
    max_images: int = 0
    max_image_bytes: int = 0
    max_image_side: int = 0
    many_images: int = 0
    many_images_side: int = 0
    max_document_pages: int = 0
    max_media_bytes: int = 0
    structured_output_with_tools: bool = False
    structured_output_streams: bool = False
    json_mode: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    structured_in_prompt: bool = False
    forced_tool_with_thinking: bool = False
    thinks_by_default: bool = False
    schema_all_required: bool = False
    schema_open_maps: bool = False
    schema_recursive: bool = False
    schema_max_optional: int = 0
    schema_max_unions: int = 0
    schema_max_depth: int = 0
    schema_max_properties: int = 0
    schema_max_enum_values: int = 0
    api: str = ""
    assumed: bool = False


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


@validated
@attrs.frozen
class ToolChoice:
    """Force the one tool of this name.

    Attributes:
        name: canonical name of the tool.
    """

    name: str


ToolChoiceOption: TypeAlias = Literal["auto", "none", "required"] | ToolChoice


def _stop(value: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else as_tuple(value)


def _headers(value: Mapping[str, str] | None) -> FrozenDict:
    headers = freeze_object(value)
    if type(headers) is not FrozenDict or not all(isinstance(text, str) for text in headers.values()):
        raise FieldError("expected a dict of strings")
    return freeze_object({name.lower(): text for name, text in headers.items()})


def _facts(value: Mapping[str, Any] | None) -> FrozenDict:
    facts = freeze_object(value)
    if type(facts) is not FrozenDict or not facts.keys() <= attrs.fields_dict(ModelCapabilities).keys():
        raise FieldError("expected a dict by field names of ModelCapabilities")
    return facts


@validated
@attrs.frozen(kw_only=True)
class RequestOptions:
    """One request's options; None means "the provider's default", while 0 is a value.

    Attributes:
        model: model name as the provider knows it, without provider key.
        api: which API of the provider; None lets the plugin choose.
        stream: ask for a stream.
        max_tokens: longest answer in tokens.
        temperature: sampling temperature.
        top_p: nucleus sampling.
        top_k: sampling from the k likeliest tokens.
        seed: seed for repeatable sampling, if the API has one.
        stop: stop sequences.
        tool_choice: auto, none, required, or one tool.
        parallel_tool_calls: False forbids several calls in one answer.
        response_schema: JSON Schema the answer must follow.
        response_name: a name for that schema, if the API needs one.
        effort: how hard to think.
        thinking: True or False to switch reasoning on or off, if the model allows it.
        thinking_budget: maximum reasoning tokens, if the model takes a budget; 0 switches thinking off everywhere.
        thinking_as_text: send the reasoning of other models in text blocks. Off by default, because models imitate it.
        downscale_images: shrink images that are too large for the target (needs Pillow, the extra `images`); off by
            default: an image that is too large is a CapabilityError.
        allow_loss: send a note instead of a block that the user has just added and the model cannot take; off by
            default: the block is a CapabilityError.
        cache: `auto` puts cache hints where the prompt repeats, if the service caches nothing without them.
        user_id: stable pseudonymous end-user id for the provider's abuse control.
        provider_options: extra body fields of the provider's API, merged into the body last.
        headers: extra request headers.
        capabilities: facts about a model that the catalogue does not know.
        connection: the provider's connection options (`settings=` of the client), for plugins; not an option of a call.
    """

    model: str
    api: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = attrs.field(default=(), converter=_stop)
    tool_choice: ToolChoiceOption | None = None
    parallel_tool_calls: bool | None = None
    response_schema: FrozenDict | None = attrs.field(default=None, converter=freeze_optional)
    response_name: str = "response"
    effort: Effort | None = None
    thinking: bool | None = None
    thinking_budget: int | None = None
    thinking_as_text: bool = False
    downscale_images: bool = False
    allow_loss: bool = False
    cache: Literal["auto"] | None = None
    user_id: str | None = None
    provider_options: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    headers: FrozenDict = attrs.field(default=EMPTY, converter=_headers, metadata=CONVERT_ALWAYS)
    capabilities: FrozenDict = attrs.field(default=EMPTY, converter=_facts, metadata=CONVERT_ALWAYS)
    connection: Mapping[str, Any] = EMPTY


class RequestKwargs(TypedDict, total=False):
    """Keyword arguments of a call: these, and the fields of `RequestOptions` by name.

    Attributes:
        model: `<provider>:<name>` or an alias, instead of the client's default; or a list: if one fails, the next is
            asked.
        tools: functions that the model may call.
        routing: why this model was chosen, if a router chose it.
        user_id: stable pseudonymous id of the end user; sent if the service has a field for it.
        team_id: stable pseudonymous id of the user's team; kept on the answer, never sent.
    """

    model: str | Sequence[str] | None
    tools: Sequence[ToolDefinition]
    routing: RoutingDecision | None
    user_id: str | None
    team_id: str | None
    api: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    seed: int | None
    stop: str | Sequence[str] | None
    tool_choice: ToolChoiceOption | None
    parallel_tool_calls: bool | None
    response_schema: Mapping[str, Any] | None
    response_name: str | None
    effort: Effort | None
    thinking: bool | None
    thinking_budget: int | None
    thinking_as_text: bool | None
    downscale_images: bool | None
    allow_loss: bool | None
    cache: Literal["auto"] | None
    provider_options: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    capabilities: Mapping[str, Any] | None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the hint about a name that does not exist: similar ones, else all."""
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = " or ".join(get_close_matches(name, known := list(known), 3))
    return f"did you mean {near}?" if near else f"there are: {', '.join(known)}"


def unknown_argument(name: str, known: Iterable[str], given: str, places: Mapping[str, str]) -> TypeError:
    """Return the error about an argument that does not exist; in the hints of `places` its name is `{}`."""
    hint = places.get(given) or nearest(given, [one for one in known if one not in ("self", "cls")])
    return TypeError(f"{name}() has no argument {given!r}: {hint.format(given)}")


def explain_arguments(option: str = "", places: Callable[[], dict[str, str]] = dict) -> Callable[[_C], _C]:
    """Return a decorator for a function or a class whose error about an unknown argument says where it belongs.

    The hint for options of calls is `option`; `places` returns those for other names. In them `{}` is the name.
    """

    def decorate(given: Any) -> Any:
        is_class = isinstance(given, type)
        function: Any = vars(given)["__init__"] if is_class else given
        code = function.__code__
        known = dict.fromkeys(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

        @wraps(function)
        def checked(*args: Any, **named: Any) -> Any:
            if unknown := [one for one in named if one not in known]:
                name = function.__name__
                if next(iter(known)) in ("self", "cls"):  # of this class or of one that inherits the method
                    owner = (args[0] if isinstance(args[0], type) else type(args[0])).__name__
                    name = owner if name == "__init__" else f"{owner}.{name}"
                hints = dict.fromkeys(RequestKwargs.__optional_keys__, option) | places()
                raise unknown_argument(name, known, unknown[0], hints)
            return function(*args, **named)

        if is_class:
            given.__init__ = checked
            return given
        return checked

    return decorate
