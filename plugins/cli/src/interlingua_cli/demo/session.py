"""The demo's conversation: its questions and files, the models that answer, and the effect of each swap."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from interlingua._http.client import Client
from interlingua.errors import CallerError
from interlingua.plugins import Loss
from interlingua.types import (
    CacheHint,
    ContentBlock,
    Message,
    SideEffects,
    TextBlock,
    ToolDefinition,
    ToolUseBlock,
    image_block,
    tool_result,
    user,
)
from interlingua_cli.plan import estimate_cost, estimate_lost_cache

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

_MAX_CALLS = 3  # of a model in one turn


def _small_model_prompt(path: str, lead: str) -> str:
    """Return a prompt that makes a model of 135 million parameters call the tool: it repeats what it reads."""
    return f'{lead}<tool_call>{{"name": "read_file", "arguments": {{"path": "{path}"}}}}</tool_call>'


@attrs.frozen
class DemoTurn:
    """One turn: which of the models answers, what the user says, and an image that goes with it."""

    model: int
    text: str
    image: Path | None = None


LIVE_TURNS = (
    DemoTurn(0, "Summarise README.md in one sentence."),
    DemoTurn(1, "What about the LICENSE file?"),
    DemoTurn(0, "In one sentence: may I sell Lantern?"),
)

SMALL_TURNS = (
    DemoTurn(0, _small_model_prompt("README.md", "Repeat exactly:\n")),
    DemoTurn(1, _small_model_prompt("LICENSE", "Repeat exactly, to read LICENSE:\n")),
    DemoTurn(0, "In one sentence: may I sell Lantern?"),
)


@attrs.frozen(kw_only=True)
class UserTurn:
    """A step: what the user says, and the model that will answer."""

    number: int
    model: str
    message: Message


@attrs.frozen(kw_only=True)
class Swap:
    """A step: the losses and the cost of the conversation so far at this turn's model.

    Attributes:
        model: the model that will answer.
        losses: the ledger of its request.
        estimate: tokens and price of that request, as in `explain`.
        lost_cache: savings of the last model's prompt cache that are lost, as in `explain`.
        kept: number of this model's own reasoning blocks that return to it with their signature.
    """

    model: str
    losses: Sequence[Loss]
    estimate: Mapping[str, Any]
    lost_cache: Mapping[str, Any]
    kept: int


@attrs.frozen(kw_only=True)
class DemoReply:
    """A step: the answer of a model, or the result of a tool."""

    message: Message


Step: TypeAlias = UserTurn | Swap | DemoReply


def run_demo(client: Client, models: Sequence[str], turns: Sequence[DemoTurn], **options: Any) -> Iterator[Step]:
    """Run the session and yield its steps; the history grows through all turns, whichever model answers."""
    history: list[Message] = []
    last: str | None = None
    for number, turn in enumerate(turns, 1):
        model = models[turn.model]
        hint = CacheHint() if number == 1 else None  # one provider has markers for it, another does not
        image: list[ContentBlock] = [] if turn.image is None else [image_block(turn.image)]
        question = user([*image, TextBlock(text=turn.text, cache=hint)])
        history.append(question)
        yield UserTurn(number=number, model=model, message=question)
        if last not in (None, model):
            yield _plan_swap(client, history, model, options)
        last = model
        for _ in range(_MAX_CALLS):
            answer = client.send(history, model=model, tools=[READ_FILE], **options)
            history.append(answer)
            yield DemoReply(message=answer)
            calls = answer.tool_calls
            if not calls:
                break
            for call in calls:
                history.append(_run_tool(call))
                yield DemoReply(message=history[-1])


def _plan_swap(client: Client, history: Sequence[Message], model: str, options: Mapping[str, Any]) -> Swap:
    """Write the request and say what it loses and costs; nothing is sent."""
    request = client.prepare(history, model=model, tools=[READ_FILE], **options).request
    estimate = estimate_cost(request)
    lost = estimate_lost_cache(request, estimate["input_tokens"])
    dropped = {loss.path for loss in request.wire.losses}
    own = [
        f"messages[{at}].content[{index}]"
        for at, message in enumerate(history)
        if message.metadata.model == model
        for index, block in enumerate(message.content)
        if block.type == "thinking"
    ]
    kept = len(set(own) - dropped)
    return Swap(model=model, losses=request.wire.losses, estimate=estimate, lost_cache=lost, kept=kept)


def _run_tool(call: ToolUseBlock) -> Message:
    path = str(call.input.get("path"))
    return tool_result(call, FILES.get(path, f"no file {path!r}"), is_error=path not in FILES)


FOLDER = Path("cassettes") / "demo"
_RECORDED_URL = "http://recorded"


@attrs.frozen(kw_only=True)
class Scenario:
    """Everything `run_demo` needs, and how to make its client."""

    models: tuple[str, ...]  # canonical model ids
    turns: tuple[DemoTurn, ...]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)  # connection settings per provider key
    cassette: Path | None = None  # the exchanges to answer from; None talks to the network
    # model id -> the model whose list price is shown for its tokens, for models without a price
    as_if: Mapping[str, str] = attrs.field(factory=dict)
    where: str  # where the answers are from, one line for a person


def find_folder() -> Path:
    """Return the folder of the demo's sessions: of the checkout around the current folder, else of this package."""
    here = Path.cwd()
    for folder in (*(one / FOLDER for one in (here, *here.parents)), Path(__file__).with_name("recorded")):
        if (folder / "session.toml").is_file():
            return folder
    raise CallerError("no recorded session here: install interlingua-cli again, or use --live MODEL,MODEL")


def live_scenario(models: str) -> Scenario:
    """Use two models that the user named."""
    names = tuple(name.strip() for name in models.split(","))
    if len(names) != 2 or not all(names):
        raise CallerError("--live takes two models, PROVIDER:NAME each, with a comma between them")
    return Scenario(models=names, turns=LIVE_TURNS, where=f"live: {' and '.join(names)}")


def local_scenario(url: str) -> Scenario:
    """Use a local server that speaks both wires of the recorded session."""
    base = url.rstrip("/").removesuffix("/v1")
    return _read_scenario(find_folder(), "session", base, where=f"live from {base}")


def recorded_scenario() -> Scenario:
    """Replay the session that was recorded from a local server."""
    folder = find_folder()
    return attrs.evolve(_read_scenario(folder, "session", _RECORDED_URL), cassette=folder / "session.yaml")


def crossing_scenario() -> Scenario:
    """Replay the session that crosses four services."""
    folder = find_folder()
    return attrs.evolve(_read_scenario(folder, "crossing", _RECORDED_URL), cassette=folder / "crossing.yaml")


def _read_scenario(folder: Path, name: str, base: str, *, where: str | None = None) -> Scenario:
    table = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    turns = tuple(
        DemoTurn(turn["model"], turn["text"], folder / turn["image"] if "image" in turn else None)
        for turn in table.get("turns", ())
    )
    return Scenario(
        models=tuple(table["models"]),
        turns=turns or SMALL_TURNS,
        options=table["options"],
        settings={key: {"base_url": base + path} for key, path in table["paths"].items()},
        as_if=dict(zip(table["models"], table.get("as_if", ()), strict=False)),
        where=where or table["recorded"],
    )
