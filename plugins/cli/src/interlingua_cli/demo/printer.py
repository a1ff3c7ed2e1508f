"""Prints the demo's steps for a person, and keeps the totals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from interlingua.catalogue import ModelInfo
from interlingua.pricing import cost_of
from interlingua.types import Message, Role, Usage
from interlingua_cli.demo.session import Step, Swap, UserTurn
from interlingua_cli.output import make_console
from interlingua_cli.streams import escape_controls


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
            images = "".join("[image] " for block in step.message.content if block.type == "image")
            self._print_line("user", "green", images + step.message.text_content())
        elif isinstance(step, Swap):
            self._print_swap(step)
        elif step.message.role is Role.TOOL:
            self._print_line("tool", "cyan", step.message.tool_results()[0].content[0].text)  # type: ignore[union-attr]
        else:
            self._print_answer(step.message)

    def _print_swap(self, swap: Swap) -> None:
        """Print the ledger of a swap beside what its request costs, and what the prompt cache would have spared."""
        self._console.print(f"  [yellow]swap to {swap.model}: loss ledger, {len(swap.losses)} row(s)[/]")
        for loss in swap.losses:
            self._console.print(f"    {loss.path}  {loss.block_type}  {loss.verdict}: {loss.reason}", markup=False)
        if swap.kept:
            self._console.print(f"    {swap.kept} piece(s) of its own reasoning go back as it signed them")
        price, lost = swap.estimate["input_cost_usd"], swap.lost_cache
        cost = "no price" if price is None else f"${price:f}"
        line = f"    about {swap.estimate['input_tokens']:,} tokens in, {cost}"
        if lost["tokens"]:
            more = "" if lost["cost_usd"] is None else f", ${lost['cost_usd']:f} of it because"
            line += f"{more} {lost['tokens']:,} tokens were in the prompt cache that is left"
        self._console.print(f"[yellow]{line}[/]")

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
