"""Write the demo's crossing: `python -m tests.tools.record.crossing`.

Nothing is sent. The answers below are written by hand in the documented format of each service; the requests beside
them are those that interlingua writes when it gets these answers. `test_crossing.py` reads the answers with each
service's own types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from interlingua._http.client import Client
from interlingua.testing import MemoryTransport
from interlingua.transport import HttpRequest
from interlingua_cli.demo.session import crossing_scenario, find_folder, run_demo
from tests.tools.record.provenance import write_row

TEST = "tests/tools/record/test_crossing.py"
SOURCE = "answers by hand after the services' documentation and their SDKs' types, which read them in the test"
HOSTS = {
    "/v1/messages": "https://api.anthropic.com",
    "/v1/responses": "https://api.openai.com",
    "/v1beta/models/gemini-3-flash-preview:generateContent": "https://generativelanguage.googleapis.com",
    "/v1/chat/completions": "https://api.mistral.ai",
}


def anthropic(number: int, content: list[Any], stop: str, **usage: int) -> dict[str, Any]:
    return {
        "id": f"msg_01DemoAuthored{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, **usage},
    }


def openai(number: int, output: list[Any], read: int, cached: int, written: int, reasoned: int) -> dict[str, Any]:
    return {
        "id": f"resp_demo_authored_{number}",
        "object": "response",
        "created_at": 1790000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5-mini-2025-08-07",
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "store": False,
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": reasoned},
            "total_tokens": read + written,
        },
    }


def google(number: int, parts: list[Any], read: int, cached: int, written: int, thought: int) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": read,
            "cachedContentTokenCount": cached,
            "candidatesTokenCount": written,
            "thoughtsTokenCount": thought,
            "totalTokenCount": read + written + thought,
        },
        "modelVersion": "gemini-3-flash-preview",
        "responseId": f"demoAuthored{number}",
    }


def mistral(content: str, read: int, cached: int, written: int) -> dict[str, Any]:
    return {
        "id": "de50a0790ed0a0790ed0a0790ed0a079",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "mistral-medium-3-5",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "tool_calls": None},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "total_tokens": read + written,
            "completion_tokens": written,
            "num_cached_tokens": cached,
        },
    }


def reasoning(number: int, text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}]
    opaque = "gAAAAABdemoAuthored"
    return {"id": f"rs_demo_{number}", "type": "reasoning", "summary": summary, "encrypted_content": opaque}


def function_call(number: int, path: str) -> dict[str, Any]:
    return {
        "id": f"fc_demo_{number}",
        "type": "function_call",
        "status": "completed",
        "arguments": json.dumps({"path": path}),
        "call_id": f"call_demo_{number}",
        "name": "read_file",
    }


def tool_use(number: int, path: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_01Demo{number}", "name": "read_file", "input": {"path": path}}


ANSWERS: tuple[dict[str, Any], ...] = (
    anthropic(
        1,
        [
            {
                "type": "thinking",
                "thinking": "A crescent, lit on the right: waxing. Both files are needed, so I read them together.",
                "signature": "EqQBCgIYAhIkZGVtbyBhdXRob3JlZA==",
            },
            {"type": "text", "text": "The picture shows a waxing crescent. Let me read both files."},
            tool_use(1, "README.md"),
            tool_use(2, "LICENSE"),
        ],
        "tool_use",
        input_tokens=12,
        cache_creation_input_tokens=2014,
        output_tokens=171,
    ),
    anthropic(
        2,
        [
            {
                "type": "text",
                "text": "Not from the picture: Lantern computes the phase from the date, so for tonight it says the "
                "same. You may sell it, if you keep the copyright notice.",
            }
        ],
        "end_turn",
        input_tokens=328,
        cache_read_input_tokens=2014,
        output_tokens=46,
    ),
    openai(
        1,
        [
            reasoning(1, "The user wants it checked again, in both files."),
            function_call(1, "README.md"),
            function_call(2, "LICENSE"),
        ],
        read=1502,
        cached=0,
        written=118,
        reasoned=64,
    ),
    openai(
        2,
        [
            {
                "id": "msg_demo_1",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": "No. The README says that it computes the phase from the date and needs no network; "
                        "the licence says nothing about one.",
                        "annotations": [],
                    }
                ],
            }
        ],
        read=1713,
        cached=1408,
        written=38,
        reasoned=0,
    ),
    google(
        1,
        [
            {
                "functionCall": {"id": "demo1", "name": "read_file", "args": {"path": "LICENSE"}},
                "thoughtSignature": "ZGVtby1hdXRob3JlZC1jYWxs",
            }
        ],
        read=1841,
        cached=0,
        written=14,
        thought=41,
    ),
    google(
        2,
        [{"text": "Nobody: it comes without any warranty.", "thoughtSignature": "ZGVtby1hdXRob3JlZC10ZXh0"}],
        read=1918,
        cached=1624,
        written=9,
        thought=22,
    ),
    mistral("A thin waxing crescent moon.", read=1467, cached=0, written=8),
    anthropic(
        3,
        [
            {
                "type": "text",
                "text": "Lantern would name this waxing crescent from the date alone, without a network; you may sell "
                "it with its notice, and nobody warrants it.",
            }
        ],
        "end_turn",
        input_tokens=2894,
        output_tokens=39,
    ),
)


def main(place: str | None = None) -> None:
    """Play the session with the answers and write what was asked beside them, to the cassette unless told where."""
    chosen = crossing_scenario()
    assert chosen.cassette is not None
    written: list[dict[str, Any]] = []

    def answer(request: HttpRequest) -> bytes:
        found, path = ANSWERS[len(written)], urlsplit(request.url).path
        kind = {"content-type": ["application/json"]}
        written.append({
            "request": {
                "method": request.method, "uri": HOSTS[path] + path, "headers": kind,
                "parsed_body": json.loads(request.body),
            },
            "response": {"status": {"code": 200, "message": "OK"}, "headers": kind, "body": {"parsed_body": found}},
        })  # fmt: skip
        return json.dumps(found).encode()

    with Client(settings=chosen.settings, transport=MemoryTransport(answer)) as client:
        for _ in run_demo(client, chosen.models, chosen.turns, **chosen.options):
            pass
    text = yaml.safe_dump({"interactions": written, "version": 1}, sort_keys=False, allow_unicode=True, width=120)
    Path(place or chosen.cassette).write_text(text, encoding="utf-8")
    folder = find_folder().name
    write_row(f"{folder}/crossing.yaml", provenance="authored", source=SOURCE, test=TEST)
    write_row(f"{folder}/crossing.toml", provenance="authored", source="the cast of demo/crossing.yaml", test=TEST)
    write_row(f"{folder}/moon.png", provenance="authored", source="drawn for the demo", test=TEST)


if __name__ == "__main__":
    main()
