"""Every hook a plugin may answer: when it is called and what it may see, return and raise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from interlingua._catalogue import ModelInfo
    from interlingua._plugins.connection import Connection, ConnectionSettings
    from interlingua._plugins.wire import RequestContext, WireChunk, WireRequest, WireResponse
    from interlingua.errors import InterlinguaError, ProviderError
    from interlingua.types.events import StreamEvent
    from interlingua.types.messages import CostParts, Message
    from interlingua.types.options import ModelCapabilities, RequestOptions
    from interlingua.types.tools import ToolDefinition
    from interlingua_serving import InboundRequest, ServeContext, StreamWriter

PROJECT = "interlingua"
CONTRACT_VERSION = 1
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class ProviderHooks:
    """Hooks that exactly one provider answers; other plugins may only wrap them."""

    @hookspec(firstresult=True)
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities | None:
        """Called before routing and before `to_wire`, once for equal options: say what this provider can carry.

        Args:
            model: model name without provider key; it need not be in the catalogue.
            options: the request's options where there are any; `options.api` chooses a wire format.

        Returns:
            The declaration; for an unknown model the provider's defaults with `assumed=True`.
        """

    @hookspec(firstresult=True)
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest | None:
        """Called once per request with the projected conversation: write it as bytes.

        Pure and deterministic: no clock, no network, no environment, arguments not changed.

        Args:
            messages: already projected by core: only blocks the capabilities declare, call ids already in this
                wire's id space, foreign opaque state removed, every call answered right after it.
            tools: definitions with names already in this wire's pattern.
            options: of this request.

        Returns:
            The request without auth; `losses` holds what only this wire had to rewrite or drop.

        Raises:
            CapabilityError: an option cannot be expressed on this wire and may not be dropped.
        """

    @hookspec(firstresult=True)
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message | None:
        """Called when a complete body with a status below 400 arrived: read it.

        Args:
            response: status, headers, body.
            context: origin, ids and clock; make the message with `context.message(...)`.

        Raises:
            ProviderError: the body is an error inside a 200.
            MalformedResponseError: the body is not what the wire format allows.
        """

    @hookspec(firstresult=True)
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent] | None:
        """Called when a framed stream is open: translate its chunks into events as they come.

        An async generator that awaits nothing but `response_stream`, and never yields in a `finally`. When the source
        ends, flush what is known; yield `MessageComplete` only if the wire said that the message is complete. A
        failure the wire reports is yielded as `ErrorEvent`, last.

        Args:
            response_stream: framed chunks; it ends normally also when the connection broke.
            context: as for `from_wire_response`.
        """

    @hookspec(firstresult=True)
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int | None:
        """Called by routing and budgets: estimate the input tokens of a request without sending it."""

    @hookspec(firstresult=True)
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError | None:
        """Called for a status of 400 and above: turn the answer into the right typed error.

        Optional: without it core classifies by status alone.
        """

    @hookspec(firstresult=True)
    def cost_of(self, message: Message, model: ModelInfo | None) -> CostParts | None:
        """Called with a complete answer that has a usage: say what it cost, where that is not tokens times rate.

        Optional: without it, and where it returns None, core computes the cost from the catalogue's prices. Pure.

        Args:
            message: as the adapter made it; units billed apart from tokens are in `usage.extra_units`.
            model: the catalogue's entry of its model, or None.
        """

    @hookspec(firstresult=True)
    def connection(self, settings: ConnectionSettings) -> Connection | None:
        """Called when a client is made and when recorded traffic is matched: say how to reach the service.

        Pure: the environment is given as `settings.environ`; a signer is a function, called just before sending. Look
        at each of `settings.options` here: one that the user gave and the hook does not look at is warned of.
        """

    @hookspec(firstresult=True)
    def models(self) -> Sequence[ModelInfo] | None:
        """Called by listings, aliases and pricing: the catalogue, read without network."""

    @hookspec(firstresult=True)
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Called for what needs an exchange of its own; None: not offered.

        Args:
            kind: `models` (the live list; the answer is a list of names), `count_tokens` (of the input; the answer is
                an int), those of `interlingua._plugins.batches`, or a kind of this provider's own.
            arguments: for `count_tokens` the written request, as `request`.
        """

    @hookspec(firstresult=True)
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Called with the answer to `auxiliary_request`: return plain values for that kind."""

    @hookspec(firstresult=True)
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest | None:
        """Called when somebody made a request in this provider's API: read it.

        Optional, with the next four: without them the API is not served. All are pure; what they may not find out by
        themselves is in the context. What `options` cannot say is kept in `extra`, so that `to_wire` of the same API
        says all that the request said.

        Args:
            request: `api`, path with query, headers with names in lower case (no secret among them), body.
            context: `unseal` gives back what a writer sealed into an answer (`restore_answer`).

        Raises:
            CallerError: the request is not what the API allows; the message is for the caller.
        """

    @hookspec(firstresult=True)
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse | None:
        """Called with a complete answer, whoever made it: write it as this API's body.

        It says the model that was asked for, an id of its own, and its usage. State of other origins is sealed where
        callers send it back (`AnswerState`), else dropped; never written as text.
        """

    @hookspec(firstresult=True)
    def stream_to_wire(self, context: ServeContext) -> StreamWriter | None:
        """Called when an answer is to be streamed: return what writes its events in this API's framing.

        A writer and no generator: the events of one upstream read leave in one write.
        """

    @hookspec(firstresult=True)
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse | None:
        """Called when a request failed before an answer began: return this API's own error body, with its status."""

    @hookspec(firstresult=True)
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        """Called with the answer to a request that is no conversation: write it; None where the API has none.

        Args:
            kind: as for `auxiliary_request`.
            value: what `from_wire_auxiliary` returns for that kind.
            context: as for `to_wire_response`.
        """

    @hookspec(firstresult=True)
    def wire_rules(self) -> Sequence[str] | None:
        """Called when requests are linted, once: what the service is known to refuse, as texts of rule files.

        Optional: without it requests are not linted. Pure: read the files of your own distribution, nothing else.

        Returns:
            Texts in the form that `interlingua_cli.lint.reader` describes, each naming the endpoint it covers; several
            may cover the same one.
        """


