"""The request to one model: what is sent, the estimate of an answer's cost, and the losses as a header's value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from interlingua import cost_of
from interlingua.errors import CapabilityError, PermissionDeniedError
from interlingua.plugins import Loss, estimate_tokens
from interlingua.types import (
    AudioBlock,
    BlockEnd,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageComplete,
    MessageStatus,
    OpaqueBlock,
    Origin,
    RequestOptions,
    Role,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseEnd,
    Usage,
)
from interlingua_gateway.config import ModelRoute
from interlingua_gateway.models import RoutedModel
from interlingua_gateway.services import Services
from interlingua_gateway.spending import FurtherCost
from interlingua_serving import InboundRequest, ServedApi, ServiceTool

_HEADER_LIMIT = 4_000  # bytes of the ledger in a header: servers and proxies allow 8,000 for all
_USES = 5  # of a service's tool, for which a request sets no limit
_ENDS = frozenset((BlockEnd, ToolUseEnd, MessageComplete))
_write_rows = json.JSONEncoder(separators=(",", ":")).encode
_OPTIONS = tuple(attrs.fields_dict(RequestOptions).keys() - {"model", "stream", "connection"})


@attrs.frozen
class UpstreamRequest:
    """The request to one model: its id and origin, the conversation, tools, options, and the losses so far."""

    name: str
    origin: Origin
    messages: tuple[Message, ...]
    tools: Sequence[Any]
    options: RequestOptions
    losses: tuple[Loss, ...]

    @property
    def given(self) -> dict[str, Any]:
        """The options as the client takes them."""
        found = {name: getattr(self.options, name) for name in _OPTIONS}
        return {name: value for name, value in found.items() if value is not None}

    def with_limit(self, most: int, reason: str) -> UpstreamRequest:
        """Return the request with fewer output tokens, and a row for it."""
        row = Loss(path="options.max_tokens", block_type="option", verdict="rewritten", reason=reason)
        return attrs.evolve(self, options=attrs.evolve(self.options, max_tokens=most), losses=(*self.losses, row))

    def with_tool_limits(self, api: ServedApi) -> UpstreamRequest:
        """Return the request with limits on the uses of the service's tools that have none, and a row for each."""
        given = dict(self.options.provider_options)
        limits: dict[str, Any] = {}
        is_used = any(tool is not None and tool.unit for _, _, tool in _listed_tools(self, api))
        if api.tool_uses and is_used and given.get(api.tool_uses) is None:
            limits[api.tool_uses] = _USES
        tools = list(given.get("tools") or ())
        if (limited := [_limited(entry, api) for entry in tools]) != tools:
            limits["tools"] = limited
        if not limits:
            return self
        reason = f"the budget of the key is reserved for {_USES} uses of a tool"
        rows = [
            Loss(path=f"options.provider_options.{name}", block_type="option", verdict="rewritten", reason=reason)
            for name in limits
        ]
        options = attrs.evolve(self.options, provider_options={**given, **limits})
        return attrs.evolve(self, options=options, losses=(*self.losses, *rows))

    def with_estimate(self, message: Message, services: Services) -> Message:
        """Return an answer with the counts that its service did not report: it reports them at the end."""
        provider = services.registry.provider(self.origin.provider)
        options = attrs.evolve(self.options, model=self.origin.model)
        usage = message.metadata.usage or Usage()
        given, made = usage.input_tokens, usage.output_tokens
        if given is None:
            given = estimate_tokens(provider, self.messages, self.tools, options)
        if made is None or message.metadata.status is not MessageStatus.COMPLETE:
            said = Message(role=Role.USER, content="".join(map(_text_of, message.content)))
            made = max(made or 0, estimate_tokens(provider, [said], (), options))
        usage = attrs.evolve(usage, input_tokens=given, output_tokens=made)
        usage = cost_of(usage, services.model_info(self.origin), message.created_at)
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))


def upstream_request(
    services: Services, key: str, api: ServedApi, route: ModelRoute, inbound: InboundRequest, model: RoutedModel
) -> UpstreamRequest:
    """Return the request to a model.

    Args:
        services: the gateway's services.
        key: the key of the plugin that serves the caller's API.
        api: the caller's API.
        route: the route of the requested name.
        inbound: the caller's request.
        model: the model that will be asked.

    Raises:
        CapabilityError: the request refers to data of another service, or has media URLs that the model does not take.
    """
    can = services.registry.provider(model.provider).capabilities(model.name)
    if (model.provider, can.api) != (key, api.name):
        _refuse_references(inbound, api.references, str(model))
    messages, options, losses = inbound.for_upstream(model.provider, can.api, model.name, can)
    if not services.config.fetch_urls and not can.supports_image_urls:
        _refuse_urls(messages, str(model))
    if route.allow_loss:
        options = attrs.evolve(options, allow_loss=True)
    origin = Origin(model.provider, can.api, model.name)
    target = UpstreamRequest(str(model), origin, messages, inbound.tools, options, losses)
    if route.max_tokens is None or (options.max_tokens or 0) <= route.max_tokens:
        return target
    return target.with_limit(route.max_tokens, f"the gateway allows {route.max_tokens} tokens")


def check_members(inbound: InboundRequest, api: ServedApi, *, limited: bool) -> None:
    """Refuse what would make a request cost or use more than its model and its limit of tokens say.

    Args:
        inbound: the caller's request.
        api: the caller's API.
        limited: True if the caller may not use every model, or has a budget.

    Raises:
        CapabilityError: the request asks for several answers.
        PermissionDeniedError: another model may answer than the requested one.
    """
    for place in api.answer_counts:
        count: Any = inbound.extra
        for name in place.split("."):
            count = count.get(name) if isinstance(count, Mapping) else None
        if count not in (None, 1):
            raise CapabilityError(f"{place}: one answer is returned, so no more can be requested")
    for name in api.other_models if limited else ():
        if inbound.extra.get(name) is not None:
            raise PermissionDeniedError(f"{name}: this key may use the requested model only")


