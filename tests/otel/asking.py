"""Ask the fake provider with both clients: whole, streamed, left early."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import interlingua as il
from interlingua.plugins import Registry
from tests.support.fake_provider import Fake

TWICE = il.Retry(max_attempts=2, initial_delay=0.0)
BODY = {"say": "hello", "end": "end_turn", "in": 3, "out": 2}


def answer(**fields: Any) -> bytes:
    """Return the body of a whole answer."""
    return json.dumps(BODY | fields).encode()


def ask(
    blocking: bool,
    url: str,
    plugin: Any,
    messages: Any = "hi",
    *,
    fake: Fake | None = None,
    stream: bool = False,
    leave: bool = False,
    **options: Any,
) -> Any:
    """Send once and return the message; `stream` reads a stream whole, `leave` only to its first event."""
    found = Registry([plugin], providers={"fake": fake or Fake()}, entry_points=[])
    settings: dict[str, Any] = {
        "registry": found, "base_url": url, "api_key": "k", "environ": {}, "retry": TWICE,
    }  # fmt: skip

    async def asked() -> Any:
        async with il.AsyncClient("fake:known", **settings) as client:
            if not stream:
                return await client.send(messages, **options)
            async with client.stream(messages, **options) as events:
                async for _ in events:
                    if leave:
                        break
            return events.partial

    if not blocking:
        return asyncio.run(asked())
    with il.Client("fake:known", **settings) as client:
        if not stream:
            return client.send(messages, **options)
        with client.stream(messages, **options) as events:
            for _ in events:
                if leave:
                    break
        return events.partial
