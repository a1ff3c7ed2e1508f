"""Spans of requests and tool calls on the console, with OpenTelemetry: python trace.py [MODEL]."""

import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from interlingua import Client
from interlingua.plugins import Registry
from interlingua_agents import Agent, tool
from interlingua_otel import OpenTelemetry


@tool(side_effects="read")
def radius(moon: str) -> float:
    """Return a moon's radius in kilometres."""
    return {"Ganymede": 2634.1, "Io": 1821.6}.get(moon, 0.0)


console = ConsoleSpanExporter(formatter=lambda span: f"{span.name} {dict(span.attributes or {})}\n")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(console))
registry = Registry([OpenTelemetry(tracer_provider=provider)])
client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5", registry=registry)
print(Agent(name="moons", tools=[radius]).run_sync("How wide is Ganymede?", client=client).value)
