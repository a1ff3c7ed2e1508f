"""The program of typed answers that every service is put through, its cassettes written, and played again.

`python -m tests.plugins.typed.playing` writes the cassettes: requests by the adapters, answers by `wires.py`. They are
authored; `test_cassettes.py` plays them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import httpx
import yaml

from interlingua import Client, Registry
from interlingua.output import OutputMode
from interlingua_cli.cassettes import RecordedExchange, read_body
from interlingua_output import Output
from tests.plugins.typed.kinds import City
from tests.plugins.typed.wires import Said, streamed, whole
from tests.support.adapter import READ
from tests.support.cassettes import FOLDER, REQUEST_HEADERS
from tests.support.quiet import quiet_ledger

BAD = '{"name":"Oslo","people":"many"}'
GOOD = '{"name":"Oslo","people":700000}'
OSLO = City("Oslo", 700_000)
QUESTION = "Which city is the capital of Norway?"
STREAMED_QUESTION = "Name the capital of Norway."
MODES: tuple[OutputMode, ...] = ("native", "tool", "prompt")
_BYTES_PER_TOKEN = 4
_ADDED = {"chat-v2": 450, "converse": 50}  # tokens of the services' own prompts
_SCHEMAS = {"response_format", "text", "output_config", "outputConfig", "generationConfig", "format", "toolConfig"}
_KEY = {"api_key": "k"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "azure": {**_KEY, "base_url": "https://example.openai.azure.com"},
    "bedrock": {**_KEY, "options": {"region": "us-east-1"}},
    "compatible": {**_KEY, "base_url": "http://127.0.0.1:8080/v1"},
    "vertex": {"options": {"project": "example-project", "location": "global", "credentials": lambda: "t"}},
}
# cassette -> model and API
CAST = {
    "anthropic/typed": ("claude-haiku-4-5", "messages"),
    "azure/typed": ("gpt-5", "responses"),
    "azure/typed_chat": ("gpt-5", "chat"),
    "azure/typed_messages": ("claude-haiku-4-5", "messages"),
    "bedrock/typed": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "converse"),
    "cerebras/typed": ("gpt-oss-120b", "chat"),
    "cohere/typed": ("command-a-03-2025", "chat-v2"),
    "compatible/typed": ("any", "chat"),
    "deepseek/typed": ("deepseek-chat", "chat"),
    "deepseek-messages/typed": ("deepseek-v4-pro", "messages"),
    "fireworks/typed": ("accounts/fireworks/models/kimi-k2-instruct", "chat"),
    "google/typed": ("gemini-3-flash-preview", "generate"),
    "groq/typed": ("openai/gpt-oss-120b", "chat"),
    "llamacpp/typed": ("any", "chat"),
    "lmstudio/typed": ("any", "chat"),
    "mistral/typed": ("mistral-large-latest", "chat"),
    "moonshot/typed": ("kimi-k2.6", "chat"),
    "ollama/typed": ("qwen3:4b", "chat-native"),
    "openai/typed_responses": ("gpt-5-mini", "responses"),
    "openai/typed_chat": ("gpt-5-mini", "chat"),
    "openrouter/typed": ("openai/gpt-5.2", "chat"),
    "together/typed": ("Qwen/Qwen3-235B-A22B", "chat"),
    "vertex/typed": ("gemini-3-flash-preview", "generate"),
    "vertex/typed_messages": ("claude-sonnet-4-5", "messages"),
    "vllm/typed": ("any", "chat"),
    "xai/typed": ("grok-4", "chat"),
    "xai-responses/typed": ("grok-4.5", "responses"),
    "openrouter-responses/typed": ("openai/gpt-5.2", "responses"),
    "mistral-responses/typed": ("mistral-large-latest", "responses"),
    "groq-responses/typed": ("openai/gpt-oss-120b", "responses"),
    "baseten/typed": ("zai-org/GLM-5.3", "chat"),
    "huggingface/typed": ("openai/gpt-oss-120b", "chat"),
    "meta/typed": ("muse-spark-1.3", "chat"),
    "nebius/typed": ("Qwen/Qwen3-235B-A22B-Instruct-2507", "chat"),
    "novita/typed": ("zai-org/glm-5.3", "chat"),
    "nvidia/typed": ("nvidia/nemotron-3-super-120b-a12b", "chat"),
    "perplexity/typed": ("sonar-pro", "chat"),
    "qwen/typed": ("qwen3.8-max", "chat"),
    "sambanova/typed": ("gpt-oss-120b", "chat"),
    "minimax-messages/typed": ("MiniMax-M2.7", "messages"),
    "zai/typed": ("glm-5", "chat"),
}


class Step(NamedTuple):
    """One call of the client, and what it is answered."""

    name: str
    arguments: dict[str, Any]
    answers: tuple[str, ...]


def steps(client: Client, api: str) -> Iterator[Step]:
    """Yield the steps: the mode that is chosen, then the others; each a bad answer and a good one, then a stream."""
    native = client.plan_output(City, api=api).mode == "native"
    yield Step("chosen", {"output": City}, (BAD, GOOD))
    yield Step("stream", {"output": City, "stream": True}, (GOOD,))
    if native and client.plan_output(City, api=api, tools=[READ]).mode == "native":
        yield Step("beside tools", {"output": City, "tools": [READ]}, (GOOD,))
    for mode in MODES[1:] if native else MODES[2:]:
        yield Step(mode, {"output": Output(City, mode=mode)}, (BAD, GOOD))
        yield Step(f"{mode} stream", {"output": Output(City, mode=mode), "stream": True}, (GOOD,))


def client_of(cassette: str, answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    """Return a client for a cassette's model that is answered by a function."""
    key = cassette.partition("/")[0]
    model, _ = CAST[cassette]
    http = httpx.Client(transport=httpx.MockTransport(answer))
    settings = {key: _SETTINGS.get(key, _KEY)}
    return Client(f"{key}:{model}", registry=Registry(), environ={}, settings=settings, http_client=http, retry=0)


