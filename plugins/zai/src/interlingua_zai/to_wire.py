"""What this service wants said otherwise than the shared format does: sampling in an open range, streamed arguments.

Never writes a message; it settles options and hands on, with what that lost.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from interlingua.plugins.wire import Loss, WireRequest, option_loss
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_zai.catalogue import facts_of
from interlingua_zai.dialect import FORMAT, HIGHEST, LOWEST, dialect_of


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request (hook `to_wire`).

    Raises:
        CapabilityError: a schema or a forced tool was asked for; the service has neither (sheet zai §2).
    """
    dialect = dialect_of(options.model)
    losses: list[Loss] = []
    changes = _sampling(options, losses)
    extra: dict[str, Any] = {}
    if options.temperature is not None and options.temperature <= 0:
        extra["do_sample"] = False  # §2: how the service's SDK says 0
    if options.stream and tools and options.tool_choice != "none":
        extra["tool_stream"] = True  # §2: without it a call arrives whole
    if options.thinking and facts_of(options.model).get("thinking") == "always":
        changes["thinking"] = None  # it does so anyway
    if extra:
        changes["provider_options"] = {**extra, **options.provider_options}
    request = FORMAT.to_wire(messages, tools, attrs.evolve(options, **changes) if changes else options, dialect)
    return attrs.evolve(request, losses=(*request.losses, *losses)) if losses else request


def _sampling(options: AdapterOptions, losses: list[Loss]) -> dict[str, Any]:
    """Move what is outside of the open range (0, 1) inside."""
    changes: dict[str, Any] = {}
    for name in ("temperature", "top_p"):
        value = getattr(options, name)
        if value is None or 0 < value < 1:
            continue
        moved = changes[name] = LOWEST if value <= 0 else HIGHEST
        reason = f"this service takes values between 0 and 1, both excluded, not {value}; {moved} is sent"
        losses.append(option_loss(name, "rewritten", reason))
    return changes
