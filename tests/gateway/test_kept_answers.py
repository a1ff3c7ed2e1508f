"""Responses are retrieved, continued, deleted and cancelled from the gateway's record, by their key only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Upstream, gateway, new_store, say
from tests.support.loopback import send_bytes

CALL = {"id": "call_7", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Oslo"}'}}
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}


@contextmanager
def _gateway(upstream: Upstream, tmp_path: Path, *names: str, **key: Any) -> Iterator[tuple[httpx.Client, ...]]:
    """Serve a gateway with a key for each name; yield their clients."""
    place = f"sqlite:///{tmp_path}/gateway.db"
    secrets = [new_store(place).add_key(name, **({"keep_answers": True} | key))[1] for name in names]
    with gateway(upstream, auth="keys", store=place) as url:
        clients = [httpx.Client(base_url=url, headers={"authorization": f"Bearer {secret}"}) for secret in secrets]
        yield tuple(clients)
        for client in clients:
            client.close()


def _ask(client: httpx.Client, given: Any, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/responses", json={"model": "m", "input": given, **more})
    assert answer.status_code == 200, answer.text
    if not more.get("stream"):
        return dict(answer.json())
    events = [
        json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: {")
    ]
    return dict(events[-1]["response"])


def _sent(upstream: Upstream) -> list[tuple[str, Any]]:
    return [(each["role"], each.get("content")) for each in upstream.requests[-1][1]["messages"]]


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_continues_a_kept_answer(stream: bool, upstream: Upstream, tmp_path: Path) -> None:
    with _gateway(upstream, tmp_path, "Ann") as (ann,):
        first = _ask(ann, "Hi", instructions="Be short.", stream=stream)
        second = _ask(ann, "And now?", previous_response_id=first["id"], stream=stream)
        _ask(ann, [{"role": "user", "content": "Once more"}], previous_response_id=second["id"])

    assert second["previous_response_id"] == first["id"]
    assert _sent(upstream) == [  # instructions are not inherited
        ("user", "Hi"), ("assistant", "Hello."), ("user", "And now?"), ("assistant", "Hello."), ("user", "Once more"),
    ]  # fmt: skip


def test_a_result_continues_the_answer_with_its_call(upstream: Upstream, tmp_path: Path) -> None:
    def call(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "up-1", "choices": [choice]}
        send_bytes(handler, 200, "application/json", json.dumps(whole).encode())

    upstream.answers = [call, say("Sunny.")]
    with _gateway(upstream, tmp_path, "Ann") as (ann,):
        first = _ask(ann, "Weather?", tools=[TOOL])
        (asked,) = [item for item in first["output"] if item["type"] == "function_call"]
        result = {"type": "function_call_output", "call_id": asked["call_id"], "output": "sunny"}
        _ask(ann, [result], tools=[TOOL], previous_response_id=first["id"])

    sent = upstream.requests[-1][1]["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert sent[2]["content"] == "sunny"


def test_an_answer_is_retrieved_and_deleted_by_its_key_only(upstream: Upstream, tmp_path: Path) -> None:
    with _gateway(upstream, tmp_path, "Ann", "Bob") as (ann, bob):
        made = _ask(ann, "Hi")
        place = f"/v1/responses/{made['id']}"
        found, foreign = ann.get(place), bob.get(place)
        stolen = bob.post("/v1/responses", json={"model": "m", "input": "x", "previous_response_id": made["id"]})
        cancelled, refused = ann.post(f"{place}/cancel"), bob.delete(place)
        deleted, gone = ann.delete(place), ann.get(place)

    assert found.json() == made
    assert (foreign.status_code, refused.status_code, gone.status_code) == (404, 404, 404)
    assert (stolen.status_code, cancelled.status_code) == (400, 400)
    assert "background" in cancelled.json()["error"]["message"]
    assert deleted.json() == {"id": made["id"], "object": "response", "deleted": True}
    assert len(upstream.requests) == 1


def test_nothing_is_kept_unless_key_and_caller_want_it(upstream: Upstream, tmp_path: Path) -> None:
    with _gateway(upstream, tmp_path, "Ann") as (ann,):
        unstored = _ask(ann, "Hi", store=False)
        assert ann.get(f"/v1/responses/{unstored['id']}").status_code == 404
    with _gateway(upstream, tmp_path, "Bob", keep_answers=False) as (bob,):
        made = _ask(bob, "Hi")
        again = bob.post("/v1/responses", json={"model": "m", "input": "x", "previous_response_id": made["id"]})
        assert bob.get(f"/v1/responses/{made['id']}").status_code == 404
        assert again.status_code == 400  # as before: another service's state
    for name in ("gateway.db", "gateway.db-wal"):
        file = tmp_path / name
        assert not file.exists() or b"Hello." not in file.read_bytes()


@pytest.mark.parametrize("name", ["resp_1", "x", "resp_" + "0" * 26, "%2e%2e", "resp_%0d%0a"])
def test_ids_of_no_answer_are_404_or_refused(name: str, upstream: Upstream, tmp_path: Path) -> None:
    with _gateway(upstream, tmp_path, "Ann") as (ann,):
        assert ann.get(f"/v1/responses/{name}").status_code in (404, 405)
