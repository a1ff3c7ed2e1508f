"""How the server is reached: the host people write, the key, the live list; the official SDK as oracle for the host."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from ollama._client import _parse_host

from interlingua.errors import CallerError
from interlingua.plugins import ConnectionSettings, WireRequest, WireResponse
from tests.plugins.ollama.wire import OLLAMA

HOSTS = [
    *("", "1.2.3.4", ":56789", "1.2.3.4:56789", "http://1.2.3.4", "https://1.2.3.4", "https://1.2.3.4:56789"),
    *("example.com", "example.com:56789/", "http://example.com", "example.com/path", "https://example.com:56789/path/"),
    *("[0001:002:003:0004::1]", "[0001:002:003:0004::1]:56789/path", "https://[0001:002:003:0004::1]"),
]
_PORTS = {"http": 80, "https": 443}


def _parts(url: str) -> tuple[str, str | None, int, str]:
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _PORTS[split.scheme], split.path


@pytest.mark.parametrize("host", HOSTS)
def test_the_host_is_read_as_the_sdk_reads_it(host: str) -> None:
    ours = OLLAMA.connection(ConnectionSettings(environ={"OLLAMA_HOST": host})).base_url

    assert _parts(ours) == _parts(_parse_host(host))


def test_a_base_url_is_read_the_same_way_and_comes_first() -> None:
    made = OLLAMA.connection(ConnectionSettings(base_url="gpu.example:1/api", environ={"OLLAMA_HOST": "1.2.3.4"}))

    assert made.base_url == "http://gpu.example:1"


def test_a_listening_address_is_called_on_this_machine() -> None:
    made = OLLAMA.connection(ConnectionSettings(environ={"OLLAMA_HOST": "0.0.0.0:11500"}))

    assert made.base_url == "http://127.0.0.1:11500"


def test_no_key_is_needed_locally_and_the_hosted_service_wants_one() -> None:
    local = OLLAMA.connection(ConnectionSettings())
    hosted = OLLAMA.connection(ConnectionSettings(options={"hosted": True}))

    assert (local.base_url, local.has_key, local.framing) == ("http://127.0.0.1:11434", True, "ndjson")
    assert (hosted.base_url, hosted.has_key) == ("https://ollama.com", False)


def test_the_environments_key_goes_over_https_only() -> None:
    request = WireRequest(path="/api/chat", body=b"", api="chat-native")
    environ = {"OLLAMA_API_KEY": "none-real"}
    plain = OLLAMA.connection(ConnectionSettings(environ=environ))
    hosted = OLLAMA.connection(ConnectionSettings(environ=environ, options={"hosted": True}))
    given = OLLAMA.connection(ConnectionSettings(api_key="given"))

    assert plain.auth(request) == {}
    assert hosted.auth(request) == {"authorization": "Bearer none-real"}
    assert given.auth(request) == {"authorization": "Bearer given"}


def test_the_live_list() -> None:
    request = OLLAMA.auxiliary_request("models", {})
    listed = b'{"models":[{"name":"qwen3:4b","model":"qwen3:4b","size":1}]}'

    assert (request.method, request.path) == ("GET", "/api/tags")
    assert OLLAMA.from_wire_auxiliary("models", WireResponse(body=listed)) == ["qwen3:4b"]


@pytest.mark.parametrize("host", ["::::", "http://[::1", "localhost:port"])
def test_what_is_no_address_is_the_callers_mistake(host: str) -> None:
    with pytest.raises(CallerError, match="OLLAMA_HOST"):
        OLLAMA.connection(ConnectionSettings(environ={"OLLAMA_HOST": host}))