def play(client: Client, api: str, step: Step) -> Any:
    """Take one step; return the answer, with the partial values before it where it streams."""
    arguments = {**step.arguments, "api": api, "max_tokens": 200}
    with quiet_ledger():
        if not arguments.pop("stream", False):
            return client.send(QUESTION, **arguments), []
        with client.stream(STREAMED_QUESTION, **arguments) as stream:
            parts = list(stream.partials)
            return stream.answer, parts


def _speak(speak: Callable[[str, Said], dict[str, Any]], api: str, said: Said, asked: int) -> dict[str, Any]:
    return speak(api, said._replace(asked=asked))


def write(cassette: str) -> None:
    """Write one cassette."""
    model, api = CAST[cassette]
    written: list[dict[str, Any]] = []
    said: list[Callable[[int], dict[str, Any]]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        words = {name: value for name, value in json.loads(request.content).items() if name not in _SCHEMAS}
        response = said.pop(0)(len(json.dumps(words)) // _BYTES_PER_TOKEN + _ADDED.get(api, 0))
        body = {"method": request.method, "uri": str(request.url)}
        kept = REQUEST_HEADERS - {"accept"}
        headers = {name: [value] for name, value in sorted(request.headers.items()) if name in kept}
        written.append(
            {"request": {**body, "headers": headers, "parsed_body": json.loads(request.content)}, "response": response}
        )
        flat = {name: values[0] for name, values in response["headers"].items()}
        return httpx.Response(200, headers=flat, content=read_body(response["body"]))

    with client_of(cassette, answer) as client:
        for step in steps(client, api):
            asked = {name: value for name, value in step.arguments.items() if name != "output"}
            tool = client.plan_output(step.arguments["output"], api=api, **asked).tool
            speak = streamed if step.arguments.get("stream") else whole
            said[:] = [partial(_speak, speak, api, Said(model, text, tool)) for text in step.answers]
            play(client, api, step)
    text = yaml.safe_dump({"interactions": written, "version": 1}, sort_keys=False, allow_unicode=True, width=160)
    (FOLDER / f"{cassette}.yaml").write_text(text, encoding="utf-8")


class Playback:
    """Answers requests with those of a cassette, in order.

    Attributes:
        exchanges: of the cassette.
        wrong: requests that differ from the cassette's, by place.
    """

    def __init__(self, exchanges: list[RecordedExchange]) -> None:
        self.exchanges = exchanges
        self.wrong: list[tuple[Any, Any]] = []
        self._at = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        found = self.exchanges[self._at]
        self._at += 1
        sent = (str(request.url), json.loads(request.content))
        if sent != (found.uri, found.request):
            self.wrong.append((sent, (found.uri, found.request)))
        return httpx.Response(found.status, headers=dict(found.headers), content=found.body)

    @property
    def done(self) -> bool:
        """True when every exchange was asked for."""
        return self._at == len(self.exchanges)


if __name__ == "__main__":
    for one in CAST:
        write(one)
