"""`demo`: one conversation that crosses providers and comes back, replayed from recordings or live."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import click

from interlingua.catalogue import ModelInfo
from interlingua.codec import encode_message
from interlingua.errors import CallerError
from interlingua.http.client import Client
from interlingua.http.transport import Recorded, replaying_client
from interlingua.json import loads
from interlingua.plugins import Loss
from interlingua.pricing import cost_of
from interlingua.types import (
    CacheHint,
    Message,
    Role,
    SideEffects,
    TextBlock,
    ToolDefinition,
    ToolUseBlock,
    Usage,
    tool_result,
    user,
)
from interlingua_cli.cassettes import read_cassette
from interlingua_cli.output import json_option, losses_to_json, make_console, print_json
from interlingua_cli.state import State, plugin_option
from interlingua_cli.streams import escape_controls

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
class Turn:
    """One turn: which of the two models answers, and what the user says."""

    model: int
    text: str


LIVE_TURNS = (
    Turn(0, "Summarise README.md in one sentence."),
    Turn(1, "What about the LICENSE file?"),
    Turn(0, "In one sentence: may I sell Lantern?"),
)

SMALL_TURNS = (
    Turn(0, _small_model_prompt("README.md", "Repeat exactly:\n")),
    Turn(1, _small_model_prompt("LICENSE", "Repeat exactly, to read LICENSE:\n")),
    Turn(0, "In one sentence: may I sell Lantern?"),
)


@attrs.frozen(kw_only=True)
class UserTurn:
    """A step: what the user says, and the model that will answer."""

    number: int
    model: str
    message: Message


@attrs.frozen(kw_only=True)
class SwapLedger:
    """A step: what the conversation so far loses at this turn's model."""

    model: str
    losses: Sequence[Loss]


@attrs.frozen(kw_only=True)
class Reply:
    """A step: the answer of a model, or the result of a tool."""

    message: Message


Step: TypeAlias = UserTurn | SwapLedger | Reply


def run_demo(client: Client, models: Sequence[str], turns: Sequence[Turn], **options: Any) -> Iterator[Step]:
    """Run the session and yield its steps; the history grows through all turns, whichever model answers."""
    history: list[Message] = []
    last: str | None = None
    for number, turn in enumerate(turns, 1):
        model = models[turn.model]
        hint = CacheHint() if number == 1 else None  # one provider has markers for it, another does not
        question = user([TextBlock(text=turn.text, cache=hint)])
        history.append(question)
        yield UserTurn(number=number, model=model, message=question)
        if last not in (None, model):
            request = client.to_wire(history, model=model, tools=[READ_FILE], **options)
            yield SwapLedger(model=model, losses=request.losses)
        last = model
        for _ in range(_MAX_CALLS):
            answer = client.send(history, model=model, tools=[READ_FILE], **options)
            history.append(answer)
            yield Reply(message=answer)
            calls = answer.tool_calls()
            if not calls:
                break
            for call in calls:
                history.append(_run_tool(call))
                yield Reply(message=history[-1])


def _run_tool(call: ToolUseBlock) -> Message:
    path = str(call.input.get("path"))
    return tool_result(call, FILES.get(path, f"no file {path!r}"), is_error=path not in FILES)


FOLDER = Path("cassettes") / "demo"
CASSETTE = "session.yaml"
_RECORDED_URL = "http://recorded"


@attrs.frozen(kw_only=True)
class Scenario:
    """Everything `run_demo` needs, and how to make its client."""

    models: tuple[str, ...]  # the two canonical model ids
    turns: tuple[Turn, ...]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)  # connection settings per provider key
    cassette: Path | None = None  # the recorded exchanges to answer from; None talks to the network
    # model id -> the model whose list price is shown for its tokens, for models without a price
    as_if: Mapping[str, str] = attrs.field(factory=dict)
    where: str  # where the answers are from, one line for a person


