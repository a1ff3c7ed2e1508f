"""A server of the Model Context Protocol on standard input and output: pages of tools, media, errors, a hang, a crash.

`python -m tests.agents.mcp_stdio LOG` runs it; a call that is cancelled there leaves a word in the file LOG.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360f8cf500f0003860180d10b6f2d0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()
PDF = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()
PAGE = 10

Hints = types.ToolAnnotations
SPECIAL: dict[str, tuple[dict[str, Any], types.ToolAnnotations | None]] = {
    "echo": (
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        Hints(read_only_hint=True, open_world_hint=False),
    ),
    "getImage": ({"type": "object"}, Hints(read_only_hint=True)),
    "resources": ({"type": "object"}, Hints(destructive_hint=False)),
    "structured": ({"type": "object"}, Hints(destructive_hint=True)),
    "both": ({"type": "object"}, None),
    "refuse": ({"type": "object"}, Hints()),
    "protocol-error": ({"type": "object"}, None),
    "count": ({"type": "object"}, None),
    "hang": ({"type": "object"}, None),
    "crash": ({"type": "object"}, None),
    "environment": ({"type": "object"}, None),
    "ask": ({"type": "object"}, None),
    "tree": ({"type": "object", "properties": {"child": {"$ref": "#"}}}, None),  # recursive: not offered
}
TOOLS = [
    *(types.Tool(name=name, input_schema=schema, annotations=hints) for name, (schema, hints) in SPECIAL.items()),
    *(types.Tool(name=f"filler_{at:02}", input_schema={"type": "object"}) for at in range(25 - len(SPECIAL))),
]


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


async def list_tools(_context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor else 0
    more = str(start + PAGE) if start + PAGE < len(TOOLS) else None
    return types.ListToolsResult(
        tools=TOOLS[start : start + PAGE][::-1], next_cursor=more, ttl_ms=0, cache_scope="private"
    )


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    name, given = params.name, params.arguments or {}
    if name == "echo":
        return types.CallToolResult(content=[text(given["text"])])
    if name == "getImage":
        return types.CallToolResult(
            content=[
                text("see:"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.AudioContent(data=WAV, mime_type="audio/wav"),
            ],
            structured_content={"width": 1},
        )
    if name == "resources":
        return types.CallToolResult(
            content=[
                types.EmbeddedResource(
                    resource=types.TextResourceContents(uri="file:///a.txt", text="a text", mime_type="text/plain")
                ),
                types.EmbeddedResource(
                    resource=types.BlobResourceContents(uri="file:///a.pdf", blob=PDF, mime_type="application/pdf")
                ),
                types.EmbeddedResource(
                    resource=types.BlobResourceContents(uri="file:///a.png", blob=PNG, mime_type="image/png")
                ),
                types.EmbeddedResource(
                    resource=types.BlobResourceContents(
                        uri="file:///a.bin",
                        blob=base64.b64encode(b"\x00\xff\x10").decode(),
                        mime_type="application/x-own",
                    )
                ),
                types.ResourceLink(name="more", uri="https://example.org/more"),
            ]
        )
    if name == "structured":
        return types.CallToolResult(content=[], structured_content={"sum": [1, 2]})
    if name == "both":
        return types.CallToolResult(content=[text("in words")], structured_content={"sum": 3})
    if name == "refuse":
        return types.CallToolResult(content=[text("no such file")], is_error=True)
    if name == "protocol-error":
        raise MCPError(-32050, "the disk is full")
    if name == "count":
        for at in range(3):
            await context.session.report_progress(at + 1, 3, f"step {at + 1}")
        return types.CallToolResult(content=[text("counted")])
    if name == "hang":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            Path(sys.argv[1]).write_text("cancelled", encoding="utf-8")
            raise
    if name == "crash":
        os._exit(7)
    if name == "environment":
        return types.CallToolResult(content=[text(" ".join(sorted(os.environ)))])
    if name == "ask":
        answers = params.input_responses or {}
        if "name" in answers:
            answer = answers["name"]
            said = answer.content["name"] if answer.action == "accept" and answer.content else answer.action
            return types.CallToolResult(content=[text(f"hello {said}")])
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        question = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Who are you?", requested_schema=schema)
        )
        return types.InputRequiredResult(input_requests={"name": question})
    raise MCPError(-32602, f"unknown tool {name}")


def server() -> Server[Any]:
    return Server("test", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    made = server()
    async with stdio_server() as (reading, writing):
        await made.run(reading, writing, made.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
