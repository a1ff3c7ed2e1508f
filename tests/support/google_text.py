"""The text of ready SSE events of generateContent, for the fuzzer: what no break that comes later may take away.

Nothing of an adapter is imported.
"""

from __future__ import annotations

import json


def generated_text(events: list[bytes]) -> str:
    """Text of the first candidate, thoughts left out."""
    said = ""
    for data in events:
        for candidate in json.loads(data).get("candidates") or ():
            if not candidate.get("index"):
                parts = (candidate.get("content") or {}).get("parts") or ()
                said += "".join(part.get("text", "") for part in parts if not part.get("thought"))
    return said
