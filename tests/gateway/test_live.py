"""The official SDKs of five APIs through the gateway, answered by a real model on llama.cpp's server.

Skipped where the server or its model are not on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai

from interlingua_gateway import config_of, create_app
from tests.gateway.conftest import serving
from tests.tools.local_server import files
from tests.tools.local_server.server import MODEL, LocalServer

pytestmark = pytest.mark.skipif(files.missing() is not None, reason=files.missing() or "")
SAY = "Say hello."


@pytest.fixture(scope="module", params=["llamacpp", "anthropic", "openai"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A gateway whose models are all the real one, asked in each of the three APIs that the server has."""
    with LocalServer() as server:
        settings = {
            "llamacpp": {"base_url": f"{server.url}/v1"},
            "anthropic": {"base_url": server.url, "api_key": "k"},
            "openai": {"base_url": f"{server.url}/v1", "api_key": "k"},
        }
        routes = [{"match": "*", "to": [f"{request.param}:{MODEL}"]}]
        with serving(create_app(config_of({"routes": routes}), settings=settings, environ={})) as address:
            yield address


def _messages(url: str) -> tuple[str, str]:
    said = [{"role": "user", "content": SAY}]
    asked: Any = {"model": "m", "max_tokens": 16, "messages": said, "extra_body": {"temperature": 0}}
    with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client:
        with client.messages.stream(**asked) as stream:
            streamed = "".join(stream.text_stream)
        whole = client.messages.create(**asked)
    assert whole.usage.output_tokens > 0
    return "".join(getattr(block, "text", "") for block in whole.content), streamed


def _chat(url: str) -> tuple[str, str]:
    asked: Any = {"model": "m", "max_tokens": 16, "temperature": 0, "messages": [{"role": "user", "content": SAY}]}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        chunks = client.chat.completions.create(**asked, stream=True)
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        whole = client.chat.completions.create(**asked)
    return str(whole.choices[0].message.content), streamed


def _responses(url: str) -> tuple[str, str]:
    asked: Any = {"model": "m", "max_output_tokens": 16, "temperature": 0, "input": SAY}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        events = list(client.responses.create(**asked, stream=True))
        streamed = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        return client.responses.create(**asked).output_text, streamed


def _google(url: str) -> tuple[str, str]:
    asked: Any = {"model": "m", "contents": SAY, "config": {"max_output_tokens": 16, "temperature": 0}}
    with genai.Client(api_key="x", http_options={"base_url": url}) as client:
        streamed = "".join(chunk.text or "" for chunk in client.models.generate_content_stream(**asked))
        return client.models.generate_content(**asked).text or "", streamed


def _ollama(url: str) -> tuple[str, str]:
    client = ollama.Client(host=url)
    asked: Any = {
        "model": "m", "messages": [{"role": "user", "content": SAY}], "options": {"num_predict": 16, "temperature": 0},
    }  # fmt: skip
    streamed = "".join(part.message.content or "" for part in client.chat(**asked, stream=True))
    whole = client.chat(**asked).message.content or ""
    client._client.close()  # the SDK itself cannot close it
    return whole, streamed


@pytest.mark.parametrize("ask", [_messages, _chat, _responses, _google, _ollama])
def test_a_real_model_answers_in_every_api(url: str, ask: Callable[[str], tuple[str, str]]) -> None:
    whole, streamed = ask(url)

    assert whole
    assert streamed == whole  # the same request at temperature 0
