"""Prints the demo's steps for a person, and keeps the totals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from rich.text import Text

from interlingua._catalogue import ModelInfo
from interlingua._pricing import cost_of
from interlingua.types import Message, Role, Usage
from interlingua_cli.demo.session import Step, Swap, UserTurn
from interlingua_cli.output import make_console
from interlingua_cli.streams import escape_controls

_GUTTER = 8  # columns left of the text
_TEXT_WIDTH = 110  # columns, also where the terminal is wider
_START = (
    "One conversation goes from model to model. Before another one answers, the loss ledger says what it cannot take of"
    " the conversation so far, and what the swap costs."
)


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
            self._console.rule(Text.assemble((f"turn {step.number}", "bold"), f" · {step.model}"), align="left")
            images = "".join("[image] " for block in step.message.content if block.type == "image")
            self._print_line("user", "green", images + step.message.text)
        elif isinstance(step, Swap):
            self._print_swap(step)
        elif step.message.role is Role.TOOL:
            self._print_line("tool", "cyan", step.message.tool_results[0].content[0].text)  # type: ignore[union-attr]
        else:
            self._print_answer(step.message)

    def _print_swap(self, swap: Swap) -> None:
        """Print the ledger of a swap, the cost of its request, and the lost savings of the prompt cache."""
        count = len(swap.losses)
        self._print_line("swap", "yellow", f"to {swap.model}: {count} {_plural('row', count)} in the loss ledger")
        for loss in swap.losses:
            self._print_line("", "", f"{loss.path}  {loss.block_type}  {loss.verdict}: {loss.reason}")
        if swap.kept:
            self._print_line(
                "", "", f"{swap.kept} {_plural('block', swap.kept)} of its reasoning returned with their signature"
            )
        price, lost = swap.estimate["input_cost_usd"], swap.lost_cache
        cost = "no price" if price is None else _money(price)
        line = f"about {swap.estimate['input_tokens']:,} tokens in, {cost}"
        if lost["tokens"]:
            more = "" if lost["cost_usd"] is None else f", {_money(lost['cost_usd'])} of it because"
            line += f"{more} {lost['tokens']:,} tokens were in the prompt cache that is left"
        self._print_line("", "", line)

    def _print_answer(self, message: Message) -> None:
        for block in message.thinking_blocks:
            self._print_line("thinks", "dim", block.text)
        if message.text.strip():
            self._print_line("model", "bold", message.text)
        for call in message.tool_calls:
            self._print_line("calls", "magenta", f"{call.name}({call.input_json})")
        usage = message.metadata.usage or Usage()
        counts = (usage.input_tokens, usage.output_tokens)
        self.tokens += sum(count or 0 for count in counts)
        read, written = ("?" if count is None else f"{count:,}" for count in counts)
        metadata, money = message.metadata, self._format_cost(message, usage)
        facts = f"{metadata.model} · {metadata.api} · {metadata.stop_reason} · {read} in, {written} out · {money}"
        self._print_line("", "", facts, dim=True)

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
        return _money(usage.cost_usd)

    def _print_line(self, who: str, style: str, text: str, *, dim: bool = False) -> None:
        """Print text beside its speaker; wrapped lines are indented under the text."""
        width = min(self._console.width - _GUTTER, _TEXT_WIDTH)
        shown = Text(escape_controls(text.strip(), self._console.file))
        for number, line in enumerate(shown.wrap(self._console, width)):
            line.rstrip()
            label = Text(f"{who if number == 0 else '':>{_GUTTER - 1}} ", style)
            self._console.print(label.append_text(Text(line.plain, "dim" if dim else "")), soft_wrap=True)

    def print_start(self) -> None:
        """Print what will be shown."""
        self._print_line("", "", _START)

    def print_end(self, where: str) -> None:
        """Print the totals and where the answers came from."""
        self._console.print()
        self._console.rule(style="dim")
        self._print_line("total", "bold", f"{self.tokens:,} tokens, {_money(self.cost)}")
        for note in (*sorted(self.notes), where):
            self._print_line("", "", note, dim=True)


def _money(usd: Decimal) -> str:
    """Return an amount to the millionth of a dollar."""
    return f"${usd:.6f}".rstrip("0").rstrip(".")


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
