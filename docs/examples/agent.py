"""An agent with two tools: python agent.py [MODEL]."""

import sys
from typing import Annotated

from interlingua_agents import Agent, tool

Museum = Annotated[str, "the museum's name in English"]


@tool(side_effects="read")
def opening_hours(museum: Museum) -> str:
    """Say when a museum is open."""
    return f"{museum}: 10 to 18, closed on Mondays"


@tool(side_effects="read")
def ticket_price(museum: Museum, persons: int = 1) -> float:
    """Return the price of tickets in euros."""
    return 12.5 * persons


model = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
agent = Agent(model, tools=[opening_hours, ticket_price], instructions="Answer in one line.", max_turns=6)
with agent.stream_sync("When is the Museum of the Moon open, and what do two of us pay?") as events:
    for event in events:
        if event.type == "text_delta":
            print(event.text, end="", flush=True)
        elif event.type == "tool_end":
            print(f"[{event.call.name}: {event.status}]")
print(f"\n{events.result.stop.cause} after {events.result.stop.turns} answers")
