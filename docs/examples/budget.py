"""Stop an agent when its answers have cost a certain amount: python budget.py [MODEL] [USD]."""

import sys

from interlingua_agents import Agent, tool


@tool(side_effects="read")
def next_page(number: int) -> str:
    """Return a page of a long list."""
    return f"page {number}; there is another one"


model = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
budget = sys.argv[2] if len(sys.argv) > 2 else "0.01"
run = Agent(model, tools=[next_page], budget_usd=budget).run_sync("Read all pages.")
print(f"{run.stop.cause} after {run.stop.turns} answers and {run.stop.spent_usd} USD")