def find_folder() -> Path:
    """Return the folder of the recorded session, in the checkout of the current folder or of this package."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / FOLDER / "session.toml").is_file():
                return folder / FOLDER
    raise CallerError("no recorded session here: run this in a checkout of interlingua, or use --live MODEL,MODEL")


def live_scenario(models: str) -> Scenario:
    """Use two models that the user named."""
    names = tuple(name.strip() for name in models.split(","))
    if len(names) != 2 or not all(names):
        raise CallerError("--live takes two models, PROVIDER:NAME each, with a comma between them")
    return Scenario(models=names, turns=LIVE_TURNS, where=f"live: {' and '.join(names)}")


def local_scenario(url: str) -> Scenario:
    """Use a local server that speaks both wires of the recorded session."""
    base = url.rstrip("/").removesuffix("/v1")
    return _read_scenario(find_folder(), base, where=f"live from {base}")


def recorded_scenario() -> Scenario:
    """Replay the recorded session."""
    folder = find_folder()
    return attrs.evolve(_read_scenario(folder, _RECORDED_URL), cassette=folder / CASSETTE)


def _read_scenario(folder: Path, base: str, *, where: str | None = None) -> Scenario:
    table = tomllib.loads((folder / "session.toml").read_text(encoding="utf-8"))
    return Scenario(
        models=tuple(table["models"]),
        turns=SMALL_TURNS,
        options=table["options"],
        settings={key: {"base_url": base + path} for key, path in table["paths"].items()},
        as_if=dict(zip(table["models"], table["as_if"], strict=True)),
        where=where or table["recorded"],
    )


_NEW_CALL_ID = re.compile(r"tu_[0-9A-HJKMNP-TV-Z]{26}")


def _with_stable_ids(body: bytes) -> Any:
    """Return a request's content with new call ids replaced by their order of appearance, to compare two of them."""
    seen: dict[str, str] = {}
    text = _NEW_CALL_ID.sub(
        lambda match: seen.setdefault(match.group(), f"call-{len(seen)}"), body.decode("utf-8", "replace")
    )
    try:
        return loads(text)
    except ValueError:
        return text


