"""One provider's hooks, typed and guarded: a plugin's mistake becomes a typed error."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from interlingua._catalogue import ModelInfo, find_model
from interlingua._plugins.connection import Connection, ConnectionSettings
from interlingua._plugins.errors import describe_html, error_for_status
from interlingua._plugins.wire import FollowUp, RequestContext, WireChunk, WireRequest, WireResponse
from interlingua.errors import CapabilityError, InterlinguaError, MalformedResponseError, PluginError, ProviderError
from interlingua.types.messages import Loss, Message, Origin
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from interlingua.types.events import StreamEvent  # an answer that is not streamed has none

E = TypeVar("E", bound=InterlinguaError)
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""Exceptions of a plugin that reads an answer which is not valid in its API."""


@attrs.frozen(kw_only=True, eq=False)
class ProjectionTarget:
    """The model that a conversation is projected for. Compared by identity: equal facts share one object."""

    provider: str
    model: str
    capabilities: ModelCapabilities
    refused_thinking: bool = False  # the service refused the thinking of earlier answers in this very request
    thinking_as_text: bool = False  # the caller allows thinking of other providers to be converted to text

    def takes_citations_of(self, origin: Origin | None) -> bool:
        """Return True if citations of this origin may be sent back: they have a meaning in their own API only."""
        if origin is None or origin.provider != self.provider:
            return False
        return self.capabilities.supports_citations and origin.api in ("", self.capabilities.api)

    def takes_state_of(self, origin: Origin | None) -> bool:
        """Return True if opaque state of this origin may be sent back, as `thinking_scope` declares."""
        if origin is None or origin.provider != self.provider:
            return False
        scope = self.capabilities.thinking_scope
        if scope == "provider":
            return True
        if origin.api != self.capabilities.api:
            return False
        # a dated snapshot of a model counts as that model
        return scope == "api" or (scope == "model" and _SNAPSHOT.sub("", origin.model) == _SNAPSHOT.sub("", self.model))


_SNAPSHOT = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_log = logging.getLogger("interlingua")


@attrs.frozen(kw_only=True)
class Distribution:
    """The distribution that a provider came from, for messages to people."""

    name: str = "?"
    version: str = "?"


