"""The beginning of a request: what the caller gave, read into an exchange.

Never sends and never writes a request (the exchange does).
The two clients and the command line's dry runs come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.client.asked import read_messages, read_options, read_tools
from interlingua.client.core import ClientCore
from interlingua.client.exchange import Exchange
from interlingua.messages import Message, RoutingDecisionRecord
from interlingua.tools import ToolDefinition


def begin(
    core: ClientCore,
    messages: str | Message | Sequence[Message],
    *,
    model: str | None,
    tools: Sequence[ToolDefinition],
    routing: RoutingDecisionRecord | None,
    user_id: str | None,
    options: Mapping[str, Any],
    stream: bool,
) -> Exchange:
    """Begin one request: everything before its references are fetched.

    Raises:
        CallerError: an option or the conversation cannot be read; anything `ClientCore.known` raises.
    """
    known = core.known(model)
    given = dict(options)
    if core.headers:
        given["headers"] = {**core.headers, **(given.get("headers") or {})}
    if given.get("api") is None and (api := core.api(known.provider)) is not None:
        given["api"] = api
    asked = read_options(given, model=known.id.name, stream=stream, user_id=user_id)
    return Exchange(
        core, known.provider, read_messages(messages), read_tools(tools, asked), asked, routing or known.routing
    )
