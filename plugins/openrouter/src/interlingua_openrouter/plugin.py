"""The provider object for OpenRouter: the shared format's hooks, its connection, reported costs and rules."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import attrs

from interlingua.errors import ProviderError
from interlingua.plugins import (
    EMPTY,
    Connection,
    ConnectionSettings,
    Loss,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    bearer_auth,
    hookimpl,
    loads,
    option_loss,
)
from interlingua.types import CostParts, Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition
from interlingua_anthropic.claude_thinking import BEGUN_WITHOUT, THINKING, is_forced, turn_in_progress
from interlingua_anthropic.claude_tools import ECHO, fit_tools, rename_calls, restore_events, restore_message
from interlingua_chat_completions.dialect import API, ENDPOINT
from interlingua_chat_completions.provider import ChatProvider, from_wire_model_list, list_models_request, wire_rules
from interlingua_openrouter.costs import charge_of, dollars, generation_id
from interlingua_openrouter.dialect import DIALECT, capabilities_for, dialect_of, facts_of_claude, is_claude, models

_BASE_URL = "https://openrouter.ai/api/v1"
_DECIDERS = re.compile(r"~?typesafe/|cloudflare/clef|google/gemini-decision")
_WITH_DECISIONS = ("provider", "session_id", "trace", "user")  # fields of a request for decisions
_HEADERS = {
    "referer": "http-referer",
    "title": "x-openrouter-title",
    "categories": "x-openrouter-categories",
    "metadata": "x-openrouter-metadata",
}


def _fit_options(messages: Sequence[Message], options: RequestOptions) -> tuple[RequestOptions, list[Loss]]:
    """Return the options that Claude takes, as Anthropic's own plugin sends them (WIRE.md, Upstream rules)."""
    losses: list[Loss] = []
    stop = [text for text in options.stop if text.strip()]
    if len(stop) < len(options.stop):
        losses.append(option_loss("stop", "rewritten", "a stop sequence of white space alone is refused here"))
        options = attrs.evolve(options, stop=stop)
    asked = [name for name in ("thinking", "thinking_budget", "effort") if getattr(options, name) not in (None, "none")]
    accepted = facts_of_claude(options.model).get("thinking", ("enabled",))
    budgeted = "adaptive" not in accepted or (options.thinking_budget is not None and "enabled" in accepted)
    if not asked or options.thinking is False or not budgeted:
        return options, losses
    turn = turn_in_progress(messages)
    if is_forced(options):
        reason = "a forced tool choice is refused together with it"
    elif turn and type(messages[turn[0]].content[0]) not in THINKING:
        reason = BEGUN_WITHOUT
    else:
        return options, losses
    losses.append(option_loss(asked[0], "dropped", reason))
    return attrs.evolve(options, thinking=None, thinking_budget=None, effort=None), losses


def decision_request(request: WireRequest, questions: Sequence[Mapping[str, Any]]) -> WireRequest | None:
    """Return the request for decisions; None for a model that holds conversations (WIRE.md, Decisions)."""
    if not _DECIDERS.match(loads(request.body)["model"]):
        return None
    from interlingua_chat_completions import decisions  # noqa: PLC0415  few requests decide

    kinds = ("yes_no", "choice", "scale", "locate")
    return decisions.decision_request(request, questions, kinds=kinds, images=True, extras=_WITH_DECISIONS)


class _OpenRouter(ChatProvider):
    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write a request; with a response schema only upstreams that enforce it are used (WIRE.md, Request)."""
        extra = options.provider_options
        preferences = extra.get("provider", EMPTY)
        if options.response_schema is not None and isinstance(preferences, Mapping):
            preferences = {"require_parameters": True, **preferences}
            options = attrs.evolve(options, provider_options={**extra, "provider": preferences})
        if not is_claude(options.model):
            plain: WireRequest = super().to_wire(messages, tools, options)
            return plain
        options, lost = _fit_options(messages, options)
        fitted = fit_tools(tools)
        written: WireRequest = super().to_wire(rename_calls(messages, fitted.names), fitted.tools, options)
        echo = {**written.echo, ECHO: fitted.names} if fitted.names else written.echo
        return attrs.evolve(written, losses=(*lost, *fitted.losses, *written.losses), echo=echo)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a whole answer; Claude's calls have the tools' own property names again."""
        message: Message = super().from_wire_response(response, context)
        return restore_message(message, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Read a stream; Claude's calls have the tools' own property names again."""
        events: AsyncIterator[StreamEvent] = super().stream_response(response_stream, context)
        return restore_events(events, context)

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_for(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def cost_of(self, message: Message) -> tuple[CostParts, str] | None:
        return charge_of(message)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return the connection; each option is sent as a header if it is set (WIRE.md, Connection).

        `referer` (the app's URL), `title` (its name) and `categories` (comma-separated) identify the application;
        `metadata` asks for `openrouter_metadata` in the answer.
        """
        environ, options = settings.environ, settings.options
        key = settings.api_key or environ.get("OPENROUTER_API_KEY")
        base = settings.base_url or environ.get("OPENROUTER_BASE_URL") or _BASE_URL
        return Connection(
            base_url=base.rstrip("/"),
            auth=bearer_auth(key),
            headers={header: str(options[name]) for name, header in _HEADERS.items() if options.get(name)},
            env_vars=("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
            has_key=bool(key) or base != _BASE_URL,
            hosts=("openrouter.ai",),
            endpoints={API: ENDPOINT},
        )

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        """Read a failed answer; a 402 may be retried only if it has a delay."""
        from interlingua_chat_completions.errors import from_wire_error  # noqa: PLC0415  with the first failure

        error = from_wire_error(response, DIALECT, context)
        # as Anthropic words it, in the upstream's body
        error.refuses_thinking = b"invalid `signature` in `thinking` block" in response.body.lower()
        if response.status == 402:
            error.retryable = error.retry_after is not None
        return error

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Build the request for `models`, `decide`, or `generation_cost` (`id` of the generation, or `message`).

        None if there is no id.
        """
        if kind == "decide":
            return decision_request(arguments["request"], arguments["questions"])
        if kind != "generation_cost":
            return list_models_request(kind)
        answer = arguments.get("message")
        found = arguments.get("id") or (generation_id(answer) if isinstance(answer, Message) else None)
        if not found:
            return None
        return WireRequest(method="GET", path=f"/generation?id={quote(str(found), safe='')}", body=b"", api=API)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Return a list of model ids for `models`; for `generation_cost` US dollars as a Decimal, or None."""
        if kind == "decide":
            from interlingua_chat_completions.decisions import read_decisions  # noqa: PLC0415  few requests decide

            return read_decisions(response)
        if kind == "generation_cost":
            return dollars(loads(response.body)["data"].get("total_cost"))
        return from_wire_model_list(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        own = files("interlingua_openrouter").joinpath("lint.toml").read_text("utf-8")
        return [*wire_rules("format", "pairing"), own]


plugin = _OpenRouter("openrouter", dialect_of)
