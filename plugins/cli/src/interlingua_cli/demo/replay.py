"""Answers of the demo's sessions, given where the very request is made that they were recorded or written for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from interlingua._json import loads
from interlingua.errors import CallerError
from interlingua_cli.cassettes import read_cassette


class Recorded(NamedTuple):
    """One answer: status, headers, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ReplayingClient:
    """A blocking client for `Client(http_client=…)`: every request is answered by `answer(method, path, body)`."""

    def __init__(self, answer: Callable[[str, str, bytes], Recorded]) -> None:
        self._answer = answer

    def build_request(self, method: str, url: str, *, content: bytes | None, headers: Any, extensions: Any) -> Any:
        """Return a request, with what core reads of httpx's."""
        return SimpleNamespace(method=method, url=url, content=content or b"", extensions=extensions or {})

    def send(self, request: Any, *, stream: bool) -> Any:
        """Return a response, with what core reads of httpx's."""
        status, headers, body = self._answer(request.method, urlsplit(request.url).path, request.content)
        return SimpleNamespace(
            request=request,
            status_code=status,
            headers=SimpleNamespace(raw=[(name.encode(), value.encode()) for name, value in headers.items()]),
            extensions={},
            stream=[body],
            close=lambda: None,
        )


_ID_KEYS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})


def _with_stable_ids(value: Any, issued: str, seen: dict[str, str]) -> Any:
    """Return a request's JSON with ids that no answer issued replaced by their order of appearance.

    Those are new in each run: made from a new call id, where a service takes no other's ids.

    Args:
        value: the JSON.
        issued: the text of all answers.
        seen: replaced so far.
    """
    if isinstance(value, list):
        return [_with_stable_ids(item, issued, seen) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: seen.setdefault(item, f"call-{len(seen)}")
        if key in _ID_KEYS and isinstance(item, str) and item not in issued
        else _with_stable_ids(item, issued, seen)
        for key, item in value.items()
    }


class Cassette:
    """Recorded exchanges, answered in order where the very request that was recorded is made; any other is an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges = read_cassette(path)
        self._issued = "".join(exchange.body.decode("utf-8", "replace") for exchange in self._exchanges)
        self._at = 0

    def __call__(self, method: str, path: str, body: bytes) -> Recorded:
        """Return the next recorded answer."""
        if self._at == len(self._exchanges):
            raise CallerError(f"{self._path.name} holds {self._at} exchanges and one more was asked for")
        found = self._exchanges[self._at]
        self._at += 1
        recorded, made = (_with_stable_ids(loads(text), self._issued, {}) for text in (found.request_body, body))
        if not found.uri.endswith(path) or recorded != made:
            raise CallerError(f"exchange {self._at} of {self._path.name} was recorded for another request")
        return Recorded(found.status, found.headers, found.body)
