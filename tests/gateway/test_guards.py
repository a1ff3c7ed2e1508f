"""Guards see what a model gets and what a caller gets; they may change or refuse it, in every API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from interlingua.errors import CallerError
from interlingua.types import Message, TextBlock, replace
from interlingua_gateway import Caller, Guard, GuardError, config_of, create_app
from interlingua_serving import InboundRequest
from tests.gateway.apis import APIS, Api, error_message, last_value
from tests.gateway.conftest import Upstream, gateway, new_store, say

HERE = "tests.gateway.test_guards"


def _changed(message: Message, old: str, new: str) -> Message:
    blocks = [
        replace(block, text=block.text.replace(old, new)) if isinstance(block, TextBlock) else block
        for block in message.content
    ]
    return replace(message, content=tuple(blocks))


class HideNames(Guard):
    """Replaces a name in requests."""

    async def check_request(self, request: InboundRequest, caller: Caller) -> InboundRequest:
        assert (caller.key, caller.team, caller.model) == ("local", "", "m")
        return attrs.evolve(request, messages=tuple([_changed(each, "Ann", "(name)") for each in request.messages]))


class RefuseWeapons(Guard):
    """Refuses requests with a word."""

    async def check_request(self, request: InboundRequest, caller: Caller) -> InboundRequest:
        if any("weapon" in message.text for message in request.messages):
            raise GuardError("this gateway does not answer questions about weapons")
        return request


class CleanAnswers(Guard):
    """Replaces a word in answers, and refuses those with another one."""

    async def check_answer(self, answer: Message, caller: Caller) -> Message:
        if "poison" in answer.text:
            raise GuardError("the answer was refused")
        return _changed(answer, "darn", "****")


class Broken(Guard):
    """Fails."""

    async def check_request(self, request: InboundRequest, caller: Caller) -> InboundRequest:
        raise RuntimeError("secret inside")


apis = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)


def _asked(upstream: Upstream) -> str:
    return json.dumps(upstream.requests[-1][1])


@apis
def test_a_guard_changes_what_a_model_gets(api: Api, upstream: Upstream) -> None:
    with gateway(upstream, guards=[f"{HERE}:HideNames"]) as url:
        answer = httpx.post(url + api.path, json=api.asking("I am Ann"))

    assert answer.status_code == 200
    assert api.finished in answer.content
    assert "I am (name)" in _asked(upstream)
    assert "Ann" not in _asked(upstream)


@apis
def test_a_guard_refuses_a_request_in_the_callers_own_form(api: Api, upstream: Upstream) -> None:
    with gateway(upstream, guards=[f"{HERE}:RefuseWeapons"]) as url:
        answer = httpx.post(url + api.path, json=api.asking("a weapon"))

    assert answer.status_code == 400
    assert error_message(api, answer.json()) == "this gateway does not answer questions about weapons"
    assert upstream.requests == []


@apis
def test_a_stream_waits_for_the_check_of_its_answer(api: Api, upstream: Upstream) -> None:
    upstream.answers = [say("a da", "rn good answer")]  # the word is in two pieces of the stream
    with gateway(upstream, guards=[f"{HERE}:CleanAnswers"]) as url:
        answer = httpx.post(url + api.path, json=api.body)

    text = answer.text
    assert answer.status_code == 200
    assert api.finished in answer.content
    assert "****" in text or "**" in text
    assert "darn" not in text
    assert "rn good" not in text
    assert last_value(answer.content)


def test_a_refused_answer_is_paid_and_no_other_model_is_asked(upstream: Upstream, tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path}/gateway.db")
    key, secret = store.add_key("Ann")
    upstream.answers = [say("poison")]
    route = {"match": "*", "to": ["llamacpp:up-1", "llamacpp:up-2"], "retries": 2}
    given: dict[str, Any] = {"routes": [route], "auth": "keys", "store": f"sqlite:///{tmp_path}/gateway.db"}
    with gateway(upstream, guards=[f"{HERE}:CleanAnswers"], **given) as url:
        headers = {"authorization": f"Bearer {secret}"}
        answer = httpx.post(url + APIS[1].path, json=APIS[1].body, headers=headers)

    assert answer.status_code == 400
    assert "poison" not in answer.text
    assert len(upstream.requests) == 1
    spent = store.spent(key)
    assert (spent.requests, spent.input_tokens, spent.output_tokens) == (1, 7, 3)


def test_a_broken_guard_lets_nothing_pass(upstream: Upstream) -> None:
    with gateway(upstream, guards=[f"{HERE}:Broken"]) as url:
        answer = httpx.post(url + APIS[1].path, json=APIS[1].body)

    assert answer.status_code == 500
    assert "secret inside" not in answer.text
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nowhere:Guard", "No module named"), (f"{HERE}:Missing", "no attribute"), ("json:JSONDecoder", "not a Guard")],
)
def test_a_wrong_guard_is_refused_at_the_start(name: str, reason: str) -> None:
    with pytest.raises(CallerError, match=rf"guards\[1\].*{reason}"):
        create_app(config_of({"guards": [f"{HERE}:HideNames", name]}), environ={})
