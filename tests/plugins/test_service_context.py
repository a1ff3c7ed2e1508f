"""Context editing, compaction and containers of services, from recorded exchanges.

Each is an option of one service (docs/how-to/let-a-service-keep-the-context.md): it reaches the service unchanged, and
what the answer holds of it goes back to the same model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import interlingua as il
from interlingua.plugins import Registry, RequestContext, WireResponse
from interlingua.types import Message, OpaqueBlock, Origin, user
from tests.support.corpus import Corpus

REGISTRY = Registry()
APIS = {"anthropic": ("anthropic-messages-2026-11", "anthropic-messages"), "openai": ("openai-responses",)}
CLIENT = il.Client(settings={key: {"api_key": "k"} for key in APIS})


def _entries(corpus: Corpus, key: str, option: str) -> Iterator[dict[str, Any]]:
    for api in APIS[key]:
        for entry in corpus.entries(api):
            request = entry.get("request")
            if isinstance(request, dict) and request.get(option) and entry["status"] == 200 and entry["kind"] == "json":
                yield entry


def _read(key: str, entry: dict[str, Any]) -> Message:
    provider = REGISTRY.provider(key)
    api = "messages" if key == "anthropic" else "responses"
    context = RequestContext(origin=Origin(key, api, entry["request"]["model"]))
    return provider.from_wire_response(WireResponse(body=entry["response_text"].encode()), context)


def _body(key: str, model: str, messages: list[Message], **options: Any) -> tuple[dict[str, Any], dict[str, str]]:
    made = CLIENT.build_request(messages, model=f"{key}:{model}", **options)
    return json.loads(made.body), dict(made.headers)


def _blocks(body: dict[str, Any]) -> list[Any]:
    items = list(body.get("input") or ())
    return items + [block for message in body.get("messages") or () for block in message["content"]]


def test_the_options_reach_the_service_unchanged(corpus: Corpus) -> None:
    found = set()
    for key in APIS:
        for option in ("context_management", "container"):
            for entry in _entries(corpus, key, option):
                given, model = entry["request"][option], entry["request"]["model"]
                body, _ = _body(key, model, [user("Go on.")], provider_options={option: given})
                assert body[option] == given, entry["id"]
                found.add((key, option))
    assert found >= {("anthropic", "context_management"), ("anthropic", "container"), ("openai", "context_management")}


def test_a_compaction_goes_back_to_its_model_and_not_elsewhere(corpus: Corpus) -> None:
    seen = dict.fromkeys(APIS, 0)
    for key in APIS:
        for entry in _entries(corpus, key, "context_management"):
            answer = _read(key, entry)
            raw = [
                block.data for block in answer.content if isinstance(block, OpaqueBlock) and block.kind == "compaction"
            ]
            if not raw:
                continue
            seen[key] += 1
            history = [user("Long story."), answer, user("Go on.")]
            body, headers = _body(key, entry["request"]["model"], history)
            assert [block for block in _blocks(body) if block.get("type") == "compaction"] == raw, entry["id"]
            if key == "anthropic":
                assert "compact-" in headers["anthropic-beta"]
            other = "openai" if key == "anthropic" else "anthropic"
            model = {"openai": "gpt-5.5", "anthropic": "claude-haiku-4-5"}[other]
            made = CLIENT.build_request(history, model=f"{other}:{model}", allow_loss=True)
            assert "compaction" not in made.body.decode()
            assert [row.block_type for row in made.losses if row.severity == "content"] == ["opaque"] * len(raw)
    assert all(seen.values()), seen


def test_the_container_of_an_answer_is_kept(corpus: Corpus) -> None:
    """Its id is needed for the next request: `provider_options={"container": id}`."""
    found = 0
    for entry in _entries(corpus, "anthropic", "container"):
        container = json.loads(entry["response_text"]).get("container")
        if container:
            raw = _read("anthropic", entry).metadata.provider_raw
            assert raw is not None
            assert raw["trace"]["container"] == container
            found += 1
    assert found
