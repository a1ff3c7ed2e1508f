"""What a target can carry: one declaration per provider and model, read by routing, projection and the contract suite.

Never guesses and never lies: a capability without evidence is declared False (seed 003 §7.2).
Adapters, projection, client and contract suite may come in.
"""

from __future__ import annotations

from typing import Literal

import attrs

ReplayScope = Literal["never", "model", "api", "provider"]


@attrs.frozen(kw_only=True, cache_hash=True)  # hashed for every request
class AdapterCapabilities:
    """Capabilities of one adapter with one model (seed 003 §7.2; the second half is additive).

    Attributes:
        supports_thinking: thinking blocks can be sent back.
        supports_images: images in user messages.
        supports_tools: tool definitions, calls and results.
        supports_system_prompt: system messages.
        supports_structured_output: an answer forced into a JSON schema.
        supports_streaming: answers as streams.
        supports_streaming_tool_calls: call arguments arrive in pieces.
        supports_parallel_tool_calls: several calls in one answer.
        supports_prompt_caching: cache hints have a form on this wire.
        supports_system_messages_in_list: system messages may stand anywhere, not only hoisted to the front.
        max_context_tokens: window in tokens; 0 when unknown.
        max_output_tokens: longest answer in tokens; 0 when unknown.
        accepted_image_media_types: IANA media types.
        supports_audio: audio in user messages.
        supports_video: video in user messages.
        supports_documents: documents in user messages.
        supports_citations: citations on assistant text can be sent back.
        supports_tool_result_images: images inside tool results.
        supports_image_urls: images by URL, so that nobody need fetch them first.
        supports_tool_choice: forcing a tool, or any tool.
        accepted_audio_media_types: IANA media types.
        accepted_video_media_types: IANA media types.
        accepted_document_media_types: IANA media types.
        thinking_scope: how near the origin must be for its thinking and signatures to be sent back.
        accepts_unsigned_thinking: thinking without a signature may be sent back within that scope.
        tool_id_pattern: regular expression a call id must match on this wire, whole.
        tool_id_max_length: longest call id.
        tool_name_pattern: regular expression a tool name must match on this wire, whole.
        tool_name_max_length: longest tool name.
        max_cache_hints: most cache markers in one request; 0 where hints have no markers.
        max_images: most images in one request; here and below 0 is no limit known.
        max_image_bytes: largest image, in bytes before base64.
        max_image_side: longest side of an image in pixels.
        many_images: with more images than this in a request, `many_images_side` holds instead of `max_image_side`.
        many_images_side: that longest side in pixels.
        max_document_pages: most PDF pages in one request.
        max_media_bytes: most bytes of media in one request, before base64.
        api: which of the provider's wire formats these facts are about.
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
    max_context_tokens: int = 0
    max_output_tokens: int = 0
    accepted_image_media_types: tuple[str, ...] = ()
    supports_audio: bool = False
    supports_video: bool = False
    supports_documents: bool = False
    supports_citations: bool = False
    supports_tool_result_images: bool = False
    supports_image_urls: bool = False
    supports_tool_choice: bool = False
    accepted_audio_media_types: tuple[str, ...] = ()
    accepted_video_media_types: tuple[str, ...] = ()
    accepted_document_media_types: tuple[str, ...] = ()
    thinking_scope: ReplayScope = "never"
    accepts_unsigned_thinking: bool = False
    tool_id_pattern: str = r"[A-Za-z0-9_-]{1,64}"
    tool_id_max_length: int = 64
    tool_name_pattern: str = r"[A-Za-z0-9_-]{1,64}"
    tool_name_max_length: int = 64
    max_cache_hints: int = 0
    max_images: int = 0
    max_image_bytes: int = 0
    max_image_side: int = 0
    many_images: int = 0
    many_images_side: int = 0
    max_document_pages: int = 0
    max_media_bytes: int = 0
    api: str = ""
    assumed: bool = False