class _ReadOptions(Mapping[str, Any]):
    """Connection options that remember which of them a plugin read."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        self.read.update(self._given)
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


class Provider:
    """One provider: its plugin's hooks behind typed methods."""

    def __init__(
        self, key: str, hook: Any, distribution: Distribution | None = None, prepare: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self.key = key
        self.distribution = distribution or Distribution()
        self._hook = hook
        self._prepare = prepare
        self.cost_of: Callable[..., Any] = getattr(hook, "cost_of", lambda **_: None)
        later = getattr(hook, "follow_up", None)
        self.answers_later = later is not None and any(not each.wrapper for each in later.get_hookimpls())
        self._targets: dict[tuple[str, ModelCapabilities, bool], ProjectionTarget] = {}
        self._catalogue: tuple[ModelInfo, ...] | None = None
        self.prices: tuple[ModelInfo, ...] = ()  # the user's

    def __repr__(self) -> str:
        return f"<Provider {self.key!r} from {self.distribution.name} {self.distribution.version}>"

    def capabilities(self, model: str, options: RequestOptions | None = None) -> ModelCapabilities:
        """Return the capabilities of a model, with the values that the caller asserts in the options.

        Raises:
            CapabilityError: the options select an API that the provider does not have.
        """
        found: ModelCapabilities = self.call_hook("capabilities", model=model, options=options)
        if options is not None and options.api is not None and found.api not in ("", options.api):
            text = f"no API {options.api!r}; available: {found.api}"
            raise CapabilityError(text, path="options.api", provider=self.key, model=model)
        if options is not None and options.capabilities:
            found = attrs.evolve(found, **options.capabilities)
        return found

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the catalogue, read once, and the further models that the user has priced."""
        if self._catalogue is None:
            shipped = tuple(self.call_hook("models", optional=True) or ())
            listed = {info.id for info in shipped}
            self._catalogue = (*shipped, *(info for info in self.prices if info.id not in listed))
        return self._catalogue

    def model(self, name: str) -> ModelInfo | None:
        """Return the catalogue entry of a model by any of its names, with the user's prices if there are any."""
        found: ModelInfo | None = self.call_hook("model_info", optional=True, model=name)
        found = found or find_model(self.models(), name)
        own = find_model(self.prices, name) or (found and find_model(self.prices, found.id))
        if found is None or own is None or not own.prices:
            return found
        return attrs.evolve(found, prices=own.prices, pricing_version=own.pricing_version)

    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return how to reach the service; log a warning about options that the plugin did not read."""
        options = _ReadOptions(settings.options)
        connection: Connection = self.call_hook("connection", settings=attrs.evolve(settings, options=options))
        if unread := sorted(settings.options.keys() - options.read):
            text = "provider %r does not use the connection option(s) %s; it reads %s"
            _log.warning(text, self.key, ", ".join(unread), ", ".join(sorted(options.read)) or "no options")
        return connection

    def prepare(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], RequestOptions]:
        """Apply the `prepare_request` hook of every plugin, one after the other."""
        for caller in self._prepare:
            for changed in caller(messages=messages, tools=tools, options=options):
                messages, tools, options = changed
        return messages, tools, options

    def target(self, options: RequestOptions) -> ProjectionTarget:
        """Return the projection target of these options; equal options return the same object."""
        capabilities = self.capabilities(options.model, options)
        key = (options.model, capabilities, options.thinking_as_text)
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = ProjectionTarget(
                provider=self.key,
                model=options.model,
                capabilities=capabilities,
                thinking_as_text=options.thinking_as_text,
            )
        return found

    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> int:
        """Estimate the input tokens of projected messages."""
        return int(self.call_hook("estimate_input_tokens", messages=messages, tools=tools, options=options))

    def log_losses(self, losses: Sequence[Loss], session_id: str, logged: set[tuple[str, ...]]) -> None:
        """Log losses: lost content as a WARNING, another form as DEBUG (format.md, Projection and losses).

        Causes in `logged`, which were logged before for this conversation, are not logged again; it is extended here.

        Raises:
            CapabilityError: a critical block cannot be sent.
        """
        for loss in losses:
            cause = (self.key, loss.block_type, loss.reason)
            if cause in logged:
                continue
            logged.add(cause)
            fields = {
                "session_id": session_id,
                "message_id": loss.message_id,
                "block_type": loss.block_type,
                "adapter": self.key,
                "reason": loss.reason,
            }
            level, what = (logging.WARNING, "not sent") if loss.severity == "content" else (logging.DEBUG, "changed")
            _log.log(
                level, f"{what} for {self.key}: {loss.block_type} at {loss.path}: %(reason)s", fields, extra=fields
            )
        if blocked := next((loss for loss in losses if loss.verdict == "blocked"), None):
            text = f"a block marked critical cannot be sent: {blocked.reason}"
            raise CapabilityError(text, path=blocked.path, provider=self.key)

    @cached_property
    def wire_rules(self) -> tuple[str, ...]:
        """The rule files of the plugin for the linter: requests that the service is known to reject."""
        return tuple(self.call_hook("wire_rules", optional=True) or ())

    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a complete body.

        Raises:
            ProviderError: the body is an error inside a 200.
            MalformedResponseError: the body is not valid in the API.
        """
        message: Message = self._read("from_wire_response", response, context)
        return message

    def follow_up(self, response: WireResponse, context: RequestContext) -> FollowUp | None:
        """Return what has to follow a whole answer, or None if it is final; raises as `from_wire_response`."""
        found: FollowUp | None = self._read("follow_up", response, context, optional=True)
        return found

    def _read(self, hook: str, response: WireResponse, context: RequestContext, *, optional: bool = False) -> Any:
        try:
            return self.call_hook(hook, optional=optional, response=response, context=context)
        except InterlinguaError as error:
            self._annotate_error(error, context, response)
            raise
        except UNREADABLE as error:
            text = f"the answer is not valid in this API: {type(error).__name__}: {error}"
            raise self._annotate_error(MalformedResponseError(text), context, response) from error

    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Return the events of a framed stream, translated by the plugin."""
        stream: AsyncIterator[StreamEvent]
        stream = self.call_hook("stream_response", response_stream=response_stream, context=context)
        if not hasattr(stream, "__anext__"):
            raise PluginError(f"stream_response of {self.key!r} must be an async generator", provider=self.key)
        return stream

    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        """Return the typed error of a failed answer: the one of the plugin, else one chosen by status."""
        error: ProviderError | None = None
        try:
            error = self.call_hook("from_wire_error", optional=True, response=response, context=context)
        except UNREADABLE as cause:
            _log.debug("from_wire_error of %s could not read the body: %s", self.key, cause)
        return self._annotate_error(error or error_for_status(response), context, response)

    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest:
        """Write a request that is not a conversation, such as `models` or `count_tokens`.

        Raises:
            CapabilityError: the provider does not offer this kind.
        """
        request: WireRequest | None = self.call_hook("auxiliary_request", optional=True, kind=kind, arguments=arguments)
        if request is None:
            raise CapabilityError(f"provider {self.key!r} does not offer {kind!r}", provider=self.key)
        return request

    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the answer to an auxiliary request.

        Raises:
            MalformedResponseError: the answer is not valid in the API.
        """
        try:
            return self.call_hook("from_wire_auxiliary", optional=True, kind=kind, response=response)
        except UNREADABLE as error:
            text = f"the answer to {kind!r} cannot be read: {error}"
            raise MalformedResponseError(text, provider=self.key) from error

    def call_hook(self, name: str, *, optional: bool = False, **arguments: Any) -> Any:
        """Call a hook of the plugin by name; return None if the plugin lacks an `optional` hook.

        Raises:
            PluginError: the hook returned nothing, or needs a module that is not installed.
        """
        try:
            answer = getattr(self._hook, name)(**arguments)
        except ModuleNotFoundError as error:
            needed = (error.name or "").partition(".")[0].replace("_", "-")
            text = f"provider {self.key!r}: the hook {name} failed: {error}; pip install {needed}"
            raise PluginError(text, provider=self.key) from error
        if answer is None and not optional:
            raise PluginError(f"provider {self.key!r}: the hook {name} returned nothing", provider=self.key)
        return answer

    def _annotate_error(self, error: E, context: RequestContext, response: WireResponse) -> E:
        """Fill in provider, model, status and body, unless the plugin did."""
        error.provider = error.provider or self.key
        error.model = error.model or context.origin.model
        error.status = error.status or response.status
        error.body = response.body if error.body is None else error.body
        if response.body.lstrip().startswith(b"<"):
            error.message = describe_html(response) or error.message
        return error
