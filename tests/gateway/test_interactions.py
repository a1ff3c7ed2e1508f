"""Google's SDK creates, streams, continues, retrieves and deletes interactions at a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from google import genai
from google.genai._gaos.lib.compat_errors import APIStatusError

from tests.gateway.conftest import Upstream, chat_chunks, gateway, new_store, refuse, say
from tests.support.loopback import send_bytes

LOOK = {"type": "function", "name": "look", "description": "d", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_7", "type": "function", "function": {"name": "look", "arguments": '{"at": "a"}'}}


@contextmanager
def _sdk(url: str, key: str = "x", version: str = "v1beta") -> Iterator[Any]:
    """Yield the SDK's interactions at an address."""
    options: Any = {"base_url": url, "api_version": version, "retry_options": {"attempts": 1}}
    with genai.Client(api_key=key, http_options=options) as client:
        yield client.interactions


@contextmanager
def _keeping(upstream: Upstream, tmp_path: Path, **more: Any) -> Iterator[tuple[str, str]]:
    """Serve a gateway that keeps answers; yield its address and a key."""
    place = f"sqlite:///{tmp_path}/gateway.db"
    secret = new_store(place).add_key("Ann", keep_answers=True)[1]
    with gateway(upstream, auth="keys", store=place, **more) as url:
        yield url, secret


