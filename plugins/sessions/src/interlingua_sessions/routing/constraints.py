"""Whether a model can answer a turn at all, by what its adapter declares (seed 003 §7.2), and the words for it.

Never chooses a model and never sends. The chain and the session's `switch` come in. A model that no catalogue knows is
never refused (DESIGN 9): its capabilities are assumed, and an assumption is no ground for a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from interlingua.types.options import AdapterCapabilities
from interlingua_sessions.routing.needs import Needs

_NAMES = {"image": "images", "audio": "audio", "video": "video", "document": "documents"}


@attrs.frozen(kw_only=True)
class Failure:
    """One thing a model cannot do that a turn needs.

    Attributes:
        capability: the field of `AdapterCapabilities` that says so, or `provider` where there is none to ask.
        reason: for a person, as it stands behind "Cannot swap to X: ".
    """

    capability: str
    reason: str


def failures(needs: Needs, can: AdapterCapabilities, tokens: Callable[[], int] | None = None) -> list[Failure]:
    """Return why a model cannot answer; empty when it can.

    Args:
        needs: what the turn needs.
        can: what the model's adapter declares.
        tokens: estimates the input tokens, asked only where the window is known; None leaves size out.
    """
    if can.assumed:
        return []
    found = [*_media(needs, can), *_others(needs, can)]
    if tokens is not None and can.max_context_tokens and (size := tokens()) > can.max_context_tokens:
        window = can.max_context_tokens
        reason = f"session needs about {size:,} tokens and this model's context holds {window:,}"
        found.append(Failure(capability="max_context_tokens", reason=reason))
    return found


def _media(needs: Needs, can: AdapterCapabilities) -> Iterator[Failure]:
    for kind, name in _NAMES.items():
        capability = f"supports_{name}"
        accepted: Sequence[str] = getattr(can, f"accepted_{kind}_media_types")
        types = {media_type for block_type, media_type in needs.media if block_type == kind}
        if types and not getattr(can, capability):
            yield Failure(capability=capability, reason=f"session contains {name} that this model can't process")
        elif accepted and (others := sorted(types - {*accepted, ""})):
            reason = f"session contains {name} of type {', '.join(others)} that this model can't process"
            yield Failure(capability=f"accepted_{kind}_media_types", reason=reason)


def _others(needs: Needs, can: AdapterCapabilities) -> Iterator[Failure]:
    if needs.history_tools and not can.supports_tools:
        yield Failure(capability="supports_tools", reason="session contains tool calls that this model can't process")
    elif needs.offered_tools and not can.supports_tools:
        yield Failure(capability="supports_tools", reason="this turn offers tools that this model can't call")
    if needs.system and not can.supports_system_prompt:
        yield Failure(
            capability="supports_system_prompt", reason="session has a system prompt that this model can't take"
        )
    if needs.structured and not can.supports_structured_output:
        reason = "this turn asks for structured output that this model can't give"
        yield Failure(capability="supports_structured_output", reason=reason)
