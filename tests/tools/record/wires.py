"""The wires that are recorded, as data: provider, API, folder of cassettes, and models.

No key is held here: a real service's is read from the environment by the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tests.tools.local_server.server import MODEL


@attrs.frozen(kw_only=True)
class Cast:
    """The model that plays, and what each of its requests says besides the scenario's own options."""

    model: str
    options: Mapping[str, Any]
    local: bool


# temperature 0 makes a small model repeat what it is asked to repeat
LOCAL = Cast(model=MODEL, options={"max_tokens": 32, "temperature": 0.0}, local=True)


@attrs.frozen(kw_only=True)
class Wire:
    """One wire.

    Attributes:
        provider: provider key.
        api: its API, where it has several.
        folder: the cassettes' folder.
        prefix: how their names begin; an authored cassette's name begins otherwise.
        path: where the wire is found below a llama.cpp server's address.
        test: the test that owns the cassettes.
        service: the model of the real service, and its options.
        key: environment variable of the real service's key; None where there is no service.
    """

    provider: str
    api: str | None = None
    folder: str
    prefix: str = "recorded_"
    path: str = "/v1"
    test: str
    service: Cast | None = None
    key: str | None = None

    def cassette(self, scenario: str) -> str:
        """Return a scenario's cassette, relative to the cassettes folder."""
        return f"{self.folder}/{self.prefix}{scenario}.yaml"

    def cast_of(self, model: str) -> Cast:
        """Return who played where a cassette's requests name this model (or none that exists)."""
        return self.service if self.service is not None and model == self.service.model else LOCAL

    def settings(self, url: str | None, key: str | None = None) -> dict[str, dict[str, Any]]:
        """Return a client's settings: for the server at `url`, or for the real service."""
        own = {"base_url": url and url.rstrip("/").removesuffix("/v1") + self.path, "api": self.api, "api_key": key}
        return {self.provider: {name: value for name, value in own.items() if value is not None}}


_GPT = Cast(model="gpt-4.1-mini", options={"max_tokens": 256}, local=False)

WIRES: Mapping[str, Wire] = {
    "messages": Wire(
        provider="anthropic",
        folder="anthropic",
        path="",
        test="tests/plugins/anthropic/test_recorded.py",
        service=Cast(model="claude-haiku-4-5", options={"max_tokens": 256}, local=False),
        key="ANTHROPIC_API_KEY",
    ),
    "responses": Wire(
        provider="openai",
        api="responses",
        folder="openai",
        prefix="recorded_responses_",
        test="tests/plugins/openai/test_recorded.py",
        service=_GPT,
        key="OPENAI_API_KEY",
    ),
    "chat": Wire(
        provider="openai",
        api="chat",
        folder="openai",
        prefix="recorded_chat_",
        test="tests/plugins/openai/test_recorded.py",
        service=_GPT,
        key="OPENAI_API_KEY",
    ),
    "llamacpp": Wire(
        provider="llamacpp",
        folder="llamacpp",
        test="tests/plugins/chat_completions/test_recorded.py",
    ),
}
