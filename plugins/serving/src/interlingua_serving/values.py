"""The values that serving hooks take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import attrs

from interlingua.plugins import EMPTY, Loss, message_loss, option_loss
from interlingua.types import Message, Origin, RequestOptions, StreamEvent, ToolDefinition, new_ulid, replace
from interlingua_serving.answers import State


def _utc_now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen(kw_only=True)
class ServedRoute:
    """A path of an API.

    Attributes:
        path: the path, with `{name}` for a segment that varies and `{name:path}` for one that may hold slashes, such as
            `/v1beta/models/{model:path}:generateContent`.
        kind: `send` for a conversation, `count_tokens` for a count of its tokens, `models` for the list of models.
        method: the HTTP method.
    """

    path: str
    kind: Literal["send", "count_tokens", "models"] = "send"
    method: str = "POST"


@attrs.frozen(kw_only=True)
class ServedApi:
    """An API that a plugin serves.

    Attributes:
        name: the API, as in `ModelCapabilities.api`.
        routes: its paths. None if another plugin serves the same API at its paths, so that a gateway adds none.
        references: members of a request, by their names in `InboundRequest.extra`, that name data which only the
            API's own service holds, such as `previous_response_id`. Another provider cannot answer such a request.
        told_apart_by: a request header that only callers of this API send. It decides between two APIs that share a
            path.
        key_headers: request headers, besides `authorization`, in which callers of this API send their key.
        key_parameters: query parameters in which they do.
    """

    name: str
    routes: tuple[ServedRoute, ...] = ()
    references: tuple[str, ...] = ()
    told_apart_by: str = ""
    key_headers: tuple[str, ...] = ()
    key_parameters: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class InboundRequest:
    """A request that was made in an adapter's own API, read.

    Attributes:
        messages: the conversation; answers have the origin that their sealed state names, else this API's service.
        tools: what the model may call, mostly `WireTool`.
        options: of the request: `model` as it was asked for, `stream`, `api`; without `provider_options`.
        extra: what only this API can say, in the form of `options.provider_options`.
        covered: members of `extra` whose meaning `options` have too, each with the options to leave out beside it.
        private: indexes of messages that are meant for this API's own service, and for no other.
        provider: key of the provider whose API it is.
        losses: what could not be read, such as a seal that was altered.
        echo: facts that the adapter wants to see when the answer is written (`ServeContext.echo`).
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: RequestOptions
    extra: Mapping[str, Any] = EMPTY
    covered: Mapping[str, Sequence[str]] = EMPTY
    private: tuple[int, ...] = ()
    provider: str
    losses: tuple[Loss, ...] = ()
    echo: Mapping[str, Any] = EMPTY

    def for_upstream(
        self, provider: str, api: str, model: str
    ) -> tuple[tuple[Message, ...], RequestOptions, tuple[Loss, ...]]:
        """Return messages and options for the model that will answer, and the losses.

        An upstream that speaks this API gets all that was said; another, less what only this API can say. The exact
        form of what is `covered` is for this API's own service and the very model that was asked for: others may not
        take it.

        Args:
            provider: its provider key.
            api: which of that provider's wire formats.
            model: its model name without provider key.
        """
        asked, messages, losses = self.options.model, self.messages, list(self.losses)
        own = provider == self.provider and api == self.options.api
        if own and model == asked:
            left_out: dict[str, Any] = dict.fromkeys(name for names in self.covered.values() for name in names)
            return messages, attrs.evolve(self.options, **left_out, provider_options=self.extra), tuple(losses)
        extra = {name: value for name, value in self.extra.items() if name not in self.covered}
        if api != self.options.api:
            said = [name for name, value in extra.items() if value is not None]
            losses += [option_loss(f"provider_options.{name}", "dropped", "only this API has it") for name in said]
            extra = {}
        if own:  # unsealed answers are taken for those of the model in use
            before, now = f"{provider}:{asked}", f"{provider}:{model}"
            messages = tuple(
                [
                    replace(each, metadata=replace(each.metadata, model=now)) if each.metadata.model == before else each
                    for each in messages
                ]
            )
        else:
            lost = [message_loss(at, "it is for this API's own service") for at in self.private]
            losses += [attrs.evolve(row, verdict="dropped") for row in lost]
            messages = tuple([each for at, each in enumerate(messages) if at not in self.private])
        return messages, attrs.evolve(self.options, model=model, api=api, provider_options=extra), tuple(losses)


@attrs.frozen(kw_only=True)
class ServeContext:
    """What an adapter may not find out by itself when it reads a request or writes its answer.

    Attributes:
        provider: key of the provider whose API is spoken; answers of that provider and API need no seal.
        api: which of its wire formats.
        model: the name that the caller asked for: answers say this one, whoever made them; "" for a request.
        origin: who makes the answer; None for an error before anybody was asked.
        echo: what the adapter put into `InboundRequest.echo`.
        answer_id: unique for each answer, letters and digits; to be prefixed in the API's manner.
        new_id: gives further such ids, for the parts of an answer.
        clock: gives the time, UTC.
        seal: makes a text of state that only `unseal` can read: URL-safe base64, padded. None: state is dropped.
        unseal: gives back the state; {} for a seal that may not be used here (altered, another key, tenant or time);
            None for a text that is no seal.
    """

    provider: str
    api: str
    model: str = ""
    origin: Origin | None = None
    echo: Mapping[str, Any] = EMPTY
    answer_id: str = attrs.field(factory=new_ulid)
    new_id: Callable[[], str] = new_ulid
    clock: Callable[[], datetime] = _utc_now
    seal: Callable[[State], str] | None = None
    unseal: Callable[[str], State | None] = lambda _text: None

    @property
    def is_own(self) -> bool:
        """True when this API's own service makes the answer."""
        return self.origin is not None and self.origin[:2] == (self.provider, self.api)


class StreamWriter(Protocol):
    """Writes the events of one answer in an API's framing.

    Attributes:
        content_type: of the HTTP answer.
        losses: what this API could not say.
    """

    content_type: str
    losses: list[Loss]

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the bytes for the events of one upstream read, ready to be written at once; b"" for none.

        An `ErrorEvent` is written as this API's own error, last.
        """
        ...

    def end(self) -> bytes:
        """Return what is left when no more events come; an error where none of them ended the answer."""
        ...
