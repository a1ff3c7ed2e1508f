"""Two models that fail in turns, on loopback: every call is answered, without a storm, and costs are exact."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import interlingua as il
from interlingua.fallback import FAILED_ATTEMPTS, Fallback
from tests.core.http.test_fallback import CLAUDE, GPT, claude, gpt
from tests.support.counts import examples
from tests.support.loopback import loopback, send_bytes

COUNT = examples(1_000, 240)
PHASE = COUNT // 4  # answers of one model, after which it fails and the other one answers
REST = 0.5
OWN = {CLAUDE: Decimal("0.000035"), GPT: Decimal("0.000013")}  # list prices of 10+5 and 20+4 tokens


class Two:
    """Two services on one server; the one whose turn it is answers, the other one fails in one of several ways."""

    def __init__(self, down: str = "") -> None:
        self._down = down
        self._lock = threading.Lock()
        self.answers = 0
        self.answered: Counter[str] = Counter()
        self.failed: list[tuple[float, str]] = []  # when, and which
        self.open = self.most = 0

    def __call__(self, handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        name = "claude" if handler.path.endswith("/messages") else "gpt"
        with self._lock:
            works = name != (self._down or ("gpt", "claude")[self.answers // PHASE % 2])
            if works:
                self.answers += 1
                self.answered[name] += 1
            else:
                self.failed.append((time.monotonic(), name))
            count = len(self.failed)
            self.open += 1
            self.most = max(self.most, self.open)
        time.sleep(0.002)
        if works:
            send_bytes(handler, 200, "application/json", claude() if name == "claude" else gpt())
        elif count % 3 == 0:
            handler.close_connection = True
            handler.connection.close()
        else:
            kind, status = ("overloaded_error", 529) if count % 3 == 1 else ("api_error", 500)
            error = json.dumps({"type": "error", "error": {"type": kind, "message": "not now"}}).encode()
            send_bytes(handler, status, "application/json", error)
        with self._lock:
            self.open -= 1

    def rate(self, began: float, ended: float) -> float:
        """Return the most requests that a failing model got in any second."""
        times = [at for at, _ in self.failed if began <= at <= ended]
        return max((sum(at <= each < at + 1 for each in times) for at in times), default=0)


def settings(url: str) -> dict[str, Any]:
    places = {"anthropic": {"api_key": "k", "base_url": url}, "openai": {"api_key": "k", "base_url": f"{url}/v1"}}
    retry, fallback = il.Retry(max_attempts=3, initial_delay=0.01), Fallback(rest=REST)
    return {"settings": places, "retry": retry, "fallback": fallback, "concurrency": 8, "environ": {}}


@pytest.mark.parametrize("blocking", [True, False], ids=["threads", "tasks"])
def test_two_models_that_fail_in_turns_answer_every_call(blocking: bool) -> None:
    service = Two()

    async def ask(url: str) -> list[il.Message | il.InterlinguaError]:
        async with il.AsyncClient([CLAUDE, GPT], **settings(url)) as client:
            return await client.map(["Hello"] * COUNT, concurrency=24)

    with loopback(service) as url:
        began = time.monotonic()
        if blocking:
            with il.Client([CLAUDE, GPT], **settings(url)) as client:
                answers = client.map(["Hello"] * COUNT, concurrency=24)
        else:
            answers = asyncio.run(ask(url))
        ended = time.monotonic()

    found = [answer for answer in answers if isinstance(answer, il.Message)]
    assert len(found) == COUNT, Counter(type(each).__name__ for each in answers)
    assert {answer.model for answer in found} == {CLAUDE, GPT}
    assert service.answered.total() == COUNT  # no answer was asked for twice
    for answer in found:  # a failed attempt had no answer, so it cost nothing
        assert answer.model is not None
        assert answer.usage.cost_usd == OWN[answer.model]
    assert service.most <= 16  # eight at each model

    # At the end of each phase, those under way and rest_after=3 failures; then one trial in each rest.
    phases = COUNT // PHASE
    most = phases * (8 + 3 + 8) + 2 * (ended - began) / REST
    storm = service.rate(began, ended)
    print(
        f"{COUNT} answers in {ended - began:.1f} s; {len(service.failed)} failed attempts, {storm} in a second at most"
    )
    assert len(service.failed) <= most
    moved = [answer for answer in found if FAILED_ATTEMPTS in answer.metadata.extra]
    assert 0 < len(moved) <= len(service.failed)


def test_a_model_that_is_down_gets_one_request_in_each_rest() -> None:
    """The other model answers."""
    service = Two(down="claude")

    with loopback(service) as url, il.Client([CLAUDE, GPT], **settings(url)) as client:
        began = time.monotonic()
        while time.monotonic() - began < 5 * REST:
            answers = client.map(["Hello"] * 24, concurrency=24)
            assert {getattr(answer, "model", None) for answer in answers} == {GPT}
        seconds = time.monotonic() - began
        after = [at for at, _ in service.failed if at > began + REST]

    assert len(after) <= seconds / REST + 1, "one trial in each rest"
    print(f"{service.answered['gpt']} answers in {seconds:.1f} s; {len(after)} trials of the model that is down")
