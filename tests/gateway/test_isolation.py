"""State goes back only to the conversation it came from, however often a question is repeated."""

from __future__ import annotations

import json
import random
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.counts import FULL
from tests.support.loopback import send_bytes

ROUTES: Any = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
QUESTIONS = ["How wide is Io?", "How wide is Europa?"]


class Signing:
    """A service of the Messages API whose every answer is signed with its own number."""

    def __init__(self, *, calls: bool) -> None:
        self.count, self._calls = 0, calls

    def __call__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.count += 1
        said: dict[str, Any] = {"type": "text", "text": "Yes."}
        if (
            self._calls
            and body["messages"][-1]["role"] == "user"
            and "tool_result" not in json.dumps(body["messages"][-1])
        ):
            said = {"type": "tool_use", "id": f"toolu_{self.count:024}", "name": "look", "input": {}}
        thought = {"type": "thinking", "thinking": "Hm.", "signature": f"sig-{self.count:06}-"}
        whole = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-up", "content": [thought, said],
            "stop_reason": "tool_use" if said["type"] == "tool_use" else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }  # fmt: skip
        send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


@attrs.define
class Conversation:
    """A caller's conversation, and the number of the service's answer to each of its requests."""

    key: str
    question: str
    messages: list[dict[str, Any]] = attrs.Factory(list)
    answers: list[int] = attrs.Factory(list)


def _step(url: str, path: str, one: Conversation, service: Signing) -> None:
    """Ask the next question of a conversation, or send the result of its call."""
    last = one.messages[-1] if one.messages else {}
    calls = last.get("tool_calls") or []
    if calls:
        one.messages += [
            {"role": "tool", "tool_call_id": call.get("id"), "tool_name": "look", "content": "3643"} for call in calls
        ]
    else:
        one.messages.append({"role": "user", "content": one.question})
    body = {"model": "m", "stream": False, "tools": [TOOL], "messages": one.messages}
    answer = httpx.post(url + path, json=body, headers={"authorization": f"Bearer {one.key}"})
    assert answer.status_code == 200, answer.text
    one.answers.append(service.count)
    given = answer.json()
    message = given["choices"][0]["message"] if "choices" in given else given["message"]
    one.messages.append({name: message[name] for name in ("role", "content", "tool_calls") if message.get(name)})


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
@pytest.mark.parametrize("calls", [True, False], ids=["calls", "texts"])
def test_every_signature_goes_back_to_its_own_conversation(
    upstream: Upstream, tmp_path: Path, path: str, calls: bool
) -> None:
    service = Signing(calls=calls)
    upstream.answers = [service]
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    keys = [store.add_key(f"tenant {number}")[1] for number in range(5)]
    store.close()
    chance = random.Random(27)
    conversations = [Conversation(key, question) for key in keys for question in QUESTIONS for _ in range(2)]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    with gateway(upstream, settings=settings, routes=ROUTES, auth="keys", store=place) as url:
        for _ in range(1_000 if FULL else 80):
            one = chance.choice(conversations)
            earlier = list(one.answers)
            _step(url, path, one, service)
            sent = json.dumps(upstream.requests[-1][1]["messages"])
            own = [f"sig-{number:06}-" for number in earlier]
            found = [f"sig-{rest[:6]}-" for rest in sent.split("sig-")[1:]]
            assert set(found) <= set(own), (earlier, found)
            if calls:
                assert found == own
            if len(one.messages) > 12:
                one.messages.clear()
                one.answers.clear()
