"""What was asked in each authored exchange of a preset, in canonical values: from the scenario, not the wire.

Nothing is read or sent here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock
from interlingua.types.factories import assistant, system, user
from interlingua.types.messages import Message
from interlingua.types.options import ToolChoice

BRIEF = system("Be brief.")
LIBRARY = system(
    "You are the assistant of a small library. Answer in one short sentence, in plain words, without any list or"
    " heading. When the reader asks about two texts, say first whether they are alike, and only then how they differ."
    " Never quote more than one line of a text, and never guess what a text that you have not seen might say."
)
COMPARE = user("Compare a.txt and b.txt.")
ONE = user("Read a.txt.")
STORY = user("Tell me a long story.")
SKY = user("Which colour is the sky?")
LATE = (system("Be kind."), user("Hello."), assistant("Hello!"), system("Now answer in French."), user("And you?"))
_PICTURE = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
PICTURE = user([TextBlock(text="What is this?"), _PICTURE])
PICTURES = user(
    [
        TextBlock(text="What are these?"),
        _PICTURE,
        ImageBlock(source=MediaSource(kind="url", data="https://example.com/a.png")),
    ]
)
SCHEMA = {
    "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
    "additionalProperties": False,
}  # fmt: skip


@attrs.frozen
class Asked:
    """A conversation, whether the tool is offered, and the options beside the model and the stream."""

    messages: Sequence[Message]
    tool: bool = False
    options: dict[str, Any] = attrs.field(factory=dict)


JSON = Asked([SKY], options={"response_schema": SCHEMA, "response_name": "answer"})
LENGTH = Asked([STORY], options={"max_tokens": 5})
NAMED = Asked([ONE], tool=True, options={"tool_choice": ToolChoice("read_file")})
FORCED = Asked([ONE], tool=True, options={"tool_choice": "required"})
CALLS = Asked([BRIEF, COMPARE], tool=True)
CALL = Asked([COMPARE], tool=True)
PAIRS = ("thinking", "parallel_calls", "sources")
"""Scenarios that are there streamed and, under their name with `_whole`, not."""

_SERVICES: dict[str, dict[str, Asked]] = {
    "groq": {
        "thinking": Asked([LIBRARY, COMPARE], options={"effort": "low"}),
        "parallel_calls": CALLS,
        "thinking_then_call": CALL,
        "forced_tool": FORCED,
        "structured": attrs.evolve(JSON, messages=[LIBRARY, SKY]),
        "image": Asked([PICTURES]),
        "length": LENGTH,
    },
    "deepseek": {
        "thinking": Asked([BRIEF, COMPARE], options={"thinking": True}),
        "parallel_calls": Asked([COMPARE], tool=True, options={"thinking": False}),
        "thinking_then_call": CALL,
        "forced_tool": Asked([ONE], tool=True, options={"thinking": False, "tool_choice": "required"}),
        "any_json": Asked(
            [user("Which colour is the sky? Answer as JSON.")],
            options={"provider_options": {"response_format": {"type": "json_object"}}},
        ),
        "length": LENGTH,
    },
    "xai": {
        "thinking": Asked([BRIEF, COMPARE], options={"effort": "low"}),
        "parallel_calls": CALL,
        "named_tool": Asked([ONE], tool=True, options={"tool_choice": ToolChoice("read_file")}),
        "forced_tool": FORCED,
        "structured": attrs.evolve(JSON, messages=[LIBRARY, SKY]),
        "image": Asked([PICTURES]),
        "system_in_list": Asked(LATE),
        "length": LENGTH,
    },
    "together": {"parallel_calls": CALLS, "forced_tool": FORCED, "length": LENGTH},
    "fireworks": {"parallel_calls": CALLS, "forced_tool": FORCED, "length": LENGTH},
    "cerebras": {
        "parallel_calls": CALLS,
        "thinking": Asked([COMPARE], options={"effort": "low"}),
        "thinking_then_call": CALL,
        "length": LENGTH,
    },
    "moonshot": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE]), "thinking_then_call": CALL, "length": LENGTH,
    },
    "perplexity": {
        "parallel_calls": CALLS, "forced_tool": FORCED, "structured": JSON, "image": Asked([PICTURES]),
        "length": LENGTH, "sources": Asked([SKY]),
    },
    "nvidia": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE]), "forced_tool": FORCED, "structured": JSON,
        "length": LENGTH,
    },
    "huggingface": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE]), "forced_tool": FORCED, "structured": JSON,
        "length": LENGTH,
    },
    "qwen": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE], options={"thinking": True}), "length": LENGTH,
    },
    "meta": {"parallel_calls": CALLS, "structured": JSON, "image": Asked([PICTURE]), "length": LENGTH},
    "baseten": {
        "parallel_calls": CALLS, "forced_tool": FORCED, "named_tool": NAMED, "structured": JSON, "length": LENGTH,
    },
    "sambanova": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE], options={"effort": "low"}), "forced_tool": FORCED,
        "named_tool": NAMED, "structured": JSON, "image": Asked([PICTURE]), "length": LENGTH,
    },
    "nebius": {"parallel_calls": CALLS, "length": LENGTH},
    "novita": {"parallel_calls": CALLS, "thinking": Asked([COMPARE]), "structured": JSON, "length": LENGTH},
    "lmstudio": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE]), "structured": JSON, "image": Asked([PICTURE]),
        "length": LENGTH,
    },
    "vllm": {
        "parallel_calls": CALLS, "thinking": Asked([COMPARE]), "structured": JSON, "image": Asked([PICTURES]),
        "forced_tool": FORCED, "length": LENGTH,
    },
}  # fmt: skip
ASKED: dict[tuple[str, str], Asked] = {
    (key, name + ending): asked
    for key, scenarios in _SERVICES.items()
    for name, asked in scenarios.items()
    for ending in (("", "_whole") if name in PAIRS else ("",))
}
