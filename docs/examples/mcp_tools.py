"""Tools of an MCP server, each after asking: python mcp_tools.py [MODEL] [COMMAND …]."""

import sys

from interlingua_agents import Agent, McpServer

model = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
with McpServer(sys.argv[2:] or ["uvx", "mcp-server-fetch"]) as server:
    agent = Agent(model, tools=server.tools, confirm=lambda question: input(f"{question.text} [y/n] ") == "y")
    print(agent.run_sync("Which news does example.org have?").value)
