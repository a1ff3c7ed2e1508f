"""Errors and logs that say what to do: arguments of the wrong place, the API of a server, `INTERLINGUA_LOG`."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua._request.prepare import OF_CLIENTS
from interlingua.errors import CallerError
from interlingua.fallback import Fallback
from interlingua.plugins import explain_arguments
from interlingua.testing import MemoryReply, MemoryTransport, ScriptedModel, ScriptedReply
from interlingua.types import RequestOptions
from tests.core.http.test_fallback import CLAUDE, ENVIRON, GPT, claude


@pytest.mark.parametrize("client", [il.Client, il.AsyncClient])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("capabilities", r"has no argument 'capabilities': pass it to a call: client.send\(…, capabilities=…\)$"),
        ("max_tokens", "pass it to a call"),
        ("tools", "pass it to a call"),
        ("base_ur", r"did you mean base_url\?$"),
        ("zzz", "there are: model, api_key, .* uploads$"),
    ],
)
def test_an_argument_of_the_wrong_place_is_named(client: Any, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^{client.__name__}\(\) .*{hint}"):
        client(CLAUDE, **{name: {}})


@pytest.mark.parametrize("name", OF_CLIENTS)
def test_a_call_names_the_client_for_its_arguments(name: str) -> None:
    options: Any = {name: None}
    with pytest.raises(CallerError, match=rf"^unknown option '{name}': pass it to the client: Client\(…, {name}=…\)"):
        il.Client(CLAUDE, environ=ENVIRON).send("Hello", **options)


def test_each_argument_of_clients_has_its_hint() -> None:
    arguments = inspect.signature(il.Client).parameters.keys()
    assert set(OF_CLIENTS) == arguments - attrs.fields_dict(RequestOptions).keys()


@pytest.mark.parametrize(
    ("status", "body"), [(404, {"detail": "Not Found"}), (405, {"detail": "Method Not Allowed"}), (404, {})]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_without_the_responses_api_gives_a_hint(status: int, body: dict[str, str], streamed: bool) -> None:
    transport = MemoryTransport(lambda _: MemoryReply(json.dumps(body).encode(), status=status))
    client = il.Client(GPT, base_url="http://127.0.0.1:9/v1", environ=ENVIRON, transport=transport)
    ask: Any = client.stream("Hello").__enter__ if streamed else partial(client.send, "Hello")
    with pytest.raises(il.ProviderError, match="with api='chat'"):
        ask()
    with pytest.raises(il.ProviderError) as caught:
        client.send("Hello", api="chat")
    assert "api='chat'" not in str(caught.value)


def test_a_model_that_the_service_does_not_have_is_no_other_api() -> None:
    error = {"message": "The model does not exist", "type": "invalid_request_error", "code": "model_not_found"}
    transport = MemoryTransport(lambda _: MemoryReply(json.dumps({"error": error}).encode(), status=404))
    with pytest.raises(il.errors.ModelNotFoundError) as caught:
        il.Client(GPT, environ=ENVIRON, transport=transport).send("Hello")
    assert "api='chat'" not in str(caught.value)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The library's logger, as it was before."""
    found = logging.getLogger("interlingua")
    level, handlers = found.level, list(found.handlers)
    yield found
    found.setLevel(level)
    found.handlers[:] = handlers


