"""Losses of an answer on its way to the caller are reported: in a header if it is whole, else in log and metrics."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Upstream, gateway, wait_for_metric
from tests.gateway.test_recall import think
from tests.support.loopback import send_bytes

ROUTES: Any = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
REASON = "callers of this API send nothing back but text, thinking and calls without ids"


def _ask(upstream: Upstream, stream: bool, tmp_path: Path) -> tuple[httpx.Response, str]:
    upstream.answers = [think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    body = {"model": "qwen-x", "stream": stream, "messages": [{"role": "user", "content": "How far is it?"}]}
    with gateway(upstream, settings=settings, routes=ROUTES, store=f"sqlite:///{tmp_path}/g.db") as url:
        answer = httpx.post(f"{url}/api/chat", json=body)
        return answer, wait_for_metric(url, 'interlingua_gateway_losses_total{api="ollama"')


def test_a_whole_answer_says_in_a_header_what_it_lost(upstream: Upstream, tmp_path: Path) -> None:
    answer, metrics = _ask(upstream, False, tmp_path)

    assert answer.status_code == 200
    rows = json.loads(answer.headers["x-interlingua-losses"])
    assert [row for row in rows if row["reason"] == REASON]
    assert f'model="anthropic:claude-opus-4-5",verdict="dropped"}} {float(len(rows))}' in metrics


def test_a_streamed_answer_says_it_in_the_log_and_in_metrics(
    upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "interlingua.gateway"):
        answer, metrics = _ask(upstream, True, tmp_path)

    assert answer.status_code == 200
    assert REASON not in answer.headers["x-interlingua-losses"]
    [line] = [record.getMessage() for record in caplog.records if "losses of the answer" in record.getMessage()]
    assert answer.headers["x-interlingua-request-id"] in line
    assert REASON in line
    assert (
        'interlingua_gateway_losses_total{api="ollama",model="anthropic:claude-opus-4-5",verdict="dropped"}' in metrics
    )


CALLED = {"q": "a"}
FORCED: dict[str, Any] = {
    "anthropic:claude-opus-5-5": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "find", "input": CALLED}],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "cohere:command-r-08-2024": {
        "id": "c", "finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 7, "output_tokens": 3}},
        "message": {"role": "assistant", "tool_calls": [
            {"id": "find_1", "type": "function", "function": {"name": "find", "arguments": json.dumps(CALLED)}},
        ]},
    },
}  # fmt: skip


@pytest.mark.parametrize("model", FORCED)
def test_a_callers_forced_tool_is_the_only_one_where_the_model_cannot_be_forced(upstream: Upstream, model: str) -> None:
    upstream.answers = [
        lambda handler, _: send_bytes(handler, 200, "application/json", json.dumps(FORCED[model]).encode())
    ]
    settings = {model.partition(":")[0]: {"base_url": upstream.url, "api_key": "k"}}
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    body = {
        "model": "x", "messages": [{"role": "user", "content": "Find a."}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": schema}} for name in ("find", "read")],
        "tool_choice": {"type": "function", "function": {"name": "find"}},
    }  # fmt: skip
    with gateway(upstream, settings=settings, routes=[{"match": "*", "to": [model], "retries": 0}]) as url:
        answer = httpx.post(f"{url}/v1/chat/completions", json=body)

    assert answer.status_code == 200, answer.text
    (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("find", CALLED)
    (_, sent), *_ = upstream.requests
    assert "tool_choice" not in sent
    assert "Answer with a call of this tool" in json.dumps(sent["tools"])
    assert len(sent["tools"]) == 1
    rows = json.loads(answer.headers["x-interlingua-losses"])
    assert ("options.tool_choice", "rewritten") in [(row["path"], row["verdict"]) for row in rows]
