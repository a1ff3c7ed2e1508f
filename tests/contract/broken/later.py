"""Adapters that are wrong about what follows an answer, and about a key that is exchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from interlingua.plugins import FollowUp, KeyExchange, WireRequest
from tests.contract.broken.machine import Mutant


def _followed(change: Callable[[FollowUp], FollowUp | None]) -> dict[str, Callable[..., Any]]:
    """Change what has to follow."""
    return {"follow_up": lambda inner, **_: (found := inner()) and change(found)}


def _ask(change: Callable[[WireRequest], WireRequest]) -> dict[str, Callable[..., Any]]:
    """Change the request for the answer."""
    return _followed(lambda found: attrs.evolve(found, request=change(found.request)))


def _repeat_creation(inner: Callable[..., Any], context: Any, **_: Any) -> Any:
    found = inner()
    return found and attrs.evolve(found, request=attrs.evolve(context.request, stream=False))


def _end_early(inner: Callable[..., Any], context: Any, **_: Any) -> Any:
    """Take the first answer to a poll for the last."""
    return None if context.request.method == "GET" else inner()


def _one_too_many(inner: Callable[..., Any], response: Any, context: Any, **_: Any) -> Any:
    """Ask once more for work that has ended."""
    if context.request.method == "GET" and b'"done"' in response.body:
        return FollowUp(request=context.request, after=1.0, cancel=context.request)
    return inner()


class _FirstJob:
    """Asks for the job that it saw first, whatever job an answer names."""

    def __init__(self) -> None:
        self._first: dict[bool, FollowUp] = {}

    def __call__(self, inner: Callable[..., Any], **_: Any) -> FollowUp | None:
        found: FollowUp | None = inner()
        return found and self._first.setdefault(found.request.stream, found)


def _exchanged(**changes: Callable[[Callable[..., Any]], Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Change functions of the exchange of a key: `request` or `read`."""

    def connection(inner: Callable[..., Any], **_: Any) -> Any:
        made = inner()
        functions = {"request": made.key_exchange.request, "read": made.key_exchange.read}
        broken = {name: change(functions[name]) for name, change in changes.items()}
        return attrs.evolve(made, key_exchange=KeyExchange(**{**functions, **broken}))

    return {"connection": connection}


def _key_in_address(request: Callable[..., Any]) -> Callable[..., Any]:
    def asked(time: Any) -> Any:
        made = request(time)
        return made._replace(url=f"{made.url}?{made.body.decode()}")

    return asked


def _without_time(read: Callable[..., Any]) -> Callable[..., Any]:
    return lambda response: attrs.evolve(read(response), expires_at=None)


def _anything(read: Callable[..., Any]) -> Callable[..., Any]:
    """Take an answer without a token, such as a refusal with status 200, for a good one."""

    def found(response: Any) -> Any:
        try:
            return read(response)
        except Exception:
            return read(attrs.evolve(response, body=b'{"access_token": "", "expiration": 1795824000}'))

    return found


class _FirstToken:
    """Keeps the first token for good."""

    def __init__(self) -> None:
        self._token: Any = None

    def __call__(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def found(response: Any) -> Any:
            self._token = self._token or read(response)
            return self._token

        return found


def _sign_by_key(inner: Callable[..., Any], settings: Any) -> Any:
    return attrs.evolve(inner(), sign=lambda _request, _token: {"authorization": f"Bearer {settings.api_key}"})


_ELSEWHERE = "https://jobs.example"

LATER = (
    Mutant(
        "a poll of another job",
        "C105",
        _ask(lambda request: attrs.evolve(request, path=f"{request.path[:-1]}9")),
        key="kiln",
    ),
    Mutant("the job that was seen first", "C105", {"follow_up": _FirstJob()}, key="kiln"),
    Mutant("the creation repeated", "C105", {"follow_up": _repeat_creation}, key="kiln"),
    Mutant("one poll too few", "C105", {"follow_up": _end_early}, key="kiln"),
    Mutant("one poll too many", "C105", {"follow_up": _one_too_many}, key="kiln"),
    Mutant(
        "a poll at another host",
        "C105",
        _ask(lambda request: attrs.evolve(request, path=f"{_ELSEWHERE}/{request.path.rpartition('/')[2]}")),
        key="kiln",
    ),
    Mutant(
        "a cancellation at another host",
        "C105",
        _followed(lambda found: attrs.evolve(found, cancel=WireRequest(path=f"{_ELSEWHERE}/x", body=b"", api="jobs"))),
        key="kiln",
    ),
    Mutant(
        "work that cannot be cancelled",
        "C106",
        _followed(lambda found: attrs.evolve(found, cancel=None)),
        key="kiln",
    ),
    Mutant("no wait between polls", "C106", _followed(lambda found: attrs.evolve(found, after=0.0)), key="kiln"),
    Mutant(
        "half the wait between polls",
        "C95",
        _followed(lambda found: attrs.evolve(found, after=found.after / 2)),
        key="openai",
        api="responses",
    ),
    Mutant(
        "a response polled at the address of all",
        "C105",
        _ask(lambda request: attrs.evolve(request, path="/responses")),
        key="openai",
        api="responses",
    ),
    Mutant("the key in the address of its exchange", "C107", _exchanged(request=_key_in_address), key="mint"),
    Mutant("an exchanged token that never expires", "C107", _exchanged(read=_without_time), key="mint"),
    Mutant("an exchanged token of nothing", "C107", _exchanged(read=_anything), key="mint"),
    Mutant("the first token for good", "C107", _exchanged(read=_FirstToken()), key="mint"),
    Mutant("the key signs, not its token", "C107", {"connection": _sign_by_key}, key="mint"),
)
