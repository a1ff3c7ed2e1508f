"""The demo's recorded exchanges, answered again where the very same request is made.

Never invents an answer: a request that was not recorded is an error that says so.
The command comes in.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from interlingua.errors import CallerError
from interlingua.http.transport import Recorded
from interlingua.json import loads
from interlingua_cli.replay.cassettes import read_cassette

_MINTED = re.compile(r"tu_[0-9A-HJKMNP-TV-Z]{26}")


def same_request(left: bytes, right: bytes) -> bool:
    """Tell whether two bodies are one request: call ids minted anew in each run count by order of appearance."""
    return bool(_canonical(left) == _canonical(right))


def _canonical(body: bytes) -> Any:
    seen: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return seen.setdefault(match.group(), f"minted-{len(seen)}")

    text = _MINTED.sub(name, body.decode("utf-8", "replace"))
    try:
        return loads(text)
    except ValueError:
        return text


class Cassette:
    """The exchanges of one file, in order; call it as the replaying client's answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges = read_cassette(path)
        self._at = 0

    def __call__(self, method: str, path: str, body: bytes) -> Recorded:
        """Return the next recorded answer.

        Raises:
            CallerError: the request is not the one that was recorded here.
        """
        if self._at == len(self._exchanges):
            raise CallerError(f"{self._path.name} holds {self._at} exchanges and one more was asked for")
        found = self._exchanges[self._at]
        self._at += 1
        if not (found.uri.endswith(path) and same_request(found.request_body, body)):
            raise CallerError(f"exchange {self._at} of {self._path.name} was recorded for another request")
        return Recorded(found.status, found.headers, found.body)
