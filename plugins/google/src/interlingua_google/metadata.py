"""Metadata of an answer: stop reason, counts, citations, other candidates, terminal event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.errors import ContentRefusedError, ProviderError, ServerError
from interlingua.plugins import RequestContext
from interlingua.types import ErrorEvent, MessageComplete, StopReason, StreamEvent, Usage

_STOPS = {
    "STOP": StopReason.END_TURN,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "CONTINUATION": StopReason.PAUSE_TURN,
}
_REFUSALS = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"),
    *("IMAGE_RECITATION", "MODEL_ARMOR"),
)
_ERRORS = (
    *("OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "IMAGE_OTHER", "NO_IMAGE", "UNEXPECTED_TOOL_CALL"),
    *("TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"),
)
_STOPS |= dict.fromkeys(_REFUSALS, StopReason.REFUSAL) | dict.fromkeys(_ERRORS, StopReason.ERROR)
# numbers stand for words with `$alt=json;enum…=int`
_NUMBERED = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")
GROUNDING = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_TEXT = ({"text"}, {"text", "thought"})


def from_wire_stop(raw: Any, *, calls: bool) -> StopReason:
    """Return the canonical stop reason of a finish reason, a word or its number; OTHER if it is unknown.

    Args:
        raw: the service's finish reason.
        calls: the answer holds calls, which have no separate reason.
    """
    word = _NUMBERED[raw] if type(raw) is int and 0 <= raw < len(_NUMBERED) else raw
    found = _STOPS.get(word, StopReason.OTHER) if isinstance(word, str) else StopReason.OTHER
    return StopReason.TOOL_USE if found is StopReason.END_TURN and calls else found


def from_wire_usage(raw: Mapping[str, Any], searches: int = 0) -> Usage:
    """Return the counts: thoughts are not in candidates, tool prompts not in the prompt (WIRE.md, Usage).

    Args:
        raw: the service's counts.
        searches: billed searches, see `billed_searches`.
    """
    prompt, tools = _count(raw, "promptTokenCount"), _count(raw, "toolUsePromptTokenCount")
    visible, thought = _count(raw, "candidatesTokenCount"), _count(raw, "thoughtsTokenCount")
    if visible is None and thought is None and prompt is not None and "totalTokenCount" in raw:
        visible = 0  # a count of nothing is left out
    tier = raw.get("serviceTier")
    extra = {"web_search": searches, "image_output_tokens": _of_modality(raw, "candidatesTokensDetails", "IMAGE")}
    return Usage(
        input_tokens=_sum(prompt, tools),
        output_tokens=_sum(visible, thought),
        cached_input_tokens=_count(raw, "cachedContentTokenCount"),
        audio_input_tokens=_of_modality(raw, "promptTokensDetails", "AUDIO"),
        cached_audio_input_tokens=_of_modality(raw, "cacheTokensDetails", "AUDIO"),
        reasoning_tokens=thought,
        extra_units={name: count for name, count in extra.items() if count} or None,
        service_tier=tier if isinstance(tier, str) else None,
    )


def billed_searches(groundings: Sequence[Mapping[str, Any]], model: str) -> int:
    """Return the number of billed searches of an answer: its queries; at most one for models before Gemini 3.

    Args:
        groundings: the values of `GROUNDING` of the answer's chunks; a later one may repeat an earlier one's queries.
        model: the model that answered.
    """
    found = [each.get("groundingMetadata") for each in groundings]
    queries = {query for each in found if isinstance(each, dict) for query in each.get("webSearchQueries") or ()}
    return min(len(queries), 1) if model.startswith(("gemini-1", "gemini-2")) else len(queries)


def _of_modality(raw: Mapping[str, Any], name: str, modality: str) -> int | None:
    """Return the tokens of a modality from a list by modality; None if it is not listed."""
    listed = raw.get(name)
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    counts = [_count(each, "tokenCount") for each in found if each.get("modality") == modality]
    return sum(count or 0 for count in counts) if counts else None


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)


def from_wire_ending(
    last: Mapping[str, Any], feedback: Any, *, empty: bool, calls: bool, context: RequestContext
) -> Iterator[StreamEvent]:
    """Yield the terminal event, or no event if the answer has no finish reason.

    A failure is a typed error, but a refusal with content and a failure with calls are stop reasons: Gemini 3 ends an
    answer whose call it rejects with UNEXPECTED_TOOL_CALL, and continues when it gets the call's result.

    Args:
        last: `finishReason` and `finishMessage` of the answer, {} while it has none.
        feedback: the prompt's feedback, if any.
        empty: the answer has no content.
        calls: the answer holds calls.
        context: context of the exchange.
    """
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if reason is not None and empty:
        text = feedback.get("blockReasonMessage")
        yield _failed(ContentRefusedError, f"the prompt was blocked: {text or reason}", reason, context)
        return
    if not last:
        return
    raw, words = last["finishReason"], last.get("finishMessage")
    stop = from_wire_stop(raw, calls=calls)
    if (empty and stop is StopReason.REFUSAL) or (stop is StopReason.ERROR and not calls):
        kind = ContentRefusedError if stop is StopReason.REFUSAL else ServerError
        said = "gave nothing and stopped" if empty else "stopped"
        yield _failed(kind, str(words or f"the model {said} with {raw}"), raw, context)
        return
    yield MessageComplete(stop_reason=stop, stop_reason_raw=str(raw))


def _failed(kind: type[ProviderError], message: str, code: Any, context: RequestContext) -> ErrorEvent:
    origin = context.origin
    return ErrorEvent(error=kind(message, code=str(code), provider=origin.provider, model=origin.model))


def citations_by_block(candidates: Sequence[Mapping[str, Any]], texts: Mapping[int, str]) -> dict[int, list[Any]]:
    """Return block index -> citations, each unchanged, with the sources that its numbers refer to.

    Args:
        candidates: the metadata members of the answer, unchanged.
        texts: block index -> text of the block; only text blocks can have citations.
    """
    found: dict[int, list[Any]] = {}
    if not texts:
        return found
    for citation, quoted in (pair for metadata in candidates for pair in _citations(metadata)):
        index = next((at for at, text in texts.items() if quoted and quoted in text), max(texts))
        listed = found.setdefault(index, [])
        if citation not in listed:  # a stream may repeat them
            listed.append(citation)
    return found


def _citations(metadata: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each citation and the text it refers to; "" if it has only offsets."""
    grounding = metadata.get("groundingMetadata")
    if isinstance(grounding, dict):
        chunks = _listed(grounding, "groundingChunks")
        for support in _listed(grounding, "groundingSupports"):
            segment = support.get("segment")
            quoted = segment.get("text") if isinstance(segment, dict) else None
            numbers = support.get("groundingChunkIndices")
            places = numbers if isinstance(numbers, list) else []
            sources = [chunks[at] for at in places if type(at) is int and 0 <= at < len(chunks)]
            yield {**support, "groundingChunks": sources}, quoted if isinstance(quoted, str) else ""
    recited = metadata.get("citationMetadata")
    if isinstance(recited, dict):
        for citation in (*_listed(recited, "citations"), *_listed(recited, "citationSources")):
            yield citation, ""


def _listed(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = holder.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


class OtherCandidates:
    """The candidates after the first, by number, merged from their chunks."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, Any]] = {}

    def add(self, number: int, candidate: Mapping[str, Any]) -> None:
        """Add one candidate, or a chunk of it."""
        whole = self._found.setdefault(number, {"content": {"role": "model", "parts": []}})
        whole.update({name: value for name, value in candidate.items() if name != "content"})
        parts: list[Any] = whole["content"]["parts"]
        content = candidate.get("content")
        for at, part in enumerate((content.get("parts") if isinstance(content, dict) else None) or ()):
            if at == 0 and parts and _goes_on(parts[-1], part):
                parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)

    def all(self) -> list[dict[str, Any]]:
        """Return the candidates in order."""
        return [whole for _, whole in sorted(self._found.items())]


def _goes_on(last: Any, part: Any) -> bool:
    if (
        not isinstance(last, dict)
        or not isinstance(part, dict)
        or last.keys() != part.keys()
        or part.keys() not in _TEXT
    ):
        return False
    texts = isinstance(last["text"], str) and isinstance(part["text"], str)
    return texts and last.get("thought") == part.get("thought")
