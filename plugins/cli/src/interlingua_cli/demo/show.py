"""The demo on a terminal: turns, tool calls, tokens, money, and the ledger at each swap.

Never plays anything. The command comes in.
The same facts go out as JSON through `as_json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from interlingua.catalogue import ModelInfo
from interlingua.codec.stored import encode_message
from interlingua.pricing import cost_of
from interlingua.types.messages import Message, Role, Usage
from interlingua_cli.demo.script import Asked, Ledger, Said
from interlingua_cli.show import console, losses_json
from interlingua_cli.stdio import shown


class Show:
    """Prints what happens, and keeps the totals.

    Args:
        as_if: model id -> its stand-in for the price, and that one's catalogue entry; for models without a price.
    """

    def __init__(self, as_if: Mapping[str, ModelInfo] | None = None) -> None:
        self._console = console()
        self._as_if = as_if or {}
        self.tokens = 0
        self.cost = Decimal(0)
        self.notes: set[str] = set()

    def __call__(self, step: Asked | Ledger | Said) -> None:
        """Print one step."""
        if isinstance(step, Asked):
            self._asked(step)
        elif isinstance(step, Ledger):
            self._ledger(step)
        elif step.message.role is Role.TOOL:
            self._line("tool", "cyan", step.message.tool_results()[0].content[0].text)  # type: ignore[union-attr]
        else:
            self._answer(step.message)

    def _asked(self, step: Asked) -> None:
        self._console.print()
        self._console.rule(f"[bold]turn {step.number}[/] · {step.model}", align="left")
        self._line("user", "green", step.message.text_content())

    def _ledger(self, step: Ledger) -> None:
        self._console.print(f"  [yellow]swap to {step.model}: loss ledger, {len(step.losses)} row(s)[/]")
        for loss in step.losses:
            self._console.print(f"    {loss.path}  {loss.block_type}  {loss.verdict}: {loss.reason}", markup=False)

    def _answer(self, message: Message) -> None:
        for block in message.thinking():
            self._line("thinks", "dim", block.text)
        if message.text_content().strip():
            self._line("model", "white", message.text_content())
        for call in message.tool_calls():
            self._line("calls", "magenta", f"{call.name}({call.input_json})")
        usage = message.metadata.usage or Usage()
        self.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        money = self._money(message, usage)
        stop = message.metadata.stop_reason
        facts = f"{message.metadata.model} · {message.metadata.api} · {stop} · {_tokens(usage)} · {money}"
        self._console.print(f"         [dim]{facts}[/]")

    def _money(self, message: Message, usage: Usage) -> str:
        model = str(message.metadata.model)
        if usage.cost_usd is None and model in self._as_if:
            stand_in = self._as_if[model]
            usage = cost_of(usage, stand_in, message.created_at)
            self.notes.add(f"{model} runs on this machine and has no price; shown at the list price of {stand_in.id}")
        if usage.cost_usd is None:
            self.notes.add(f"no price for {model}: {usage.cost_note}")
            return "no price"
        self.cost += usage.cost_usd
        return f"${usage.cost_usd:f}"

    def _line(self, who: str, style: str, text: str) -> None:
        from rich.markup import escape  # noqa: PLC0415
        from rich.padding import Padding  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415

        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=6, justify="right", style=style)
        grid.add_column(overflow="fold", max_width=110)
        grid.add_row(who, escape(shown(text.strip(), self._console.file)))
        self._console.print(Padding(grid, (0, 0, 0, 1)))

    def end(self, where: str) -> None:
        """Print the totals and where the answers came from."""
        self._console.print()
        self._console.rule(style="dim")
        self._console.print(f"{self.tokens} tokens, ${self.cost:f}")
        for note in sorted(self.notes):
            self._console.print(f"[dim]{note}[/]")
        self._console.print(f"[dim]{where}[/]")


def _tokens(usage: Usage) -> str:
    return f"{_count(usage.input_tokens)} in, {_count(usage.output_tokens)} out"


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def as_json(step: Asked | Ledger | Said) -> dict[str, Any]:
    """Return one step as plain JSON."""
    if isinstance(step, Asked):
        return {"type": "turn", "number": step.number, "model": step.model, "message": encode_message(step.message)}
    if isinstance(step, Ledger):
        return {"type": "ledger", "model": step.model, "losses": losses_json(step.losses)}
    return {"type": "message", "message": encode_message(step.message)}