class InstrumentScope(Protocol):
    """What a plugin puts around one piece of work, such as a span that is to be the current one."""

    def __enter__(self) -> object:
        """Be current from here: called before each stretch of the work, in its thread and context, never nested."""

    def __exit__(self, *error: object) -> object:
        """Be current no longer: the stretch is over, the work perhaps not; arguments as for any context manager.

        A stream has one stretch per read, left with StopIteration or StopAsyncIteration at its end.
        """

    def end(self, result: Any, error: BaseException | None, facts: Mapping[str, Any]) -> None:
        """Called once, when the work is over; not called where a stream or a loop was dropped before it began.

        Args:
            result: what came of it, or what was received before it failed; None for nothing.
            error: why it failed.
            facts: for `chat` the event `answer.received`.
        """


class PluginHooks:
    """Hooks any plugin may answer."""

    @hookspec
    def prepare_request(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], RequestOptions] | None:
        """Called before projection, one plugin after the other on the result so far: redaction, policy.

        The order is pluggy's: last registered first; what must see the final request says `trylast=True`.

        Returns:
            The changed triple, or None to leave it.
        """

    @hookspec
    def register_commands(self, cli: Any) -> None:
        """Called when the command line is built: add click commands to the group `cli`.

        For plugins that are loaded into a run or installed as plugins. A distribution whose purpose is a command names
        it by an entry point of the group `interlingua.commands` instead, and is imported when it is run.
        """

    @hookspec
    def observe(self, event: Mapping[str, Any]) -> None:
        """Called with events, for tracing.

        They are `request.sent`, `answer.received`, `route.decided`, `routing_constraint_failure`,
        `tool_input_invalid` and `prefix.changed`.

        Args:
            event: `{"type": …, …}`; plain values only.
        """

    @hookspec
    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentScope | None:
        """Called when a piece of work begins: return what is to be put around it, None for nothing.

        Args:
            kind: `chat` (a request with its retries), `execute_tool`, `invoke_agent` (an agent's run), `serve_request`.
            facts: what is known at the beginning; docs/reference/hooks.md lists them for each kind. They are the
                values themselves, contents included: a plugin decides what of them it passes on.
        """


PROVIDER_HOOKS = frozenset(name for name in vars(ProviderHooks) if not name.startswith("_"))
PLUGIN_HOOKS = frozenset(name for name in vars(PluginHooks) if not name.startswith("_"))
