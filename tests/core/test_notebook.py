"""A notebook with every display, run by nbclient and ipykernel, which are no requirement of the tests.

`INTERLINGUA_NOTEBOOK=FOLDER` keeps the outputs as a page and, if chromium is installed, as a picture.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")

ANSI = re.compile(r"\x1b\[[0-9;]*m")
PNG = (
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360f8cf500f0003860180d10b6f2d0000000049454e44ae426082"
)
SETUP = """
from interlingua import Client, image_block, user
from interlingua.testing import ScriptedModel, ScriptedReply, call
from interlingua_agents import Agent, tool

@tool(side_effects="read")
def radius(moon: str) -> float:
    "Return a moon's radius in kilometres."
    return 2634.1

text = "**Ganymede** is the largest <moon>."
slow = ScriptedReply(answer=text, pause=0.05)
model = ScriptedModel([text, text, text, slow, call("radius", moon="Ganymede"), "2,634 km."])
client, asynchronous = model.client(), model.async_client()
"""
CELLS = {
    "message": "answer = client.send('Which moon is the largest?')\nanswer",
    "print": "print(answer)",
    "await": "(await asynchronous.send('Which?')).text",
    "usage": "answer.usage",
    "picture": f"user('What is this?', images=[bytes.fromhex('{PNG}')])",
    "large": "repr(user([image_block(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(2_000_000))]))",
    "ledger": "Client('anthropic:claude-haiku-4-5', api_key='k').build_request('Hello', seed=7)",
    "async_show": "async with asynchronous.stream('Which?') as stream:\n    await stream.show()",
    "show": "with client.stream('Which?') as stream:\n    message = stream.show()",
    "run": "Agent(tools=[radius]).run_sync('How wide is Ganymede?', client=client)",
    "refused": "Client('llamacpp:m', base_url='http://127.0.0.1:9/v1', retry=0).send('Hello')",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *CELLS.values())]
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    setup, *cells = notebook.cells
    assert setup.outputs == []
    found = {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}
    if folder := os.environ.get("INTERLINGUA_NOTEBOOK"):
        write_page(found, Path(folder))
    return found


def write_page(outputs: dict[str, list[Any]], folder: Path) -> None:
    """Write the outputs as a page, and the page as a picture."""
    parts = ["<meta charset=utf-8><style>body{font:14px sans-serif}pre{white-space:pre-wrap}</style>"]
    for name, each in outputs.items():
        parts.append(f"<h3>{name}</h3><pre style='color:#777'>{html.escape(CELLS[name])[:300]}</pre>")
        for output in each:
            data = output.get("data", {})
            text = data.get("text/plain") or output.get("text") or "\n".join(output.get("traceback", ()))
            shown = MarkdownIt("commonmark").render(data["text/markdown"]) if "text/markdown" in data else ""
            parts.append(data.get("text/html") or shown or f"<pre>{html.escape(ANSI.sub('', text))}</pre>")
    page = folder / "notebook.html"
    page.write_text("\n".join(parts), encoding="utf-8")
    if chromium := shutil.which("chromium"):
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,2600"]
        subprocess.run([*command, f"--screenshot={folder / 'notebook.png'}", page.as_uri()], check=True, timeout=120)


def test_a_message_is_markdown_and_a_short_line(outputs: dict[str, list[Any]]) -> None:
    [shown] = outputs["message"]
    assert "**Ganymede** is the largest" in shown.data["text/markdown"]
    assert "5 + 5 tokens" in shown.data["text/markdown"]
    assert len(shown.data["text/plain"]) < 200
    [printed] = outputs["print"]
    assert printed.text.count("\n") == 1
    assert len(printed.text) < 200


def test_an_answer_is_awaited_in_a_cell(outputs: dict[str, list[Any]]) -> None:
    [shown] = outputs["await"]
    assert "Ganymede" in shown.data["text/plain"]


def test_usage_and_ledgers_are_tables(outputs: dict[str, list[Any]]) -> None:
    [usage], [request] = outputs["usage"], outputs["ledger"]
    assert "<table" in usage.data["text/html"]
    assert "<table" in request.data["text/html"]
    assert "seed" in request.data["text/html"]


def test_a_picture_is_shown_and_no_repr_has_its_bytes(outputs: dict[str, list[Any]]) -> None:
    [picture], [large] = outputs["picture"], outputs["large"]
    assert "data:image/png;base64," in picture.data["text/markdown"]
    assert len(large.data["text/plain"]) < 200


@pytest.mark.parametrize("name", ["show", "async_show"])
def test_a_stream_updates_one_output_which_ends_as_the_message(outputs: dict[str, list[Any]], name: str) -> None:
    [shown] = outputs[name]
    assert shown.output_type == "display_data"
    assert "**Ganymede** is the largest" in shown.data["text/markdown"]


def test_a_run_shows_its_messages(outputs: dict[str, list[Any]]) -> None:
    [shown] = outputs["run"]
    assert shown.data["text/markdown"].index("radius") < shown.data["text/markdown"].index("2,634 km.")


def test_a_refused_connection_is_a_short_traceback(outputs: dict[str, list[Any]]) -> None:
    [shown] = outputs["refused"]
    assert shown.ename == "APIConnectionError"
    assert len("\n".join(shown.traceback).splitlines()) < 40
