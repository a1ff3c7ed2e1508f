"""What is recorded, as data: the messages, the options, and the expected failure.

What the local server cannot do on a wire is left out, with what it did instead (tried with llama.cpp's server of
November 2026).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from interlingua import errors
from interlingua.types.tools import SideEffects, ToolDefinition

READ_FILE = ToolDefinition(
    name="read_file",
    description="Read a file of the project.",
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Path of the file."}},
        "required": ["path"],
    },
    side_effects=SideEffects.READ,
)
FILE = "# Lantern\n\nLantern prints the phase of the moon."
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}


def _repeat(*paths: str) -> str:
    """What makes a model of 135 million parameters call the tool: it repeats what it reads."""
    tags = (f'<tool_call>{{"name": "read_file", "arguments": {{"path": "{path}"}}}}</tool_call>' for path in paths)
    return "Repeat exactly:\n" + "\n".join(tags)


@attrs.frozen(kw_only=True)
class Scenario:
    """One recorded conversation.

    Attributes:
        name: what it shows; the cassette's name.
        says: what the user says, turn after turn.
        asks: the same for a real service's model, where a small model needs other words.
        system: the system prompt.
        stream: ask for streams.
        tools: what the model may call.
        result: what every call is answered with, in one more turn; None ends with the call.
        options: request options, over the cast's.
        server: `plain`; `strict` has a key and a window of 256 tokens; `router` checks the model's name.
        key: the key to present; None presents none (to a real service: its own).
        model: a model's name instead of the cast's.
        fails: the error it must become, by status and body, as the provider's WIRE.md lists them.
        fails_on: wire -> another one, where the local server words the failure in its own way.
        service: False where the recording of the local server stays, because a real one would cost too much.
        left_out: wire -> what the local server does instead.
    """

    name: str
    says: tuple[str, ...]
    asks: tuple[str, ...] = ()
    system: str | None = None
    stream: bool = False
    tools: tuple[ToolDefinition, ...] = ()
    result: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)
    server: Literal["plain", "strict", "router"] = "plain"
    key: str | None = None
    model: str | None = None
    fails: type[errors.ProviderError] | None = None
    fails_on: Mapping[str, type[errors.ProviderError]] = attrs.field(factory=dict)
    service: bool = True
    left_out: Mapping[str, str] = attrs.field(factory=dict)


_CALL: dict[str, Any] = {
    "says": (_repeat("README.md"),),
    "asks": ("Read README.md with your tool.",),
    "tools": (READ_FILE,),
    "options": {"max_tokens": 60},
}
_TWO: dict[str, Any] = {
    **_CALL,
    "says": (_repeat("README.md", "LICENSE"),),
    "asks": ("Read README.md and LICENSE with your tool, both at once.",),
    "options": {"max_tokens": 90},
}
_STOP: dict[str, Any] = {
    "says": ("Repeat exactly: one two three four five",),
    "options": {"stop": ("four",)},
    "left_out": {"responses": "the wire has no stop field"},
}
_LENGTH: dict[str, Any] = {
    "says": ("Write a long story about the moon.",),
    "options": {"max_tokens": 16},
    "left_out": {"responses": "an answer cut off is reported as completed, without incomplete_details"},
}
_NOT_ENFORCED = "takes the schema and does not enforce it: the model answers with another object"

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="text", says=("Say hello.",)),
    Scenario(name="system", says=("Who are you?",), system="You are Lantern. Answer in five words."),
    Scenario(name="multi_turn", says=("My name is Ada. Say hello.", "What is my name?")),
    Scenario(name="stream", says=("Say hello.",), stream=True),
    Scenario(name="stream_multi_turn", says=("My name is Ada. Say hello.", "What is my name?"), stream=True),
    Scenario(name="stop", **_STOP),
    Scenario(name="stream_stop", stream=True, **_STOP),
    Scenario(name="length", **_LENGTH),
    Scenario(name="stream_length", stream=True, **_LENGTH),
    Scenario(name="tool_call", **_CALL),
    Scenario(name="stream_tool_call", stream=True, **_CALL),
    Scenario(name="parallel_calls", **_TWO),
    Scenario(name="stream_parallel_calls", stream=True, **_TWO),
    Scenario(name="tool_result", result=FILE, **_CALL),
    Scenario(name="parallel_results", result=FILE, **_TWO),
    Scenario(
        name="structured",
        says=("Paris has 2 million people. Give city and people as JSON.",),
        options={"response_schema": CITY, "response_name": "city", "max_tokens": 48},
        left_out={"messages": _NOT_ENFORCED, "responses": _NOT_ENFORCED},
    ),
    Scenario(
        name="bad_request",
        says=("Say hello.",),
        options={"provider_options": {"temperature": "hot"}},
        fails=errors.BadRequestError,
    ),
    Scenario(
        name="unknown_model",
        says=("Say hello.",),
        server="router",
        model="no-such-model",
        fails=errors.ModelNotFoundError,
        # 400 invalid_request_error, where the service itself answers 404 not_found_error
        fails_on={"messages": errors.BadRequestError},
    ),
    Scenario(
        name="context_overflow",
        says=("one two three four five six seven eight nine ten " * 30,),
        server="strict",
        key="local-key",
        fails=errors.ContextWindowExceededError,
        service=False,
    ),
    Scenario(
        name="unauthorized", says=("Say hello.",), server="strict", key="wrong-key", fails=errors.AuthenticationError
    ),
)


def scenarios_of(wire: str) -> tuple[Scenario, ...]:
    """Return what is recorded on a wire."""
    return tuple(scenario for scenario in SCENARIOS if wire not in scenario.left_out)