def _call(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    if body.get("stream"):
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "reasoning_content": "One.\n\nTwo."},
            {"tool_calls": [{"index": 0, **CALL}]},
        ]
        chunks = chat_chunks(*deltas, finish="tool_calls")
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        send_bytes(handler, 200, "text/event-stream", data + b"data: [DONE]\n\n")
        return
    message = {"role": "assistant", "content": None, "reasoning_content": "One.\n\nTwo.", "tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "up-1", "choices": [choice], "usage": usage}
    send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


def _steps_of(events: Any) -> list[Any]:
    """Return the steps that a stream's events begin, with their summaries, signatures and arguments."""
    steps: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.event_type == "step.start":
            steps[event.index] = event.step.model_dump(mode="json", exclude_none=True)
        elif event.event_type == "step.delta":
            step, delta = steps[event.index], event.delta.model_dump(mode="json", exclude_none=True)
            if delta["type"] == "thought_summary":
                step.setdefault("summary", []).append(delta["content"])
            elif delta["type"] == "thought_signature":
                step["signature"] = delta["signature"]
            elif delta["type"] == "arguments_delta":
                step["arguments"] = json.loads(delta["arguments"])
    return list(steps.values())


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_text_whole_and_streamed(upstream: Upstream, version: str) -> None:
    upstream.answers = [say("Hel", "lo.")]
    with gateway(upstream) as url, _sdk(url, version=version) as asked:
        whole = asked.create(model="m", input="Hi", system_instruction="Be brief.")
        events = list(asked.create(model="m", input="Hi", stream=True))

    assert (whole.output_text, whole.status, whole.model, whole.id[:3]) == ("Hello.", "completed", "m", "v1_")
    assert (whole.usage.total_input_tokens, whole.usage.total_output_tokens, whole.usage.total_tokens) == (7, 3, 10)
    assert [event.delta.text for event in events if event.event_type == "step.delta"] == ["Hel", "lo."]
    assert [event.event_type for event in events] == [
        "interaction.created", "interaction.status_update", "step.start", "step.delta", "step.delta", "step.stop",
        "interaction.completed",
    ]  # fmt: skip
    assert events[-1].interaction.usage.total_tokens == 10
    assert [each["role"] for each in upstream.requests[0][1]["messages"]] == ["system", "user"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_turn_that_the_caller_sends_back(upstream: Upstream, stream: bool) -> None:
    """The thinking of the model that answered returns to it: the state is in the signature of a thought."""
    upstream.answers = [_call, say("An apple.")]
    user = {"type": "user_input", "content": [{"type": "text", "text": "What is at a?"}]}
    with gateway(upstream) as url, _sdk(url) as asked:
        made = asked.create(model="m", input=[user], tools=[LOOK], store=False, stream=stream)
        steps = _steps_of(made) if stream else [step.model_dump(mode="json", exclude_none=True) for step in made.steps]
        result = {"type": "function_result", "call_id": steps[1]["id"], "result": {"seen": ["apple"]}}
        last = asked.create(model="m", input=[user, *steps, result], tools=[LOOK], store=False)

    assert [step["type"] for step in steps][:2] == ["thought", "function_call"]
    assert "".join(item["text"] for item in steps[0]["summary"]).replace("\n\n", "") == "One.Two."
    assert (steps[1]["name"], steps[1]["arguments"]) == ("look", {"at": "a"})
    assert last.output_text == "An apple."
    _, answer, given = upstream.requests[-1][1]["messages"]
    assert answer["tool_calls"][0]["id"] == given["tool_call_id"] == "call_7"
    assert answer["reasoning_content"] == "One.\n\nTwo."
    assert json.loads(given["content"]) == {"seen": ["apple"]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_interaction_is_continued_retrieved_and_deleted(upstream: Upstream, tmp_path: Path, stream: bool) -> None:
    with _keeping(upstream, tmp_path) as (url, secret), _sdk(url, secret) as asked:
        made = asked.create(model="m", input="Hi", stream=stream)
        first = list(made)[-1].interaction if stream else made
        second = asked.create(model="m", input="And now?", previous_interaction_id=first.id)
        found = asked.get(id=first.id)
        with pytest.raises(APIStatusError, match="background"):
            asked.cancel(id=first.id)
        asked.delete(id=first.id)
        with pytest.raises(APIStatusError) as gone:
            asked.get(id=first.id)

    assert second.previous_interaction_id == first.id
    assert (found.id, found.output_text) == (first.id, "Hello.")
    assert gone.value.status_code == 404
    assert [(each["role"], each["content"]) for each in upstream.requests[-1][1]["messages"]] == [
        ("user", "Hi"), ("assistant", "Hello."), ("user", "And now?"),
    ]  # fmt: skip


def test_an_interaction_that_is_not_stored_has_no_id(upstream: Upstream, tmp_path: Path) -> None:
    with _keeping(upstream, tmp_path) as (url, secret), _sdk(url, secret) as asked:
        body = {"model": "m", "input": "Hi", "store": False}
        whole = httpx.post(f"{url}/v1beta/interactions", json=body, headers={"x-goog-api-key": secret}).json()
        events = list(asked.create(**body, stream=True))

    assert "id" not in whole
    assert {event.interaction.id for event in events if hasattr(event, "interaction")} == {""}


def test_the_services_own_id_goes_to_it(upstream: Upstream, tmp_path: Path) -> None:
    """A key that keeps answers may continue an interaction that Google keeps: its id is not of this gateway's form."""
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}]
    made = {"id": "v1_ChdzTUJ6YWVIdE9Q", "status": "completed", "model": "x", "steps": steps}

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        send_bytes(handler, 200, "application/json", json.dumps(made).encode())

    upstream.answers = [answer]
    routes = [{"match": "*", "to": ["google:gemini-omni-flash-preview"], "retries": 0}]
    settings = {"google": {"base_url": f"{upstream.url}/v1beta", "api_key": "k"}}
    with _keeping(upstream, tmp_path, routes=routes, settings=settings) as (url, secret), _sdk(url, secret) as asked:
        name = "gemini-omni-flash-preview"
        first = asked.create(model=name, input="Hi")
        asked.create(model=name, input="More", previous_interaction_id=first.id)

    (path, sent), (_, again) = upstream.requests
    assert path == "/v1beta/interactions"
    assert first.id == made["id"]
    assert "store" not in sent
    assert again["previous_interaction_id"] == made["id"]
    assert again["input"] == [{"type": "user_input", "content": [{"type": "text", "text": "More"}]}]


def test_a_failure_is_this_apis_error(upstream: Upstream) -> None:
    upstream.answers = [refuse(429)]
    with gateway(upstream) as url, _sdk(url) as asked:
        answer = httpx.post(f"{url}/v1beta/interactions", json={"model": "m", "input": "Hi"})
        neither = httpx.post(f"{url}/v1beta/interactions", json={"input": "Hi"})
        with pytest.raises(APIStatusError) as caught:
            asked.create(model="m", input="Hi")

    assert answer.status_code == caught.value.status_code == 429
    assert answer.json()["error"]["code"] == "too_many_requests"
    assert neither.status_code == 400
    assert neither.json() == {"error": {"message": "either model or agent is required", "code": "invalid_request"}}
