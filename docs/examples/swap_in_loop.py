"""One model calls the tools, another one answers: python swap_in_loop.py [MODEL] [OTHER_MODEL]."""

import sys

from interlingua_agents import Agent, tool


@tool(side_effects="read")
def radius(moon: str) -> float:
    """Return a moon's radius in kilometres."""
    return {"Ganymede": 2634.1, "Io": 1821.6}.get(moon, 0.0)


first = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
second = sys.argv[2] if len(sys.argv) > 2 else "openai:gpt-5-mini"
started = Agent(first, tools=[radius], max_turns=1).run_sync("Is Ganymede wider than Io?")
run = Agent(second, tools=[radius]).run_sync(None, history=started.messages)
for message in (*started.messages, *run.messages):
    print(f"{message.model or message.role}: {message.text or [call.name for call in message.tool_calls]}")
