"""Requests to Azure and Vertex AI: the official SDKs and we ask the same address with the same secret and body.

Each pair is the same conversation, written by hand for the SDK; differences between the bodies are listed.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import google.auth.credentials
import httpx
import httpx2
import pytest
from anthropic import AnthropicFoundry, AnthropicVertex
from google import genai
from google.genai import types
from openai import AzureOpenAI, OpenAI

import interlingua as il
from interlingua.types import system, user
from tests.support.adapter import READ

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CONVERSATION = [system("Be brief."), user("Hello?")]
GPT, CLAUDE, GEMINI = "gpt-4o-mini", "claude-opus-4-6", "gemini-2.5-flash"
ENDPOINT = "https://r.openai.azure.com"
SECRETS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version", "x-goog-user-project")


class Sent(NamedTuple):
    """What an HTTP client was given to send."""

    method: str
    url: str
    secrets: dict[str, str]
    body: Any


class _Token(google.auth.credentials.Credentials):
    """A token that exists already."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "t"

    def refresh(self, _request: object) -> None:
        raise AssertionError("the token is good")


def _catch(library: Any, sent: list[Sent]) -> Any:
    """Return a client of an HTTP library that keeps the request and answers with a failure."""

    def answer(request: Any) -> Any:
        secrets = {name: request.headers[name] for name in SECRETS if name in request.headers}
        sent.append(Sent(request.method, str(request.url), secrets, json.loads(request.content)))
        return library.Response(400, json={})

    return library.Client(transport=library.MockTransport(answer))


def _chat(client: Any) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
    function = {"name": "read_file", "description": "Read a file.", "parameters": SCHEMA}
    client.chat.completions.create(
        model=GPT, messages=messages, tools=[{"type": "function", "function": function}], max_completion_tokens=20
    )


def _responses(client: Any) -> None:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}
    tool = {"type": "function", "name": "read_file", "description": "Read a file.", "parameters": SCHEMA}
    tools = [{**tool, "strict": False}]
    client.responses.create(
        model=GPT,
        instructions="Be brief.",
        input=[said],
        tools=tools,
        max_output_tokens=20,
        store=False,
    )


