"""The text of ready SSE events of the two OpenAI wires, for the fuzzer: what no break that comes later may take away.

Nothing of an adapter is imported.
"""

from __future__ import annotations

import json


def chat_text(events: list[bytes]) -> str:
    """Text, then refusal, of the first choice."""
    said = {"content": "", "refusal": ""}
    for data in events:
        event = json.loads(data) if data.startswith(b"{") else {}
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                for name in said:
                    piece = (choice.get("delta") or {}).get(name)
                    said[name] += piece if isinstance(piece, str) else ""
    return said["content"] + said["refusal"]


def responses_text(events: list[bytes]) -> str:
    """Text and refusals in order of items and parts, done events included.

    What stands behind a part that is not done is left out: that part may still grow.
    """
    done: set[tuple[int, int, int]] = set()
    parts: dict[tuple[int, int, int], str] = {}
    answer = 0
    for data in events:
        event = json.loads(data) if data.startswith(b"{") else {}
        answer += event.get("type") == "response.created"
        kind, _, step = str(event.get("type")).rpartition(".")
        if kind in ("response.output_text", "response.refusal") and step in ("delta", "done"):
            place = (answer, event["output_index"], event["content_index"])
            before = parts.get(place, "")
            told = str(event["delta"] if step == "delta" else event.get("text", event.get("refusal")))
            parts[place] = before + told if step == "delta" else told if told.startswith(before) else before
            if step == "done":
                done.add(place)
    said = ""
    for place, text in sorted(parts.items()):
        said += text
        if place not in done:
            break
    return said
