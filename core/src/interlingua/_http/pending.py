"""Answers that come later: how a message holds what has to follow, and a request that is taken up again from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua._json import EMPTY
from interlingua._plugins.connection import Connection
from interlingua._plugins.provider import Provider
from interlingua._plugins.wire import FollowUp, RequestContext, WireRequest
from interlingua._request.prepare import RequestDraft, read_options
from interlingua.errors import CallerError, PluginError
from interlingua.types.messages import Message, Origin

_REQUESTS = ("request", "cancel", "usage")
_FIELDS = ("method", "path", "headers", "body", "api", "stream")


def pack_follow_up(follow_up: FollowUp, context: RequestContext) -> dict[str, Any]:
    """Return what a message holds of its follow-up, as JSON."""
    packed: dict[str, Any] = {"after": follow_up.after, "echo": context.echo, "tool_names": context.tool_names}
    for name in _REQUESTS:
        if (request := getattr(follow_up, name)) is not None:
            packed[name] = {field: getattr(request, field) for field in _FIELDS}
            packed[name]["body"] = request.body.decode()
    return packed


class ResumedRequest(RequestDraft):
    """A request that was sent before, perhaps by another process, and whose answer a message says how to get."""

    urls: Sequence[str] = ()

    def __init__(
        self, provider: Provider, message: Message, settings: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        """Read what `pack_follow_up` wrote.

        Raises:
            CallerError: the message holds nothing of that kind.
        """
        metadata = message.metadata
        try:
            packed = (metadata.provider_raw or EMPTY)["follow_up"]
            requests = {name: _unpack(packed[name]) for name in _REQUESTS if name in packed}
            self.follow_up = FollowUp(after=packed["after"], **requests)
            echo, tool_names = packed["echo"], packed["tool_names"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = "nothing follows this message: it is complete, or its service cannot be asked for it again"
            raise CallerError(why) from error
        self.provider, self.messages, self.tools = provider, (message,), ()
        self.wire = attrs.evolve(self.follow_up.request, losses=metadata.losses)
        name = (metadata.model or "").partition(":")[2]
        self.options = read_options(EMPTY, settings, headers, model=name, stream=self.wire.stream)
        self.target = provider.target(self.options)
        self.context = RequestContext(
            origin=Origin(provider.key, self.wire.api, name),
            message_id=message.id,
            session_id=message.session_id,
            routing=metadata.routing,
            tool_names=tool_names,
            echo=echo,
            user_id=metadata.user_id,
            team_id=metadata.team_id,
        )

    def build(self, *_arguments: object, **_more: object) -> WireRequest:
        """Return the request that is sent next; it is written already."""
        return self.wire

    def drop_thinking(self) -> bool:
        """Return False: nothing of it can change."""
        return False


def _unpack(packed: Mapping[str, Any]) -> WireRequest:
    given = {name: packed[name] for name in _FIELDS}
    texts = [given[name] for name in ("method", "path", "body", "api")]
    if not all(type(text) is str for text in (*texts, *given["headers"], *given["headers"].values())):
        raise TypeError("a field of the stored request has another type")
    return WireRequest(**{**given, "body": given["body"].encode()})


def check_address(url: str, connection: Connection) -> None:
    """Refuse the address of a follow-up if it is not of the service: an answer must not redirect the key.

    Raises:
        PluginError: the address is of another host.
    """
    place, own = urlsplit(url), urlsplit(connection.base_url)
    hosts = "|".join(re.escape(host).replace(r"\*", "[^.]*") for host in connection.hosts)
    at_home = (place.scheme, place.netloc) == (own.scheme, own.netloc)
    if not at_home and re.fullmatch(hosts, own.hostname or "."):
        listed = re.fullmatch(hosts, place.hostname or ".") is not None
        at_home = listed and place.scheme == "https" and place.netloc.removesuffix(":443") == place.hostname
    if not at_home or "\\" in url or not (url.isascii() and url.isprintable()):
        text = f"an answer names {place.hostname!r} for the next request, which is not a host of this service"
        raise PluginError(f"{text}; nothing was sent there. If it is one, add it to Connection.hosts")