def further_cost(request: UpstreamRequest, api: ServedApi, route: ModelRoute) -> FurtherCost:
    """Return what a request may cost in addition to the standard price of its tokens.

    Args:
        request: the request to the model that will be asked.
        api: the caller's API.
        route: the route of the requested name.
    """
    given = request.options.provider_options
    uses: dict[str, int] = {}
    members = [name for name in api.unpriced if given.get(name) and not (name == "tools" and api.service_tools)]
    for entry, name, tool in _listed_tools(request, api):
        if tool is None:
            members.append(name)
        else:
            most = entry.get(tool.uses, given.get(api.tool_uses))
            uses[tool.unit] = uses.get(tool.unit, 0) + (most if type(most) is int and most > 0 else _USES)
    return FurtherCost(
        tiers=any(given.get(name) is not None for name in api.tiers),
        member=next(iter(members), ""),
        limit=route.unpriced_usd,
        uses=uses,
    )


def _listed_tools(
    request: UpstreamRequest, api: ServedApi
) -> Iterator[tuple[Mapping[str, Any], str, ServiceTool | None]]:
    """Yield the entries of the tools that the service runs, with their names and what is known of their cost."""
    if api.service_tools:
        for given in (*(request.options.provider_options.get("tools") or ()), *_added_tools(request.messages, api)):
            entry = given if isinstance(given, Mapping) else {"type": str(given)}
            kind = entry.get("type")
            for name in [kind] if isinstance(kind, str) else entry:
                yield entry, name, next((tool for tool in api.service_tools if fnmatchcase(name, tool.name)), None)


def _limited(entry: Any, api: ServedApi) -> Any:
    """Return an entry of a request's tools with a limit on its uses, if its tool takes one."""
    name = entry.get("type") if isinstance(entry, Mapping) else None
    for tool in api.service_tools if isinstance(name, str) else ():
        if tool.unit and tool.uses and entry.get(tool.uses) is None and fnmatchcase(str(name), tool.name):
            return {**entry, tool.uses: _USES}
    return entry


def _added_tools(messages: Sequence[Message], api: ServedApi) -> Iterator[Any]:
    """Yield the service's tools that messages bring."""
    for message in messages if api.tool_blocks else ():
        for block in message.content:
            if isinstance(block, OpaqueBlock) and block.kind in api.tool_blocks and isinstance(block.data, Mapping):
                yield from block.data.get("tools") or ()


def needs_estimate(message: Message) -> bool:
    """Return True if an answer lacks a count of tokens, or broke off before its service reported the last one."""
    usage = message.metadata.usage
    counted = usage is not None and usage.input_tokens is not None and usage.output_tokens is not None
    return not counted or message.metadata.status is not MessageStatus.COMPLETE


class AnswerSize:
    """How many characters an answer has: its text, arguments and media."""

    _whole = 0

    def add(self, parts: Iterable[Any]) -> int:
        """Add stream events or blocks; return how many characters a writer needs for them.

        At the end of a block or an answer, some APIs repeat all text.
        """
        size, is_end = 0, False
        for part in parts:
            block = getattr(part, "block", part)
            data = getattr(getattr(block, "source", None), "data", None)
            size += len(getattr(block, "text", None) or getattr(block, "partial_json", None) or data or "")
            if type(block) is ToolUseBlock:
                size += len(block.input_json)
            is_end = is_end or type(part) in _ENDS
        self._whole += size
        return self._whole if is_end else size


def _text_of(block: ContentBlock) -> str:
    if isinstance(block, ToolUseBlock):
        return block.input_json
    text = getattr(block, "text", "")
    return text if isinstance(text, str) else ""


def _refuse_references(inbound: InboundRequest, names: Sequence[str], model: str) -> None:
    for name in names:
        if inbound.extra.get(name) is not None:
            text = f"{name} refers to data that only this API's own service has, and {model} answers"
            raise CapabilityError(f"{text}; send the whole conversation in the request")


def _refuse_urls(messages: Sequence[Message], model: str) -> None:
    for at, message in enumerate(messages):
        for block in message.content:
            inner = block.content if isinstance(block, ToolResultBlock) else (block,)
            for part in inner:
                if isinstance(part, ImageBlock | DocumentBlock | AudioBlock) and part.source.kind == "url":
                    text = f"message {at}: {model} accepts no media URLs, and fetch_urls is off in this gateway"
                    raise CapabilityError(f"{text}; send the data itself")


def ledger_text(losses: Sequence[Loss]) -> str:
    """Return the rows as ASCII JSON; the last one counts those that do not fit."""
    rows: list[dict[str, Any]] = [{"path": row.path, "verdict": row.verdict, "reason": row.reason} for row in losses]
    text = ""
    for kept in range(min(len(rows), 100), -1, -1):
        more: list[dict[str, Any]] = [{"more": len(rows) - kept}] if kept < len(rows) else []
        text = _write_rows(rows[:kept] + more)
        if len(text) <= _HEADER_LIMIT:
            break
    return text


def header_value(text: str) -> bytes:
    """Return a header's value without characters that could end it."""
    if not text.isprintable():
        text = "".join([char if char.isprintable() else " " for char in text])
    return text.encode("latin-1", "replace")