def _messages(client: Any, model: str = CLAUDE, **more: Any) -> None:
    client.messages.create(
        model=model,
        max_tokens=20,
        system=[{"type": "text", "text": "Be brief."}],
        messages=[{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
        tools=[{"name": "read_file", "description": "Read a file.", "input_schema": SCHEMA}],
        **more,
    )


def _generate(client: genai.Client, *, stream: bool = False) -> None:
    declared = types.FunctionDeclaration(name="read_file", description="Read a file.", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        system_instruction="Be brief.", max_output_tokens=20, tools=[types.Tool(function_declarations=[declared])]
    )
    call = client.models.generate_content_stream if stream else client.models.generate_content
    answer = call(model=GEMINI, contents="Hello?", config=config)
    list(answer)


def _azure(http: Any, **settings: Any) -> AzureOpenAI:
    return AzureOpenAI(azure_endpoint=ENDPOINT, max_retries=0, http_client=http(httpx2), **settings)


def _openai(http: Any) -> OpenAI:
    headers = {"api-key": "k", "authorization": ""}
    return OpenAI(
        base_url=f"{ENDPOINT}/openai/v1", api_key="t", max_retries=0, http_client=http(httpx2), default_headers=headers
    )


def _foundry(http: Any, **settings: Any) -> AnthropicFoundry:
    return AnthropicFoundry(resource="r", max_retries=0, http_client=http(httpx2), **settings)


def _vertex(http: Any, region: str) -> AnthropicVertex:
    return AnthropicVertex(region=region, project_id="p", access_token="t", max_retries=0, http_client=http(httpx2))


def _genai(http: Any, **settings: Any) -> genai.Client:
    return genai.Client(vertexai=True, http_options=types.HttpOptions(httpx_client=http(httpx)), **settings)


class Pair(NamedTuple):
    """One conversation: how the SDK is asked, how we are, and the paths at which the bodies differ.

    Attributes:
        theirs: the SDK's call, given a maker of HTTP clients.
        model: ours.
        settings: of our client: `api_key`, `base_url`, `api`, `options`.
        listed: paths in the bodies -> why they differ.
        stream: ask for a stream.
    """

    theirs: Callable[[Any], None]
    model: str
    settings: dict[str, Any]
    listed: Mapping[str, str] = MappingProxyType({})
    stream: bool = False


_ON_AZURE = {"api_key": "k", "base_url": ENDPOINT}
_DATED = {"options": {"api_version": "2024-10-21"}}
_TOKEN: dict[str, Any] = {"base_url": ENDPOINT, "options": {"credentials": lambda: "t"}}
_ON_VERTEX = {"project": "p", "credentials": "t"}
_GEMINI = {
    "systemInstruction.role": "the SDK names a role, which the service does not read",
    "tools[0].functionDeclarations[0].parameters_json_schema": "the SDK leaves it in snake_case",
    "tools[0].functionDeclarations[0].parametersJsonSchema": "the same in the API's own spelling",
}
_CLAUDE = {"anthropic_version": "the SDK sends the version of Anthropic's own service (WIRE.md, Claude)"}
PAIRS = {
    "chat, v1": Pair(lambda http: _chat(_openai(http)), f"azure:{GPT}", _ON_AZURE | {"api": "chat"}),
    "responses, v1": Pair(lambda http: _responses(_openai(http)), f"azure:{GPT}", _ON_AZURE),
    "chat, dated": Pair(
        lambda http: _chat(_azure(http, api_key="k", api_version="2024-10-21")),
        f"azure:{GPT}",
        _ON_AZURE | _DATED | {"api": "chat"},
    ),
    "responses, dated": Pair(
        lambda http: _responses(_azure(http, api_key="k", api_version="2024-10-21")),
        f"azure:{GPT}",
        _ON_AZURE | _DATED,
    ),
    "chat, Entra": Pair(
        lambda http: _chat(_azure(http, azure_ad_token_provider=lambda: "t", api_version="2024-10-21")),
        f"azure:{GPT}",
        {"base_url": ENDPOINT, "api": "chat", "options": {**_TOKEN["options"], **_DATED["options"]}},
    ),
    "claude, key": Pair(lambda http: _messages(_foundry(http, api_key="k")), f"azure:{CLAUDE}", _ON_AZURE),
    "claude, Entra": Pair(
        lambda http: _messages(_foundry(http, azure_ad_token_provider=lambda: "t"), stream=True),
        f"azure:{CLAUDE}",
        _TOKEN,
        stream=True,
    ),
    "claude, global": Pair(
        lambda http: _messages(_vertex(http, "global"), "claude-opus-4-5@20251101"),
        "vertex:claude-opus-4-5@20251101",
        {"options": _ON_VERTEX},
        _CLAUDE,
    ),
    "claude, region, streamed": Pair(
        lambda http: _messages(_vertex(http, "us-east5"), stream=True),
        f"vertex:{CLAUDE}",
        {"options": _ON_VERTEX | {"location": "us-east5"}},
        _CLAUDE,
        stream=True,
    ),
    "gemini, global": Pair(
        lambda http: _generate(_genai(http, project="p", location="global", credentials=_Token())),
        f"vertex:{GEMINI}",
        {"options": _ON_VERTEX | {"credentials": _Token()}},
        _GEMINI,
    ),
    "gemini, two regions, streamed": Pair(
        lambda http: _generate(_genai(http, project="p", location="eu", credentials=_Token()), stream=True),
        f"vertex:{GEMINI}",
        {"options": _ON_VERTEX | {"location": "eu"}},
        _GEMINI,
        stream=True,
    ),
    "gemini, region": Pair(
        lambda http: _generate(_genai(http, project="p", location="europe-west1", credentials=_Token())),
        f"vertex:{GEMINI}",
        {"options": _ON_VERTEX | {"location": "europe-west1"}},
        _GEMINI,
    ),
    "gemini, express": Pair(
        lambda http: _generate(_genai(http, api_key="k")), f"vertex:{GEMINI}", {"api_key": "k"}, _GEMINI
    ),
}


def _differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in left.keys() | right.keys():
            at = f"{path}.{name}" if path else name
            if name not in left or name not in right:
                yield at
            else:
                yield from _differences(left[name], right[name], at)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]")
    elif left != right:
        yield path


@pytest.mark.parametrize("name", PAIRS)
def test_the_sdk_sends_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    pair, theirs, ours = PAIRS[name], list[Sent](), list[Sent]()
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        pair.theirs(lambda library: _catch(library, theirs))
    key, settings = pair.model.partition(":")[0], {"retry": 0, "environ": {}}
    with (
        _catch(httpx, ours) as http,
        il.Client(pair.model, http_client=http, settings={key: pair.settings}, **settings) as client,
        contextlib.suppress(il.ProviderError),
    ):
        if pair.stream:
            with client.stream(CONVERSATION, tools=[READ], max_tokens=20) as stream:
                list(stream)
        else:
            client.send(CONVERSATION, tools=[READ], max_tokens=20)

    ((method, url, secrets, body),) = theirs
    assert (ours[0].method, ours[0].url) == (method, url)
    assert ours[0].secrets == {header: value for header, value in secrets.items() if value}
    assert set(_differences(body, ours[0].body)) == pair.listed.keys()
