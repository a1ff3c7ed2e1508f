"""Where text came from: grounding and recitation metadata of an answer -> citations of its text (sheet gemini §9).

Never moves an offset: each citation keeps the service's own words, with the sources its numbers point to beside them.
The reader comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAMES = ("groundingMetadata", "citationMetadata", "urlContextMetadata")


def citations_by_block(candidates: Sequence[Mapping[str, Any]], texts: Mapping[int, str]) -> dict[int, list[Any]]:
    """Return block index -> citations.

    Args:
        candidates: the metadata members of the answer, as they came.
        texts: block index -> its text; only these can carry a citation.
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
    """Yield each citation and the words it is about, "" where it names only offsets."""
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