def test_the_environment_shows_requests_without_secrets(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(logging.StreamHandler, "emit", lambda self, record: lines.append(self.format(record)))
    environ = {**ENVIRON, "ANTHROPIC_API_KEY": "sk-secret-key", "INTERLINGUA_LOG": "debug"}
    for _ in range(2):
        il.Client(CLAUDE, environ=environ, transport=MemoryTransport(lambda _: claude())).send("a private question")

    shown = [line for line in lines if line.startswith("20") and "POST" in line]
    assert len(shown) == 2, "one line for each request, however many clients there are"
    assert "https://api.anthropic.com/v1/messages" in shown[0]
    assert any("answered with HTTP 200" in line for line in lines)
    assert not any(word in line for line in lines for word in ("sk-secret-key", "private question", "from claude"))
    with pytest.raises(CallerError, match="INTERLINGUA_LOG must be debug"):
        il.Client(CLAUDE, environ={**ENVIRON, "INTERLINGUA_LOG": "loud"})
    assert logger.level == logging.DEBUG


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("history", "pass the messages as the first argument$"),
        ("prompt", "pass the messages as the first argument$"),
        ("confirm", r"it belongs to agents: Agent\(…, confirm=…\)$"),
        ("max_turns", r"it belongs to agents: Agent\(…, max_turns=…\)$"),
    ],
)
def test_a_call_names_the_place_of_what_is_no_option(name: str, hint: str) -> None:
    options: Any = {name: 1}
    with pytest.raises(CallerError, match=rf"^unknown option '{name}': {hint}"):
        il.Client(CLAUDE, environ=ENVIRON).send("hi", **options)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("delay", r"pass it to a ScriptedReply\(…, delay=…\)$"),
        ("max_tokens", r"pass it to a call: client.send\(…, max_tokens=…\)$"),
        ("supports_image", "did you mean supports_images"),
    ],
)
def test_a_scripted_model_names_the_place_of_what_is_no_capability(name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^ScriptedModel\(\) has no argument '{name}': {hint}"):
        ScriptedModel(["hi"], **{name: 1})


_CLIENT = ScriptedModel(["hi"]).client()


@pytest.mark.parametrize(
    ("call", "name", "hint"),
    [
        (il.Retry, "attempts", r"did you mean max_attempts\?$"),
        (il.Timeout, "read", "use between_chunks=…$"),
        (Fallback, "models", r"pass the models to the client: Client\(\[…\]\)$"),
        (Fallback, "cooldown", "use rest=…$"),
        (ScriptedReply, "latency", "there are: answer, delay, pause, breaks_after$"),
        (il.Client, "system", r"put interlingua.system\(…\) first in the messages$"),
        (partial(_CLIENT.resume, il.user("hi")), "tools", r"pass it to client.start\(…, tools=…\)$"),
    ],
)
def test_classes_and_methods_name_the_right_argument(call: Any, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^[A-Z][a-z]+(Reply)?(\.resume)?\(\) has no argument '{name}': {hint}"):
        call(**{name: 1})


def test_an_error_within_a_decorated_function_is_its_own() -> None:
    @explain_arguments()
    def divide(by: int) -> float:
        return 1 / by

    assert inspect.signature(divide).parameters.keys() == {"by"}
    with pytest.raises(TypeError, match="unsupported operand"):
        divide(by="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        divide()  # type: ignore[call-arg]


def test_a_mistake_in_the_options_of_map_is_no_failure_of_each_request() -> None:
    options: Any = {"temprature": 1}
    with pytest.raises(CallerError, match=r"did you mean temperature\?"):
        _CLIENT.map(["a", "b"], **options)


_KEY = "sk-0123456789abcdef"
_QUOTED = {"error": {"type": "authentication_error", "message": f"wrong key {_KEY}.", "code": f"of {_KEY}"}}


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", [CLAUDE, GPT])
def test_a_key_that_the_service_quotes_is_in_no_error(
    model: str, status: int, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = {"x-request-id": f"of {_KEY}"}
    transport = MemoryTransport(lambda _: MemoryReply(json.dumps(_QUOTED).encode(), status=status, headers=headers))
    client = il.Client(model, api_key=_KEY, environ={}, transport=transport, retry=0)
    ask: Any = client.stream("Hello").__enter__ if streamed else partial(client.send, "Hello")
    with pytest.raises(il.InterlinguaError) as caught:
        ask()
    error = caught.value
    assert "wrong key …" in str(error)
    shown = [str(error), repr(error), *map(str, error.args), str(vars(error)), *caplog.messages]
    assert not [text for text in shown if _KEY in text]


def test_a_key_that_is_quoted_within_a_stream_is_in_no_event() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        {"type": "error", **_QUOTED},
    ]
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()
    transport = MemoryTransport(lambda _: MemoryReply(body, headers={"content-type": "text/event-stream"}))
    client = il.Client(CLAUDE, api_key=_KEY, environ={}, transport=transport, retry=0)
    seen: list[Any] = []
    with pytest.raises(il.ProviderError) as caught, client.stream("Hello") as stream:
        seen.extend(stream)
    assert "…" in str(caught.value)
    assert _KEY not in str([*seen, vars(caught.value), caught.value.partial])
