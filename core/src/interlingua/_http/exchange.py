"""One request and the attempts to get it answered, over any transport."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from interlingua._http.body import ReplyBody
from interlingua._http.io import LAST_SECONDS
from interlingua._http.signing import SignedExchange
from interlingua._http.state import ClientState, MessagesInput
from interlingua._http.transports import IO
from interlingua._json import EMPTY
from interlingua._plugins.wire import FollowUp, RequestContext, WireRequest, WireResponse
from interlingua._request.prepare import RequestDraft, read_messages, read_options
from interlingua._response.finalize import FAILED, AnswerFinalizer, complete_error
from interlingua.errors import (
    APIConnectionError,
    APITimeoutError,
    CallerError,
    CapabilityError,
    InterlinguaError,
    ProviderError,
)
from interlingua.transport import TimeLimits, Timeout
from interlingua.types.messages import Loss, Message, MessageStatus, Origin, RoutingDecision

if TYPE_CHECKING:
    from interlingua._http.retry import Retry
    from interlingua._request.media import Fetched
    from interlingua._response.stream import StreamReader
    from interlingua.fallback import ModelChain
    from interlingua.limits import Turn

_log = logging.getLogger("interlingua")
_T = TypeVar("_T")
_BYTES_PER_TOKEN = 4  # to estimate the tokens of a request
# messages, or characters; writing that many takes some 10 ms, or 1 ms, which other tasks of an event loop would wait
LONG, LARGE = 500, 250_000


class Exchange(SignedExchange):
    """One request and the attempts to get it answered.

    Attributes:
        request: the conversation, tools and options as they are sent; `request.wire` once it has been built.
        plan: how its typed answer is asked for and read; None without `output=`.
        chain: the models of its call, if there are several.
        model: canonical id of the one of them that is asked.
        headers: response headers of the last attempt that was answered, with names in lower case.
    """

    def __init__(
        self,
        state: ClientState,
        messages: MessagesInput,
        options: Mapping[str, Any],
        *,
        stream: bool = False,
        output: Any = None,
        chain: ModelChain | None = None,
    ) -> None:
        """Read a caller's arguments; `build` writes the request. With several models, it is for the next of a chain."""
        if chain is None:
            chain = state.chain(options.get("model"), (messages, options, stream, output))
        self.chain = chain
        while True:
            model = None if chain is None else chain.next()
            try:
                self._read(state, messages, options if model is None else {**options, "model": model}, stream, output)
                return
            except CapabilityError as error:
                if chain is None or model is None or not chain.moves(model, error):
                    raise
                chain.leave(model, error)

    def _read(
        self, state: ClientState, messages: MessagesInput, options: Mapping[str, Any], stream: bool, output: Any
    ) -> None:
        self._options, given, chain = options, dict(options), self.chain
        asked = given.pop("model", None)
        resolved = state.resolve_model(asked)
        for name, value in state.defaults.items():
            if given.get(name) is None:
                given[name] = value
        self.plan: Any = None
        self.headers: Mapping[str, str] = EMPTY
        self._fetched: Mapping[str, Fetched] | None = None
        losses = tuple[Loss, ...]()
        if output is not None:
            self.plan = plan = state.plan_output(output, options, stream=stream)
            messages, losses = plan.messages(read_messages(messages)), plan.losses
            given |= {**plan.options, "tools": plan.tools}
        tools, routing, team_id = given.pop("tools", ()), given.pop("routing", None), given.pop("team_id", None)
        if routing is not None and type(routing) is not RoutingDecision:
            raise CallerError(f"routing must be a RoutingDecision, not {type(routing).__name__}")
        fixed = {"model": resolved.id.name, "stream": stream, "user_id": given.pop("user_id", None)}
        settings = state.request_settings(resolved.provider, given.get("api"))
        read = read_options(given, settings, state.headers, **fixed)
        if chain is not None and routing is None and chain.is_default:
            routing = state.resolve_model(None).routing
        routing = routing or resolved.routing
        if chain is not None:
            routing, losses = chain.routing(routing, asked), losses + chain.losses(asked)
            self.model = asked
        self.request = RequestDraft(
            resolved.provider, messages, tools, read, routing, team_id, losses, state.conversations
        )
        self._begin(state)

    @classmethod
    def resume(cls, state: ClientState, message: Message) -> Exchange:
        """Return the exchange that takes up what has to follow a message."""
        from interlingua._http.pending import ResumedRequest  # noqa: PLC0415  few answers come later

        provider = state.resolve_provider(message.metadata.provider)
        made = cls.__new__(cls)
        made.plan, made.headers, made._fetched, made.chain = None, EMPTY, None, None
        settings = state.request_settings(provider, message.metadata.api)
        made.request = request = ResumedRequest(provider, message, settings, state.headers)
        made._begin(state)
        made._take(request.follow_up)
        return made

    def _begin(self, state: ClientState) -> None:
        request = self.request
        self._state, self._provider, self._api = state, request.provider, request.options.api
        self._model_info = partial(state.model_info, request.provider, request.options.model)
        # what decides which of the provider's modules take part
        self._kind = (request.provider.key, request.options.api, request.options.stream)
        self.response = AnswerFinalizer(request, state.registry, self._model_info, self.chain)
        self.response.typed = self.plan is not None and not request.options.stream
        self.stopped = False  # the caller cancelled: nothing more is sent
        self.limits_before: TimeLimits | None = None  # of uploads, or of the attempts at another model
        self._turn: Turn | None = None  # under the client's own limits
        self._limiter = state.limiter(f"{request.provider.key}:{request.options.model}")
        self._next: FollowUp | None = None  # what is sent now, instead of the request
        self._tries = 0  # how often it was sent
        self._upload_again = ""  # "next" until the files that are gone are uploaded, then "done"
        self._announced = False  # by the body that is read, so that it continues that body

    @property
    def instrument(self) -> AbstractContextManager[None]:
        """The context of plugins' instruments, created when it is first entered; again at every later stretch."""
        return self._enter_instruments() if self._state.registry.plugins else nullcontext()

    @contextmanager
    def _enter_instruments(self) -> Iterator[None]:
        request, response = self.request, self.response
        if not response.begun:
            response.begun = time.monotonic()
            facts = {
                "provider": request.provider.key,
                "model": request.options.model,
                "base_url": self.connection.base_url,
                "session_id": request.messages[-1].session_id,
                "messages": request.messages,
                "tools": request.tools,
                "options": request.options,
                "typed": self.plan is not None,
            }
            response.activity = self._state.registry.instrument("chat", facts)
        with response.activity or nullcontext():
            try:
                yield
            except BaseException as error:
                if not (isinstance(error, InterlinguaError) and response.attempts):  # else `retry_delay` decides
                    response.report(None, error)
                raise

    async def build_first(self, io: IO) -> Exchange:
        """Build the request, or the one to the next model of the call that can take it; return its exchange."""
        exchange = self
        while True:
            try:
                with exchange.instrument:
                    return await exchange.build(io)
            except InterlinguaError as error:
                exchange = await exchange.after_failure(io, error)

    async def build(self, io: IO) -> Exchange:
        """Fetch images by URL and write the bytes of the request."""
        await io.prepare()
        fetched: dict[str, Fetched] = {}
        if urls := self.request.urls:
            from interlingua._http.fetching import fetch_image  # noqa: PLC0415  few requests fetch

            state = self._state
            for url in urls:
                fetched[url] = await fetch_image(url, io, state.timeout, state.max_response_bytes, state.fetch)
        self._fetched = fetched
        if self._state.uploads is not None and self._next is None:
            self.limits_before = self.limits_before or TimeLimits(self._state.timeout)  # a call's time has its uploads
            self.request.uploaded = await self._state.uploads.upload(self, io)
        await self._load(io, self.write, fetched)
        return self

    def media(self) -> list[tuple[str, Any]]:
        """Return the media that the target takes, each with its place in the conversation."""
        return self.request.media(self._fetched, self._state.workspace)

    async def ask(self, io: IO, kind: str, arguments: Mapping[str, Any], limits: TimeLimits | None = None) -> Any:
        """Ask this provider for something beside the request, by default within the time of the call."""
        asked = AuxiliaryExchange(self._state, self._provider.key, kind, arguments, limits or self.limits_before)
        return await asked.run_attempts(io, asked.attempt)

    @property
    def retry(self) -> Retry:
        """The client's policy."""
        return self._state.retry

    def write(self, fetched: Mapping[str, Fetched] | None) -> WireRequest:
        """Write the request from image URLs and their contents; None builds a preview with the URLs."""
        state = self._state
        return self.request.build(
            fetched,
            workspace=state.workspace,
            watch=state.prefix_watch,
            model_info=self._model_info,
            models_for=partial(state.models_for, self._provider),
        )

    async def attempt(self, io: IO) -> Message:
        """Send the request once, and what follows it, and return the answer."""
        body = await (self.open if self._provider.answers_later else self.send)(io)
        self.headers = body.headers
        if self._next is not None and body.status < FAILED:
            await self.read_usage(io)
            if self._sent.stream:  # of a resumed stream
                reader = await self.open_reader(body, io)
                reader.feed((await body.read()).body)
                while self.take_announced(reader):
                    body = await self.continue_stream(reader, io)
                    reader.feed((await body.read()).body)
                reader.end()
                return reader.message()
        return await self._load(io, self.response.read, await body.read())

    async def start(self, io: IO) -> Message:
        """Send the request once and return the answer, or a PARTIAL message that holds what has to follow."""
        response = await (await self.send(io)).read()
        if await self.follow(io, response, wait=False) and (pending := self.pending_message(MessageStatus.PARTIAL)):
            self.response.report(pending)
            return pending
        return await self._load(io, self.response.read, response)

    async def open(self, io: IO) -> ReplyBody:
        """Send the request and what follows it; return the reply that is streamed, or that nothing follows."""
        while True:
            body = await self.send(io)
            if self._sent.stream or not self._provider.answers_later or not await self.follow(io, await body.read()):
                return body

    async def follow(self, io: IO, response: WireResponse, *, wait: bool = True) -> bool:
        """Wait for what has to follow a whole answer, so that `send` sends it; False if the answer is final.

        Raises:
            APITimeoutError: the wait is longer than what is left of the time.
        """
        if response.status >= FAILED:
            return False
        context = attrs.evolve(self.request.context, response_headers=response.headers)
        found = await self._load(io, self._provider.follow_up, response, context)
        if found is None:
            return False
        self._take(found)
        if wait:
            left = self._limits.left()
            if left is not None and found.after >= left:
                text = "the service has not finished, and the time of the call ends before it can be asked again"
                raise APITimeoutError(text, retryable=False)
            await io.sleep(found.after)
            if self.stopped:
                raise APIConnectionError("the caller cancelled", retryable=False)
        return True

    def take_announced(self, reader: StreamReader) -> bool:
        """Take what a stream has announced to follow; True if that continues it should its body end here."""
        if (found := reader.take_follow_up()) is not None:
            self._take(found)
            self._announced = True
        return self._announced and not reader.complete

    async def continue_stream(self, reader: StreamReader, io: IO) -> ReplyBody:
        """Send what continues a stream, and return the reply whose body is read next.

        Raises:
            ProviderError: the answer is a failure.
        """
        self._announced = False
        body = await self.send(io)
        if body.status >= FAILED:
            await io.load(self.response.read, await body.read())
        reader.begin_body()
        return body

    def _take(self, follow_up: FollowUp) -> None:
        """Send this from now on."""
        from interlingua._http.pending import pack_follow_up  # noqa: PLC0415  few answers come later

        self._next, self._tries, self._replaced = follow_up, 0, False
        context = self.request.context
        if echo := follow_up.request.echo:
            self.request.context = context = attrs.evolve(context, echo={**context.echo, **echo})
        self.response.follow_up = pack_follow_up(follow_up, context)

    async def read_usage(self, io: IO) -> None:
        """Ask for the usage of an answer that is complete, if it is in another request."""
        if self._next is None or self._next.usage is None:
            return
        try:
            reply = await self._open(self._next.usage, io, self._limits)
            read = self._provider.from_wire_response if reply.status < FAILED else self._provider.from_wire_error
            answer = read(await reply.read(), self.request.context)
            if isinstance(answer, InterlinguaError):
                raise answer
            self.response.usage = answer.metadata.usage
        except InterlinguaError as error:  # the answer is there, and paid for
            _log.warning("the usage of an answer of %s could not be read: %s", self._provider.key, error)

    async def leave(self, io: IO, error: BaseException | None = None) -> None:
        """End the work at the service if the caller left or a time limit passed; other errors hold what follows."""
        if isinstance(error, InterlinguaError) and error.partial is None:
            error.partial = self.pending_message(MessageStatus.ERROR)
        follow_up = self._next
        wanted = isinstance(error, InterlinguaError) and not isinstance(error, APITimeoutError) and not self.stopped
        if follow_up is None or follow_up.cancel is None or wanted:
            return
        self._next = None
        with suppress(Exception):  # it may have ended by itself, and the caller's own error matters more
            await io.finish(self._cancel(io, follow_up.cancel))

    async def _cancel(self, io: IO, request: WireRequest) -> None:
        await (await self._open(request, io, TimeLimits(Timeout(total=LAST_SECONDS)))).read()

    async def _open(self, request: WireRequest, io: IO, limits: TimeLimits) -> ReplyBody:
        signed = await self._sign(request, self.request.options.headers, io, limits, follows=True)
        return ReplyBody(await io.open(signed, limits), limits, self._state.max_response_bytes)

    def pending_message(self, status: MessageStatus) -> Message | None:
        """Return an empty message that holds what has to follow, or None if nothing does."""
        if self._next is None:
            return None
        return self.response.finalize(self.request.context.message([], stop_reason=None, status=status))

    async def send(self, io: IO) -> ReplyBody:
        """Begin the next attempt, signed now, and return its reply when the headers have arrived."""
        response, request, state = self.response, self.request, self._state
        if self._upload_again == "next":
            self._upload_again = "done"
            request.begin_again()
            await self.build(io)
        if self._limiter is not None and self._turn is None and self._next is None:
            most, chain = request.options.max_tokens or 0, None if response.attempts else self.chain
            rested = chain is not None and chain.prefers_other(self.model)
            self._turn = await self._limiter.acquire(io, len(request.wire.body) / _BYTES_PER_TOKEN + most)
            if chain is not None and not rested and chain.prefers_other(self.model):
                from interlingua.fallback import ModelRestsError  # noqa: PLC0415  few calls have several models

                raise ModelRestsError("by the time of this request the model rested", retryable=False)
        self._tries += 1
        if not response.attempts:  # the time of a call counts from its first attempt
            self._limits = self.limits_before or TimeLimits(state.timeout)
            response.request_id_headers = self.connection.request_id_headers
        if not response.attempts or self._next is None or self._tries > 1:  # a follow-up is not an attempt
            response.attempts += 1
            response.started = time.monotonic()
        self._sent, follows = (request.wire, False) if self._next is None else (self._next.request, True)
        if self._provider.answers_later:
            request.context = attrs.evolve(request.context, request=self._sent)
        signed = await self._sign(self._sent, request.options.headers, io, self._limits, follows=follows)
        response.sent = signed.headers
        if response.activity is not None or state.registry.observes:
            response.url = signed.url.partition("?")[0]  # a query may hold a key
        if state.registry.observes:
            event = {"session_id": request.context.session_id, "provider": request.provider.key, "url": response.url}
            sent = {"model": request.options.model, "attempt": response.attempts, "bytes": len(signed.body)}
            state.registry.observe({"type": "request.sent", **event, **sent})
        reply = await io.open(signed, self._limits)
        _log.debug("%s answered with HTTP %d", request.provider.key, reply.status)
        if self._limiter is not None:
            self._limiter.note_headers(reply.headers)
        return ReplyBody(reply, self._limits, state.max_response_bytes)

    def end_turn(self, answer: Message | None = None) -> None:
        """Let another request go, under the client's own limits; the answer tells how many tokens this one took."""
        turn, self._turn = self._turn, None
        if turn is not None and self._limiter is not None:
            usage = None if answer is None else answer.metadata.usage
            self._limiter.release(turn, usage.buckets().total if usage and usage.input_tokens is not None else None)

    async def open_reader(self, body: ReplyBody, io: IO) -> StreamReader:
        """Return the reader of a streamed answer.

        Raises:
            ProviderError: the answer is a failure.
        """
        from interlingua._response.stream import StreamReader  # noqa: PLC0415  a whole answer needs none

        if body.status >= FAILED:
            await io.load(self.response.read, await body.read())
        answer = (self.connection.framing, body.status, body.headers, self._state.max_response_bytes)
        return await self._load(io, StreamReader, self.response, *answer)

    def note_answer(self, answer: object) -> None:
        """Note that the service has answered, or that its stream has started."""
        if isinstance(answer, Message):
            self.end_turn(answer)
        if self.chain is not None:
            self.chain.health.note(self.model, None)

    def retry_delay(self, error: InterlinguaError) -> float:
        """Return the seconds to wait before the next attempt, or raise the error again if there must be none."""
        error.provider = error.provider or self.request.provider.key
        error.model = error.model or self.request.options.model
        if self.chain is not None:
            self.chain.health.note(self.model, error)
        if self._replace_secret(error) or self._drop_thinking(error) or self._forget_uploads(error):
            return 0.0
        attempts = self.response.attempts
        delay = self._state.retry.delay(error, self._tries - self._replaced)
        if self._next is not None and isinstance(error, ProviderError) and (error.status or FAILED) < FAILED:
            delay = None  # the work failed, and asking again does not change that
        if self.chain is not None and self.chain.prefers_other(self.model):
            delay = None  # while it rests, another model answers
        left = None if delay is None or not attempts else self._limits.left()
        if delay is None or (left is not None and delay >= left):
            self.response.report(error.partial, error)
            raise _without_frames(error)
        _log.info("attempt %d failed (%s); again in %.2f s", attempts, type(error).__name__, delay)
        return delay

    def again(self, messages: Sequence[Message], unfit: Message) -> Exchange:
        """Return the exchange that asks the same model for a typed answer again, after one that did not fit."""
        chain, options = self.chain, self._options
        if chain is not None:
            chain.unfit.append(unfit)
        made = Exchange.__new__(Exchange)
        made.chain = chain
        made._read(self._state, messages, options, False, self.plan)
        return made

    async def after_failure(self, io: IO, error: InterlinguaError) -> Exchange:
        """Return the exchange with the next model of the call after this one has failed.

        Raises:
            InterlinguaError: the error of the service, if no model is left or none can take the request.
        """
        chain, messages = self.chain, getattr(error.partial, "content", ())
        time_is_up = isinstance(error, APITimeoutError) and not error.retryable
        if chain is None or self.stopped or self._next is not None or messages or time_is_up:
            raise error
        delay = self._state.retry.delay(error, 1) if self.response.attempts else None
        left = None if delay is None else self._limits.left()
        if delay is not None and (left is None or delay < left) and chain.begin_again(self.model, error):
            await io.sleep(delay)
        if not chain.moves(self.model, error):
            raise chain.failures[-1] if chain.failures and isinstance(error, CapabilityError) else error
        chain.leave(self.model, error, self._model_info)
        _log.info("%s did not answer (%s); the next model of the call is asked", self.model, type(error).__name__)
        messages, options, stream, output = chain.arguments
        make = partial(Exchange, self._state, messages, options, stream=stream, output=output, chain=chain)
        made = await io.load(make)
        if self.response.attempts:
            made.limits_before = self._limits
        return made

    def _drop_thinking(self, error: InterlinguaError) -> bool:
        """Return True for the first refusal of earlier thinking: the next attempt goes without it, with rows."""
        if not (isinstance(error, ProviderError) and error.refuses_thinking):
            return False
        sent = self.request.wire, self.request.context
        try:
            if self.request.drop_thinking() and self.write(self._fetched).body != sent[0].body:
                return True
        except InterlinguaError:  # nothing is left to send: the refusal is what the caller must know
            pass
        self.request.wire, self.request.context = sent
        return False

    def _forget_uploads(self, error: InterlinguaError) -> bool:
        """Return True for the first refusal of a file that was uploaded: the next attempt uploads it again."""
        uploads = self._state.uploads
        if uploads is None or self._next is not None or self._upload_again or not uploads.forget(self, error):
            return False
        self._upload_again = "next"
        return True

    async def _load(self, io: IO, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function in a thread if it takes long: for much content, and for the first one of a kind."""
        parts: list[Any] = [*self.request.messages, *arguments]
        kind = (function.__name__, *self._kind)
        if kind in self._state.loaded and len(parts) < LONG:
            size = 0  # characters, of media too
            for part in parts:
                if content := getattr(part, "content", ()):
                    parts += content
                else:
                    media = getattr(getattr(part, "source", None), "data", "")
                    size += len(getattr(part, "text", getattr(part, "body", media)))
            if size < LARGE:
                return function(*arguments)
        found = await io.load(function, *arguments)
        self._state.loaded.add(kind)
        return found


class AuxiliaryExchange(SignedExchange):
    """One exchange that is not a conversation: a model list, a token count, a reported cost."""

    def __init__(
        self,
        state: ClientState,
        provider: str | None,
        kind: str,
        arguments: Mapping[str, Any],
        limits: TimeLimits | None = None,
    ) -> None:
        self._state, self._provider, self._kind = state, state.resolve_provider(provider), kind
        self._request = self._provider.auxiliary_request(kind, arguments)
        self._limits = limits or TimeLimits(state.timeout)

    async def attempt(self, io: IO) -> Any:
        """Send the request and return what was asked for."""
        signed = await self._sign(self._request, self._state.headers, io, self._limits)
        body = ReplyBody(await io.open(signed, self._limits), self._limits, self._state.max_response_bytes)
        if self._request.stream and body.status < FAILED:
            return body
        response: WireResponse = await body.read()
        if response.status >= FAILED:
            context = RequestContext(origin=Origin(self._provider.key, self._request.api, ""))
            error = self._provider.from_wire_error(response, context)
            raise complete_error(error, response.headers, self.connection.request_id_headers, signed.headers)
        return self._provider.from_wire_auxiliary(self._kind, response)


class PassedExchange(SignedExchange):
    """One exchange whose request and reply are not read: anything that a service offers."""

    def __init__(self, state: ClientState, provider: str, request: WireRequest) -> None:
        self._state, self._provider, self._request = state, state.resolve_provider(provider), request
        self._limits = TimeLimits(state.timeout)

    async def attempt(self, io: IO) -> Any:
        """Send the request and return the reply when its headers have arrived."""
        return await io.open(await self._sign(self._request, self._state.headers, io, self._limits), self._limits)


def _without_frames(error: InterlinguaError) -> InterlinguaError:
    """Drop the frames below the client from a failure of the service or the network, whose message says what it was."""
    if isinstance(error, (ProviderError, APIConnectionError)):
        if (cause := error.__cause__) is not None:  # of the HTTP library
            cause.__cause__, cause.__suppress_context__ = None, True
            cause.with_traceback(None)
        error.with_traceback(None)
    return error
