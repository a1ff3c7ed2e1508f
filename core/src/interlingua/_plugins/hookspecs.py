"""The hook specifications: when each hook is called, and what it may see, return and raise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from interlingua._catalogue import ModelInfo
    from interlingua._plugins.connection import Connection, ConnectionSettings
    from interlingua._plugins.wire import FollowUp, RequestContext, WireChunk, WireRequest, WireResponse
    from interlingua.errors import ProviderError
    from interlingua.types.events import StreamEvent
    from interlingua.types.messages import CostParts, Message
    from interlingua.types.options import ModelCapabilities, RequestOptions
    from interlingua.types.tools import ToolDefinition

PROJECT = "interlingua"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class ProviderHooks:
    """Hooks that exactly one provider implements; other plugins may only wrap them."""

    @hookspec(firstresult=True)
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities | None:
        """Called before routing and before `to_wire`, once for equal options: declare what the model accepts.

        Args:
            model: model name without provider key; it need not be in the catalogue.
            options: options of the request, or None outside a request; `options.api` selects an API.

        Returns:
            The capabilities; for an unknown model the defaults of the provider with `assumed=True`.
        """

    @hookspec(firstresult=True)
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest | None:
        """Called once per request with the projected conversation: write it as bytes.

        Pure and deterministic: no clock, no network, no environment, arguments not changed.

        Args:
            messages: already projected by core: only blocks that the capabilities declare, call ids in the form of
                this API, opaque state of other providers removed, every call followed by its result.
            tools: definitions whose names already match the pattern of this API.
            options: options of this request.

        Returns:
            The request without authentication; `losses` lists what this API alone had to rewrite or drop.

        Raises:
            CapabilityError: an option cannot be expressed in this API and must not be dropped.
        """

    @hookspec(firstresult=True)
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message | None:
        """Called with a complete body whose status is below 400: read it.

        Args:
            response: status, headers, body.
            context: origin, ids and clock; create the message with `context.message(...)`.

        Raises:
            ProviderError: the body is an error inside a 200.
            MalformedResponseError: the body is not what the wire format allows.
        """

    @hookspec(firstresult=True)
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent] | None:
        """Called when a framed stream is open: translate its chunks into events as they arrive.

        Write it as an async generator that awaits only `response_stream` and never yields in a `finally`. When the
        source ends, flush pending events; yield `MessageComplete` only if the service reported that the message is
        complete. If the service reports a failure, yield an `ErrorEvent` last.

        Args:
            response_stream: framed chunks; it ends normally even if the connection broke.
            context: as for `from_wire_response`.
        """

    @hookspec(firstresult=True)
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int | None:
        """Called by routing and budgets: estimate the input tokens of a request without sending it."""

    @hookspec(firstresult=True)
    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        """Called with each whole answer whose status is below 300, before it is read: return what has to follow it.

        Optional: without it every answer is final. Pure. Core waits, sends the request, and calls this with its answer;
        a failed attempt is repeated from here, so that the first request is sent once. If the caller wants a stream and
        the first answer is not one, `to_wire` returns a request with `stream=False`.

        Args:
            response: the answer to the request, or to the last follow-up.
            context: as for `from_wire_response`. The `echo` of a follow-up is added to that of the request.

        Returns:
            The next request, or None if `from_wire_response` can read this answer (also if the work failed).

        Raises:
            ProviderError: the work failed.
        """

    @hookspec(firstresult=True)
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError | None:
        """Called with an answer whose status is 400 or above: return the matching typed error.

        Optional: without it core chooses the error class by status.
        """

    @hookspec(firstresult=True)
    def cost_of(self, message: Message, model: ModelInfo | None) -> CostParts | tuple[CostParts, str] | None:
        """Called with a complete answer that has usage: return its cost if that is not tokens times rate.

        Optional: without it, or if it returns None, core computes the cost from the prices of the catalogue. With a
        `pricing_version` in a pair if the prices are not the catalogue's: `reported` for the service's charge. Pure.

        Args:
            message: the message that the plugin returned; units billed apart from tokens are in `usage.extra_units`.
            model: catalogue entry of the model, or None.
        """

    @hookspec(firstresult=True)
    def connection(self, settings: ConnectionSettings) -> Connection | None:
        """Called when a client is created and when recorded traffic is matched: return how to reach the service.

        Pure: the environment is passed as `settings.environ`; a signer is a function that core calls just before
        sending. Read every entry of `settings.options` here: core warns about options that the hook did not read.
        """

    @hookspec(firstresult=True)
    def models(self) -> Sequence[ModelInfo] | None:
        """Called by listings, aliases and pricing: return the catalogue, read without network access."""

    @hookspec(firstresult=True)
    def model_info(self, model: str) -> ModelInfo | None:
        """Called by pricing with any name of a model that the service takes: return the catalogue's entry.

        Optional: without it, or if it returns None, core finds ids, aliases and dated snapshots. Pure.
        """

    @hookspec(firstresult=True)
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Called for requests that are not conversations; return None for a kind that is not offered.

        Args:
            kind: `models` (the live list; the answer is a list of names), `count_tokens` (of the input; the answer is
                an int), one of the batch kinds (docs/reference/hooks.md), or a kind that only this provider has.
            arguments: arguments by name; of `count_tokens`, `request` is the request that `to_wire` returned.
        """

    @hookspec(firstresult=True)
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Called with the answer to `auxiliary_request` (or one of its lines): return the plain value of that kind."""

    @hookspec(firstresult=True)
    def wire_rules(self) -> Sequence[str] | None:
        """Called once when requests are linted: return the rule files of what the service is known to reject.

        Optional: without it requests are not linted. Pure: read only files of your distribution.

        Returns:
            Contents of TOML files in the format of docs/plugins/how-to, each naming the endpoint it covers; several
            files may cover one endpoint.
        """


class InstrumentScope(Protocol):
    """A context manager that a plugin wraps around one piece of work, for example a tracing span."""

    def __enter__(self) -> object:
        """Become current. Called before each stretch of the work, in its thread and context, never nested."""

    def __exit__(self, *error: object) -> object:
        """Stop being current; the work may continue later. Arguments as for any context manager.

        A stream has one stretch per read; the last one ends with StopIteration or StopAsyncIteration.
        """

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """Called once when the work has ended; not called if a stream or loop was dropped before it started.

        Args:
            result: the result, or the part received before a failure; None if there is neither.
            error: the exception that ended the work, or None.
            facts: facts known at the end; of `chat`, the event `answer.received`.
        """


class PluginHooks:
    """Hooks that any plugin may implement."""

    @hookspec
    def prepare_request(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], RequestOptions] | None:
        """Called before projection, for redaction or policy; each plugin receives the result of the previous plugin.

        The order is the one of pluggy: last registered first. Use `trylast=True` to see the final request.

        Returns:
            The changed triple, or None to leave the request unchanged.
        """

    @hookspec
    def register_commands(self, cli: Any) -> None:
        """Called when the command line is built: add click commands to the group `cli`.

        For plugins that are loaded into a run or installed as plugins. A distribution whose purpose is a command
        declares it as an entry point of the group `interlingua.commands` instead; it is imported when it is run.
        """

    @hookspec
    def observe(self, event: Mapping[str, Any]) -> None:
        """Called with events, for tracing.

        The types are `request.sent`, `answer.received`, `route.decided`, `routing_constraint_failure`,
        `tool_input_invalid` and `prefix.changed`.

        Args:
            event: `{"type": …, …}`; plain values only.
        """

    @hookspec
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentScope | None:
        """Called when a piece of work begins: return a scope to wrap around it, or None.

        Args:
            kind: `chat` (a request with its retries), `execute_tool`, `invoke_agent` (an agent's run), `serve_request`.
            facts: facts known at the beginning; docs/reference/hooks.md lists the facts of each kind. They include
                the contents of messages: the plugin decides which of them it passes on.
        """


PROVIDER_HOOKS = frozenset(name for name in vars(ProviderHooks) if not name.startswith("_"))
PLUGIN_HOOKS = frozenset(name for name in vars(PluginHooks) if not name.startswith("_"))
