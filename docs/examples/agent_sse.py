"""An agent on the web, its events as server-sent events: python agent_sse.py [MODEL] [PORT]."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from interlingua_agents import Agent, RunEvent, tool


@tool(side_effects="read")
def weather(city: str) -> str:
    """Say the weather in a city."""
    time.sleep(1)
    return f"{city}: rain"


@tool(side_effects="read")
def local_time(city: str) -> str:
    """Say the time in a city."""
    time.sleep(1)
    return f"{city}: 14:30"


def data_of(event: RunEvent) -> object:
    """Return what the page gets of an event; None if nothing."""
    match event.type:
        case "text_delta":
            return event.text
        case "tool_start":
            return {"tool": event.call.name, "input": event.call.input}
        case "tool_end":
            return {"tool": event.call.name, "status": event.status}
        case "run_end":
            return event.result.stop.cause
        case _:
            return None


class Page(BaseHTTPRequestHandler):
    """Answers GET /?q=QUESTION; a reader who leaves ends the run."""

    def do_GET(self) -> None:
        """Run the agent, and send its events."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with agent.stream_sync(parse_qs(urlsplit(self.path).query)["q"][0]) as events:
            for event in events:
                if (data := data_of(event)) is not None:
                    self.wfile.write(f"event: {event.type}\ndata: {json.dumps(data)}\n\n".encode())


agent = Agent(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5", tools=[weather, local_time])
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 8000), Page).serve_forever()
