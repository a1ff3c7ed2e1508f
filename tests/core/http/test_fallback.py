"""Fallback models: what goes on to the next model, what is recorded, what it costs, and how long a model rests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.errors import (
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    CallerError,
    CapabilityError,
    ContentRefusedError,
    MalformedResponseError,
    OverloadedError,
    RateLimitError,
    ServerError,
)
from interlingua.fallback import FAILED_ATTEMPTS, Fallback, ModelHealth
from interlingua.plugins import HttpRequest
from interlingua.testing import AsyncMemoryTransport, MemoryReply, MemoryTransport

CLAUDE, GPT, GROQ = "anthropic:claude-haiku-4-5", "openai:gpt-5-mini", "groq:llama-3.1-8b-instant"
ENVIRON = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GROQ_API_KEY": "g"}
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 30
Answer = Callable[[], MemoryReply | bytes]


@attrs.frozen
class Number:
    """One number, as a type of answers."""

    n: int


def claude(text: str = "from claude") -> bytes:
    return json.dumps(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    ).encode()  # fmt: skip


def gpt(text: str = "from gpt") -> bytes:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    return json.dumps(
        {
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5-mini",
            "output": [message], "usage": {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24},
        }
    ).encode()  # fmt: skip


def failure(status: int, kind: str = "api_error", **headers: str) -> MemoryReply:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": f"failed with {status}"}}).encode()
    return MemoryReply(body, status=status, headers={name.replace("_", "-"): text for name, text in headers.items()})


def sse(*events: dict[str, Any], cut: bool = False) -> MemoryReply:
    def pieces() -> Iterator[bytes]:
        for event in events:
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        if cut:
            raise il.APIConnectionError("the connection broke")

    return MemoryReply(pieces(), headers={"content-type": "text/event-stream"})


def claude_start(input_tokens: int = 1000) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": input_tokens, "output_tokens": 1},
    }  # fmt: skip
    return {"type": "message_start", "message": message}


CLAUDE_TEXT = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "part"}},
)


class Services:
    """Answers in memory for each host: the next of a list, its last one again and again."""

    def __init__(self, **answers: Answer | list[Answer]) -> None:
        self._answers = {host: each if isinstance(each, list) else [each] for host, each in answers.items()}
        self.asked: list[str] = []

    def __call__(self, request: HttpRequest) -> MemoryReply | bytes:
        host = request.url.split("/")[2].split(".")[1]
        self.asked.append(host)
        left = self._answers[host]
        return (left.pop(0) if len(left) > 1 else left[0])()

    def client(self, models: Any, **settings: Any) -> il.Client:
        settings = {"retry": 0, "environ": ENVIRON, **settings}
        return il.Client(models, transport=MemoryTransport(self), **settings)

    def async_client(self, models: Any, **settings: Any) -> il.AsyncClient:
        settings = {"retry": 0, "environ": ENVIRON, **settings}
        return il.AsyncClient(models, transport=AsyncMemoryTransport(self), **settings)


def overloaded() -> MemoryReply:
    return failure(529, "overloaded_error")


def refused() -> MemoryReply:
    raise il.APIConnectionError("no connection", phase="connect")


def timed_out() -> MemoryReply:
    raise APITimeoutError("no answer within first_byte=1 s")


@pytest.mark.parametrize(
    "fails",
    [
        overloaded,
        lambda: failure(503),
        lambda: failure(500),
        lambda: failure(429, "rate_limit_error"),
        lambda: failure(402, "billing_error"),
        lambda: b"{",
        refused,
        timed_out,
    ],
)
def test_failures_of_the_service_go_on_to_the_next_model(fails: Answer) -> None:
    services = Services(anthropic=fails, openai=gpt)
    answer = services.client([CLAUDE, GPT]).send("Hello")

    assert (answer.text, answer.model, services.asked) == ("from gpt", GPT, ["anthropic", "openai"])


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        (lambda: failure(400, "invalid_request_error"), BadRequestError),
        (lambda: failure(401, "authentication_error"), AuthenticationError),
    ],
)
def test_mistakes_of_the_caller_are_raised(fails: Answer, error: type[Exception]) -> None:
    services = Services(anthropic=fails, openai=gpt)
    with pytest.raises(error):
        services.client([CLAUDE, GPT]).send("Hello")

    assert services.asked == ["anthropic"]


def test_the_policy_says_what_goes_on() -> None:
    services = Services(anthropic=lambda: failure(401, "authentication_error"), openai=gpt)
    policy = Fallback(on=(AuthenticationError,))

    assert services.client([CLAUDE, GPT], fallback=policy).send("Hello").model == GPT
    with pytest.raises(CallerError, match="on must be classes of"):
        Fallback(on=("overloaded",))  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="the models themselves go in model="):
        il.Client(CLAUDE, fallback=[GPT])  # type: ignore[arg-type]
    assert not issubclass(ContentRefusedError, Fallback().on)


def test_a_call_names_its_own_models() -> None:
    services = Services(anthropic=overloaded, openai=gpt)
    answer = services.client(CLAUDE).send("Hello", model=[CLAUDE, GPT])

    assert answer.model == GPT
    with pytest.raises(OverloadedError):
        services.client([CLAUDE, GPT]).send("Hello", model=CLAUDE)
    with pytest.raises(CallerError, match="a list of names"):
        services.client(CLAUDE).send("Hello", model=[])


def test_the_answer_records_the_move() -> None:
    services = Services(anthropic=overloaded, openai=gpt)
    metadata = services.client([CLAUDE, GPT]).send("Hello").metadata

    assert metadata.routing is not None
    assert metadata.routing.chosen_model == GPT
    assert metadata.routing.alternatives_considered == (CLAUDE,)
    failed = f"{CLAUDE} (OverloadedError: failed with 529)"
    assert metadata.routing.reason == f"the client's default model; fallback for {failed}"
    rows = [row for row in metadata.losses if row.path == "options.model"]
    assert [row.reason for row in rows] == [f"asked of {GPT}, not of {CLAUDE}: OverloadedError: failed with 529"]
    assert metadata.extra[FAILED_ATTEMPTS] == [{"model": CLAUDE, "error": "OverloadedError", "status": 529}]
    assert il.loads_message(il.dumps_message(services.client([CLAUDE, GPT]).send("Hello"))).model == GPT


def test_an_answer_of_the_first_model_records_nothing() -> None:
    metadata = Services(anthropic=claude).client([CLAUDE, GPT]).send("Hello").metadata

    assert (metadata.model, metadata.extra, metadata.losses) == (CLAUDE, {}, ())
    assert metadata.routing == il.types.RoutingDecision(
        mode=il.types.RoutingMode.DEFAULT, chosen_model=CLAUDE, reason="the client's default model"
    )


def test_if_all_fail_the_last_error_is_raised() -> None:
    services = Services(anthropic=lambda: failure(500), openai=lambda: failure(429), groq=overloaded)
    with pytest.raises(OverloadedError) as caught:
        services.client([CLAUDE, GPT, GROQ]).send("Hello")

    assert services.asked == ["anthropic", "openai", "groq"]
    assert (caught.value.provider, caught.value.status) == ("groq", 529)


def test_each_model_is_tried_again_as_retry_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    services = Services(anthropic=lambda: failure(500), openai=[lambda: failure(500), gpt])
    answer = services.client([CLAUDE, GPT], retry=1).send("Hello")

    assert answer.model == GPT
    assert services.asked == ["anthropic"] * 2 + ["openai"] * 2


def test_when_all_have_failed_they_are_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    services = Services(anthropic=[overloaded, overloaded, claude], openai=overloaded)
    answer = services.client([CLAUDE, GPT], retry=1).send("Hello")

    assert (answer.model, services.asked) == (CLAUDE, ["anthropic"] * 2 + ["openai"] * 2 + ["anthropic"])
    assert len(waits) == 3  # before each attempt but the first one at another model
    services = Services(anthropic=overloaded, openai=overloaded)
    with pytest.raises(OverloadedError):
        services.client([CLAUDE, GPT], retry=1).send("Hello")
    assert len(services.asked) <= 8


def test_a_service_that_asks_to_wait_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    services = Services(anthropic=lambda: failure(429, "rate_limit_error", retry_after="7"), openai=gpt)
    client = services.client([CLAUDE, GPT], retry=2)

    assert client.send("Hello").model == GPT
    answer = client.send("Hello")  # the model rests

    assert (services.asked, waits) == (["anthropic", "openai", "openai"], [])
    assert answer.metadata.routing is not None
    assert answer.metadata.routing.reason.endswith(f"fallback for {CLAUDE} (it rests after failures)")


def test_a_model_that_cannot_take_the_request_is_passed_over() -> None:
    question = il.user("What is this?", images=[PICTURE])
    services = Services(anthropic=overloaded, openai=gpt, groq=gpt)

    assert services.client([CLAUDE, GROQ, GPT]).send(question).model == GPT
    assert services.asked == ["anthropic", "openai"]
    with pytest.raises(OverloadedError):  # no model is left: the failure of the service is what matters
        services.client([CLAUDE, GROQ]).send(question)
    with pytest.raises(CapabilityError):  # the model that the caller wants
        services.client([GROQ, GPT]).send(question)


def test_a_model_that_rests_is_asked_if_the_others_cannot_take_the_request() -> None:
    services = Services(anthropic=[lambda: failure(429, retry_after="60"), claude], groq=lambda: failure(500))
    client = services.client([CLAUDE, GROQ])
    with pytest.raises(ServerError):
        client.send("Hello")

    assert client.send(il.user("What is this?", images=[PICTURE])).model == CLAUDE


@pytest.mark.parametrize("blocking", [True, False])
def test_a_stream_goes_on_before_its_first_content(blocking: bool) -> None:
    created = {"type": "response.created", "response": json.loads(gpt()) | {"status": "in_progress", "output": []}}
    completed = {"type": "response.completed", "response": json.loads(gpt())}
    services = Services(anthropic=lambda: sse(claude_start(), cut=True), openai=lambda: sse(created, completed))

    async def collect() -> il.Message:
        async with services.async_client([CLAUDE, GPT]).stream("Hello") as stream:
            return await stream.message

    if blocking:
        with services.client([CLAUDE, GPT]).stream("Hello") as stream:
            answer = stream.message
            assert [row.path for row in stream.request.losses] == ["options.model"]
    else:
        answer = asyncio.run(collect())

    assert (answer.text, answer.model) == ("from gpt", GPT)
    usage = answer.usage
    # claude-haiku-4-5 costs 1 USD per million tokens of input and 5 of output; gpt-5-mini 0.25 and 2
    own, failed = Decimal("0.000013"), Decimal("0.001005")
    assert usage.cost is not None
    assert (usage.cost_usd, usage.cost.other, usage.input_tokens) == (own + failed, failed, 20)
    assert usage.extra_units == {"failed_attempts": 1}
    (attempt,) = answer.metadata.extra[FAILED_ATTEMPTS]
    assert (attempt["input_tokens"], attempt["output_tokens"], attempt["cost_usd"]) == (1000, 1, "0.001005")


def test_a_stream_with_content_does_not_go_on() -> None:
    services = Services(anthropic=lambda: sse(claude_start(), *CLAUDE_TEXT, cut=True), openai=gpt)
    stream = services.client([CLAUDE, GPT]).stream("Hello")
    with stream, pytest.raises(il.errors.StreamInterruptedError) as caught:
        assert stream.message

    assert (services.asked, caught.value.partial.text) == (["anthropic"], "part")


def test_an_attempt_of_unknown_cost_is_noted() -> None:
    services = Services(anthropic=lambda: b"{", openai=gpt)
    usage = services.client([CLAUDE, GPT]).send("Hello").usage

    assert usage.cost_usd == Decimal("0.000013")
    assert usage.cost_note == f"without a failed attempt at {CLAUDE}, whose cost is not known"


def test_typed_answers_are_planned_for_the_model_that_answers() -> None:
    pytest.importorskip("interlingua_output")
    misfit = claude('{"n": "no number"}')
    services = Services(anthropic=[lambda: misfit, overloaded], openai=lambda: gpt('{"n": 3}'))
    answer = services.client([CLAUDE, GPT]).send("Three?", output=Number)

    assert (answer.value.n, answer.message.model, len(answer.attempts)) == (3, GPT, 1)
    failed = answer.message.metadata.extra[FAILED_ATTEMPTS]
    assert [each["error"] for each in failed] == ["InvalidOutputError", "OverloadedError"]
    assert answer.usage.cost_usd == Decimal("0.000013") + Decimal("0.000035")  # the answer that did not fit is paid


def test_the_time_of_a_call_is_for_all_its_models() -> None:
    services = Services(openai=gpt)

    def slow() -> MemoryReply:
        raise APITimeoutError("the answer was not complete after total=1 s", retryable=False)

    services = Services(anthropic=slow, openai=gpt)
    with pytest.raises(APITimeoutError):
        services.client([CLAUDE, GPT], timeout=1).send("Hello")
    assert services.asked == ["anthropic"]


def test_settings_of_several_providers_are_not_mixed() -> None:
    with pytest.raises(CallerError, match="belong to one provider"):
        il.Client([CLAUDE, GPT], api_key="k")
    il.Client([GPT, "openai:gpt-5-nano"], api_key="k")


def test_malformed_bodies_are_an_outage_but_refusals_are_not() -> None:
    now = [0.0]
    health = ModelHealth(lambda: Fallback(rest_after=2, rest=10), clock=lambda: now[0])
    health.note("a", MalformedResponseError("cut"))
    health.note("a", BadRequestError("no"))  # the service answered
    health.note("a", MalformedResponseError("cut"))

    assert (health.failures("a"), health.rest_left("a")) == (1, 0)


def test_a_model_rests_and_is_tried_by_one_call_at_a_time() -> None:
    now = [0.0]
    health = ModelHealth(lambda: Fallback(rest_after=2, rest=10), clock=lambda: now[0])
    health.note("a", ServerError("down"))
    assert health.claim("a")
    health.note("a", ServerError("down"))

    assert (health.claim("a"), health.rest_left("a")) == (False, 10)
    assert health.order(["a", "b"]) == ["b"]
    now[0] = 10.5
    assert [health.claim("a") for _ in range(3)] == [True, False, False]  # one trial
    now[0] = 21
    assert [health.claim("a") for _ in range(3)] == [True, False, False]  # the trial told nothing
    health.note("a", None)
    assert [health.claim("a") for _ in range(3)] == [True, True, True]


def test_a_rest_that_the_service_asks_for_is_limited() -> None:
    health = ModelHealth(Fallback, clock=lambda: 0.0)
    health.note("a", RateLimitError("slow down", retry_after=86_400))

    assert health.rest_left("a") == 300
    for number in range(2_000):
        health.note(f"model {number}", ServerError("down"))
    assert health.failures("model 0") == 0
    assert health.failures("model 1999") == 1


def test_a_call_that_waits_for_its_turn_does_not_ask_a_model_that_rests_by_then() -> None:
    def fail_slowly() -> MemoryReply:  # so that the others wait meanwhile
        time.sleep(0.05)
        return overloaded()

    services, fallback = Services(anthropic=fail_slowly, openai=gpt), Fallback(rest_after=2, rest=60)
    with services.client([CLAUDE, GPT], fallback=fallback, concurrency=1) as client:
        answers = client.map(["Hello"] * 20, concurrency=20)

    found = [answer for answer in answers if isinstance(answer, il.Message)]
    assert [answer.model for answer in found] == [GPT] * 20
    assert services.asked.count("anthropic") == 2
    assert sum(FAILED_ATTEMPTS in answer.metadata.extra for answer in found) == 2  # what was not sent has not failed
    reasons = [answer.metadata.routing.reason for answer in found if answer.metadata.routing is not None]
    assert any("the model rested" in reason for reason in reasons)


def test_the_call_that_tries_a_model_after_its_rest_asks_it_when_it_gets_its_turn() -> None:
    services = Services(anthropic=[overloaded, claude], openai=gpt)
    with services.client([CLAUDE, GPT], fallback=Fallback(rest_after=1, rest=0.01), concurrency=1) as client:
        assert client.send("Hello").model == GPT
        time.sleep(0.02)
        assert client.send("Hello").model == CLAUDE
    assert services.asked == ["anthropic", "openai", "anthropic"]