class Cassette:
    """Recorded exchanges, answered in order where the very request that was recorded is made; any other is an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges = read_cassette(path)
        self._at = 0

    def __call__(self, method: str, path: str, body: bytes) -> Recorded:
        """Return the next recorded answer."""
        if self._at == len(self._exchanges):
            raise CallerError(f"{self._path.name} holds {self._at} exchanges and one more was asked for")
        found = self._exchanges[self._at]
        self._at += 1
        if not found.uri.endswith(path) or _with_stable_ids(found.request_body) != _with_stable_ids(body):
            raise CallerError(f"exchange {self._at} of {self._path.name} was recorded for another request")
        return Recorded(found.status, found.headers, found.body)


class DemoPrinter:
    """Prints what happens, and keeps the totals."""

    def __init__(self, as_if: Mapping[str, ModelInfo] | None = None) -> None:
        self._console = make_console()
        self._as_if = as_if or {}
        self.tokens = 0
        self.cost = Decimal(0)
        self.notes: set[str] = set()

    def print_step(self, step: Step) -> None:
        """Print one step."""
        if isinstance(step, UserTurn):
            self._console.print()
            self._console.rule(f"[bold]turn {step.number}[/] · {step.model}", align="left")
            self._print_line("user", "green", step.message.text_content())
        elif isinstance(step, SwapLedger):
            self._console.print(f"  [yellow]swap to {step.model}: loss ledger, {len(step.losses)} row(s)[/]")
            for loss in step.losses:
                self._console.print(f"    {loss.path}  {loss.block_type}  {loss.verdict}: {loss.reason}", markup=False)
        elif step.message.role is Role.TOOL:
            self._print_line("tool", "cyan", step.message.tool_results()[0].content[0].text)  # type: ignore[union-attr]
        else:
            self._print_answer(step.message)

    def _print_answer(self, message: Message) -> None:
        for block in message.thinking():
            self._print_line("thinks", "dim", block.text)
        if message.text_content().strip():
            self._print_line("model", "white", message.text_content())
        for call in message.tool_calls():
            self._print_line("calls", "magenta", f"{call.name}({call.input_json})")
        usage = message.metadata.usage or Usage()
        counts = (usage.input_tokens, usage.output_tokens)
        self.tokens += sum(count or 0 for count in counts)
        read, written = ("?" if count is None else count for count in counts)
        metadata, money = message.metadata, self._format_cost(message, usage)
        facts = f"{metadata.model} · {metadata.api} · {metadata.stop_reason} · {read} in, {written} out · {money}"
        self._console.print(f"         [dim]{facts}[/]")

    def _format_cost(self, message: Message, usage: Usage) -> str:
        model = str(message.metadata.model)
        if usage.cost_usd is None and model in self._as_if:
            priced = self._as_if[model]
            usage = cost_of(usage, priced, message.created_at)
            self.notes.add(f"{model} runs on this machine and has no price; shown at the list price of {priced.id}")
        if usage.cost_usd is None:
            self.notes.add(f"no price for {model}: {usage.cost_note}")
            return "no price"
        self.cost += usage.cost_usd
        return f"${usage.cost_usd:f}"

    def _print_line(self, who: str, style: str, text: str) -> None:
        from rich.markup import escape  # noqa: PLC0415
        from rich.padding import Padding  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415

        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=6, justify="right", style=style)
        grid.add_column(overflow="fold", max_width=110)
        grid.add_row(who, escape(escape_controls(text.strip(), self._console.file)))
        self._console.print(Padding(grid, (0, 0, 0, 1), expand=False))

    def print_end(self, where: str) -> None:
        """Print the totals and where the answers came from."""
        self._console.print()
        self._console.rule(style="dim")
        self._console.print(f"{self.tokens} tokens, ${self.cost:f}")
        for note in sorted(self.notes):
            self._console.print(f"[dim]{note}[/]")
        self._console.print(f"[dim]{where}[/]")


def step_to_json(step: Step) -> dict[str, Any]:
    """Return one step as plain JSON."""
    if isinstance(step, UserTurn):
        return {"type": "turn", "number": step.number, "model": step.model, "message": encode_message(step.message)}
    if isinstance(step, SwapLedger):
        return {"type": "ledger", "model": step.model, "losses": losses_to_json(step.losses)}
    return {"type": "message", "message": encode_message(step.message)}


@click.command("demo")
@click.option("--live", metavar="MODEL,MODEL", help="Talk to these two models, PROVIDER:NAME each.")
@click.option("--live-url", metavar="URL", help="Talk to a local server at this address, over both recorded wires.")
@json_option
@plugin_option
@click.pass_obj
def demo(state: State, live: str | None, live_url: str | None, as_json: bool) -> None:
    """Show one conversation that crosses providers.

    Three turns: summarise a file with a tool, swap the provider and read another file, swap back. Without options it is
    replayed from recorded exchanges and needs neither a key nor a network.
    """
    chosen = live_scenario(live) if live else local_scenario(live_url) if live_url else recorded_scenario()
    state.ledger_shown = True
    state.models_announced = frozenset(chosen.as_if)  # said in the closing lines
    settings = {**state.settings, **chosen.settings}
    http_client = replaying_client(Cassette(chosen.cassette)) if chosen.cassette else None
    with Client(registry=state.registry, settings=settings, http_client=http_client) as client:
        steps = run_demo(client, chosen.models, chosen.turns, **chosen.options)
        if as_json:
            print_json({"source": chosen.where, "steps": [step_to_json(step) for step in steps]})
            return
        names = {model: state.registry.resolve(other) for model, other in chosen.as_if.items()}
        infos = {model: state.registry.provider(name.provider).model(name.name) for model, name in names.items()}
        printer = DemoPrinter({model: info for model, info in infos.items() if info is not None})
        for step in steps:
            printer.print_step(step)
        printer.print_end(chosen.where)
