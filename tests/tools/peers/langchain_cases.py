"""langchain-tests for five clients and five upstreams; PEERS has the addresses, PEERS_KEY the key."""

from __future__ import annotations

import json
import os
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

PEERS, KEY = json.loads(os.environ["PEERS"]), os.environ["PEERS_KEY"]
CLIENTS: dict[str, Any] = {
    "openai-chat": (ChatOpenAI, "/v1", {"use_responses_api": False, "stream_usage": True}),
    "openai-responses": (ChatOpenAI, "/v1", {"use_responses_api": True}),
    "anthropic": (ChatAnthropic, "", {"max_tokens": 500}),
    "google": (ChatGoogleGenerativeAI, "", {}),
    "ollama": (ChatOllama, "", {}),
}


def _suite(client: str, place: str, url: str, model: str) -> type:
    cls, path, given = CLIENTS[client]
    params = {"model": model, **given}
    if cls is ChatOllama:
        params |= {"base_url": url, "client_kwargs": {"headers": {"authorization": f"Bearer {KEY}"}}}
    elif cls is ChatGoogleGenerativeAI:
        params |= {"google_api_key": KEY, "base_url": url}
    else:
        params |= {"api_key": KEY, "base_url": url + path}

    class Suite(ChatModelIntegrationTests):
        @property
        def chat_model_class(self) -> Any:
            return cls

        @property
        def chat_model_params(self) -> dict[str, Any]:
            return params

        @property
        def supports_json_mode(self) -> bool:
            return cls in (ChatOpenAI, ChatOllama)

        @property
        def has_tool_choice(self) -> bool:
            return cls is not ChatOllama

    Suite.__name__ = Suite.__qualname__ = f"Test_{client}_at_{place}".replace("-", "_")
    return Suite


for _client in CLIENTS:
    for _place, (_url, _model) in PEERS.items():
        _made = _suite(_client, _place, _url, _model)
        globals()[_made.__name__] = _made
