"""Write a request without sending it, and estimate what it would cost: for `wire`, `explain`, `doctor` and swaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from interlingua import Exchange
from interlingua._http.signing import sign_request
from interlingua._http.state import ClientState
from interlingua._pricing import cost_of
from interlingua._request.prefix import lost_cache
from interlingua._request.prepare import RequestDraft
from interlingua.errors import CallerError
from interlingua.plugins import Loss, estimate_tokens, no_auth
from interlingua.types import Message, Role, StopReason, ToolDefinition, Usage, user
from interlingua_cli.context import CommandContext
from interlingua_cli.output import mask_credentials

_SECRETS = ("authorization", "api-key", "apikey", "token", "secret", "cookie")


def plan_request(
    context: CommandContext,
    messages: Sequence[Message],
    model: str,
    *,
    tools: Sequence[ToolDefinition] = (),
    stream: bool = False,
    exact: bool = True,
    base_url: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Exchange:
    """Return the request that the client would send; nothing is sent and no key is needed.

    An image that would have to be fetched raises CallerError; with `exact=False` its URL replaces it.
    """
    shared = ClientState(
        model, base_url=base_url, registry=context.registry, settings=context.settings, workspace=Path.cwd()
    )
    exchange = Exchange(shared, messages, {"tools": tools, **(options or {})}, stream=stream)
    urls = exchange.request.urls
    if exact and urls:
        raise CallerError(f"{model} takes no image by URL, and this command fetches nothing: {', '.join(urls)}")
    exchange.write(None)
    return exchange


def losses_at_model(
    context: CommandContext, messages: Sequence[Message], model: str, options: Mapping[str, Any] | None = None
) -> Sequence[Loss]:
    """Return the losses of a conversation at another model, its next question included; nothing is sent."""
    if not messages:
        return ()
    options = {**(options or {}), "allow_loss": True}
    exchange = plan_request(context, add_next_message(messages), model, exact=False, options=options)
    return exchange.request.wire.losses


def add_next_message(messages: Sequence[Message]) -> Sequence[Message]:
    """Append a user message to a conversation that ends with an answer: some services require one."""
    last = messages[-1] if messages else None
    if last is None or last.role is not Role.ASSISTANT or last.metadata.stop_reason is StopReason.PAUSE_TURN:
        return messages
    return [*messages, user("?", session_id=last.session_id)]


def describe_request(exchange: Exchange) -> tuple[str, str, dict[str, str]]:
    """Return method, full URL and headers of a planned request, without auth and with the caller's secrets masked."""
    connection = attrs.evolve(exchange.connection, auth=no_auth, sign=None)
    sent = sign_request(connection, exchange.request.wire, exchange.request.options.headers)
    headers = {name: "***" if any(word in name for word in _SECRETS) else text for name, text in sent.headers.items()}
    return sent.method, mask_credentials(sent.url), headers


def estimate_cost(request: RequestDraft) -> dict[str, Any]:
    """Return the cost of sending a planned request: tokens, window, and the price of its input in USD."""
    provider, model = request.provider, request.options.model
    tokens = estimate_tokens(provider, request.messages, request.tools, request.options)
    window = request.target.capabilities.max_context_tokens or None
    cost = cost_of(Usage(input_tokens=tokens, output_tokens=0), provider.model(model), datetime.now(UTC))
    return {
        "input_tokens": tokens,
        "max_context_tokens": window,
        "fits": None if window is None else tokens <= window,
        "input_cost_usd": cost.cost_usd,
        "cost_note": cost.cost_note,
        "pricing_version": cost.pricing_version,
    }


def estimate_lost_cache(request: RequestDraft, input_tokens: int) -> dict[str, Any]:
    """Return the cost of losing the last answer's prompt cache by changing to this model."""
    messages, provider, model = request.messages, request.provider, request.options.model
    origin = next((message.metadata.model for message in reversed(messages) if message.metadata.model), None)
    facts: dict[str, Any] = {"from": origin, "tokens": 0, "source": None, "cost_usd": None, "cost_note": None}
    if origin is None:
        return facts | {"cost_note": "no model has answered yet, so nothing is cached"}
    if origin == f"{provider.key}:{model}":
        return facts | {"cost_note": "the same model: its cache stays valid"}

    lost = lost_cache(
        messages, input_tokens, provider.model(model), datetime.now(UTC),
        lambda prefix: estimate_tokens(provider, prefix, request.tools, request.options),
    )  # fmt: skip
    return facts | lost._asdict()
