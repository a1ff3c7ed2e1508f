"""The session of seed 003's worked examples: summarise a file with a tool, swap, go on, and come back.

Never prints and never chooses where requests go; it is a generator of what happened.
The command and the recorder come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from interlingua.http.client import Client
from interlingua.plugins.wire import Loss
from interlingua.types.blocks import CacheHint, TextBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message
from interlingua.types.tools import SideEffects, ToolDefinition

FILES: Mapping[str, str] = {
    "README.md": (
        "# Lantern\n\nLantern is a small program that prints the phase of the moon. It is written in Python and needs "
        "no network, because it computes the phase from the date. Sailors and gardeners use it to plan their nights."
    ),
    "LICENSE": (
        "You may use, copy, change and sell this software, provided that you keep the copyright notice. It comes "
        "without any warranty."
    ),
}


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


_MOST_CALLS = 3


def _small_model(path: str, lead: str) -> str:
    """What makes a model of 135 million parameters call the tool: it repeats what it reads."""
    return f'{lead}<tool_call>{{"name": "read_file", "arguments": {{"path": "{path}"}}}}</tool_call>'


@attrs.frozen
class Turn:
    """One turn: which of the two models answers, and what the user says."""

    model: int
    text: str


LIVE = (
    Turn(0, "Summarise README.md in one sentence."),
    Turn(1, "What about the LICENSE file?"),
    Turn(0, "In one sentence: may I sell Lantern?"),
)


SMALL = (
    Turn(0, _small_model("README.md", "Repeat exactly:\n")),
    Turn(1, _small_model("LICENSE", "Repeat exactly, to read LICENSE:\n")),
    Turn(0, "In one sentence: may I sell Lantern?"),
)


@attrs.frozen(kw_only=True)
class Asked:
    """The user spoke, and a model was chosen."""

    number: int
    model: str
    swapped: bool
    message: Message


@attrs.frozen(kw_only=True)
class Ledger:
    """What the conversation so far loses at this turn's model."""

    model: str
    losses: Sequence[Loss]


@attrs.frozen(kw_only=True)
class Said:
    """A model answered, or a tool did."""

    message: Message


def play(
    client: Client, models: Sequence[str], turns: Sequence[Turn], **options: Any
) -> Iterator[Asked | Ledger | Said]:
    """Play the session; the history grows through all turns, whichever model answers."""
    history: list[Message] = []
    last: str | None = None
    for number, turn in enumerate(turns, 1):
        model = models[turn.model]
        hint = CacheHint() if number == 1 else None  # one provider has markers for it, another does not
        asked = user([TextBlock(text=turn.text, cache=hint)])
        history.append(asked)
        yield Asked(number=number, model=model, swapped=last not in (None, model), message=asked)
        if last not in (None, model):
            request = client.to_wire(history, model=model, tools=[READ_FILE], **options)
            yield Ledger(model=model, losses=request.losses)
        last = model
        for _ in range(_MOST_CALLS):
            answer = client.send(history, model=model, tools=[READ_FILE], **options)
            history.append(answer)
            yield Said(message=answer)
            results = [_run(call) for call in answer.tool_calls()]
            if not results:
                break
            for result in results:
                history.append(result)
                yield Said(message=result)


def _run(call: ToolUseBlock) -> Message:
    path = str(call.input.get("path"))
    if path not in FILES:
        return tool_result(call, f"no file {path!r}", is_error=True)
    return tool_result(call, FILES[path])
