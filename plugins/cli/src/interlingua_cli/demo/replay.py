"""The answers of the demo's sessions, replayed only for the requests they were recorded or written for."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from interlingua.errors import CallerError
from interlingua.plugins import loads
from interlingua.testing import MemoryReply
from interlingua.transport import HttpRequest
from interlingua_cli.cassettes import read_cassette

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


class RecordedAnswers:
    """Recorded exchanges, for a `MemoryTransport`: answered in order, and only for the requests that were recorded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges = read_cassette(path)
        self._issued = "".join(exchange.body.decode("utf-8", "replace") for exchange in self._exchanges)
        self._at = 0

    def __call__(self, request: HttpRequest) -> MemoryReply:
        """Return the next recorded answer.

        Raises:
            CallerError: the request is another one, or no answer is left.
        """
        if self._at == len(self._exchanges):
            raise CallerError(f"{self._path.name} holds only {self._at} exchanges")
        found = self._exchanges[self._at]
        self._at += 1
        recorded, made = (
            _with_stable_ids(loads(text), self._issued, {}) for text in (found.request_body, request.body)
        )
        if not found.uri.endswith(urlsplit(request.url).path) or recorded != made:
            raise CallerError(f"exchange {self._at} of {self._path.name} was recorded for another request")
        return MemoryReply(found.body, status=found.status, headers=found.headers)
