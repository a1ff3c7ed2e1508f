"""What our adapters made of an answer, in the few facts that an oracle is asked about.

Nothing of a provider's SDK is imported.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from interlingua._json import thaw
from interlingua.types.messages import Message

FOLDER = Path(__file__).parent


def calls_of(message: Message) -> tuple[tuple[str, Any], ...]:
    """Return (name, arguments) of each call."""
    return tuple((call.name, thaw(call.input)) for call in message.tool_calls)


def usage_of(message: Message) -> tuple[int, int, int, int]:
    """Return inclusive input, output, cache reads and cache writes; what was not reported counts as 0 here."""
    usage = message.metadata.usage
    assert usage is not None
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.cache_creation_input_tokens)
    return tuple(count or 0 for count in counts)  # type: ignore[return-value]


def disagreements(name: str) -> dict[str, str]:
    """Return the entries where an oracle and we differ, each with its reason."""
    listed = tomllib.loads((FOLDER / f"{name}_disagreements.toml").read_text(encoding="utf-8"))
    return {row["id"]: row["reason"] for row in listed.get("entry", [])}
