"""Values in a terminal and in a notebook: short, whole where it matters, and without bytes or requests."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from markdown_it import MarkdownIt

from interlingua import (
    Message,
    RateLimitError,
    TextBlock,
    ToolUseBlock,
    Usage,
    assistant,
    document_block,
    image_block,
    tool_result,
    user,
)
from interlingua._display import losses_html
from interlingua.plugins import LiveOutput, Loss, freeze_object, messages_markdown
from interlingua.testing import ScriptedModel, call
from interlingua.types import replace

_PICTURE = image_block(b"\x89PNG\r\n\x1a\n")
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000_000)


def _markdown(value: Any) -> str:
    shown: str = value._repr_markdown_()
    return shown


def test_the_repr_of_a_message_with_a_large_picture_is_short_and_names_its_size() -> None:
    message = user([TextBlock(text="Who painted this?"), image_block(_PNG)])

    assert repr(message) == "<Message user: 'Who painted this?' image image/png <2,000,008 bytes>>"
    assert len(repr(message.content)) < 250
    assert len(repr(user([document_block(b"%PDF-1.7" + bytes(3_000_000))]))) < 150


def test_the_repr_of_an_answer_has_its_text_calls_model_tokens_and_cost() -> None:
    model = ScriptedModel([["I add them.", call("add", a=1, b=2)]])
    answer = model.client().send("What is 1 + 2?")
    usage = replace(answer.usage, cost_usd=Decimal("0.00030"))
    priced = replace(answer, metadata=replace(answer.metadata, usage=usage))

    said = '<Message assistant: \'I add them.\' call add({"a":1,"b":2})'
    assert repr(priced) == said + " · scripted:model · 5 + 4 tokens · $0.00030>"


def test_a_long_text_is_cut_and_its_length_is_told() -> None:
    assert len(repr(assistant("word " * 10_000))) < 400
    assert "50,000 characters" in repr(TextBlock(text="word " * 10_000))


def test_an_error_is_shown_with_its_facts_and_without_its_body() -> None:
    error = RateLimitError("slow down", provider="x", model="m", status=429, body=b"secret" * 1000)

    assert repr(error) == "<RateLimitError: slow down (x:m, HTTP 429)>"
    assert len(repr(RateLimitError("long " * 1000))) < 350


def test_a_request_is_shown_without_its_body_and_with_its_ledger() -> None:
    request = (
        ScriptedModel([], supports_images=False)
        .client()
        .build_request([user([TextBlock(text="What?"), image_block(_PNG)])], allow_loss=True)
    )

    assert repr(request).count("bytes>") == 1
    table = request._repr_html_()
    assert ">messages[0].content[1]</td>" in table
    assert "dropped" in table


def test_markdown_of_a_conversation_has_every_message_call_and_result() -> None:
    question = user("What is ``` 1 + 2?")
    answer = assistant([ToolUseBlock(id="tu_1", name="add", input=freeze_object({"a": "```"}))])
    result = tool_result(answer.tool_calls[0], "3")

    text = messages_markdown([question, answer, result])

    assert text.count("\n---\n") == 2
    assert '````\nadd({"a":"```"})\n````' in text  # a fence longer than any in the arguments
    assert "result of `add`:\n\n```\n3\n```" in text


def test_a_picture_is_shown_and_one_at_an_address_is_named_but_not_fetched() -> None:
    assert "![image/png](data:image/png;base64," in _markdown(user([_PICTURE]))
    assert _markdown(user([image_block(_PNG * 2)])).endswith("*image image/png <4,000,016 bytes>*")
    at_address = _markdown(user([image_block("https://example.org/a.png")]))
    assert "](https" not in at_address
    assert "example.org" in at_address


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the largest <moon>.", "the largest &lt;moon>."),
        ("`a<b>` and ``c`<d>`` and <e>", "`a<b>` and ``c`<d>`` and &lt;e>"),
        ("```html\n<b>\n```\n<i>", "```html\n<b>\n```\n&lt;i>"),
        ("~~~\n<b>", "~~~\n<b>"),  # not closed yet
        ("    <b>\n<i>", "    <b>\n&lt;i>"),
        ("a ` b <i>", "a ` b &lt;i>"),
        ("![x](https://example.org/?secret)", r"\![x](https://example.org/?secret)"),
    ],
)
def test_a_models_text_has_no_tags_and_no_pictures_to_fetch(text: str, shown: str) -> None:
    assert _markdown(assistant(text)).endswith(shown)
    rendered = MarkdownIt("commonmark").render(_markdown(assistant(text)))
    assert not re.search("<(moon|e|i|img)", rendered)


def test_a_media_type_cannot_close_the_markdown_of_a_picture() -> None:
    block = replace(_PICTURE, media_type="image/a)<b>")

    assert "data:" not in _markdown(user([block]))


def test_markdown_says_what_was_not_sent() -> None:
    loss = Loss(path="messages[0].content[1]", block_type="document", verdict="dropped", reason="no documents")
    message = assistant("Hm.")
    lossy = replace(message, metadata=replace(message.metadata, losses=(loss,)))

    assert "- not sent: document at `messages[0].content[1]`: no documents" in _markdown(lossy)
    assert "1 not sent" in repr(lossy)


def test_a_ledger_is_a_table_of_three_columns_that_break_in_narrow_windows() -> None:
    loss = Loss(path="messages[0].content[1]", block_type="document", verdict="dropped", reason="no <documents>")
    table = losses_html([loss])

    assert re.findall("<th>(.*?)</th>", table) == ["path", "what", "reason"]
    cells = re.findall(r"<td style='(.*?)'>(.*?)</td>", table)
    assert [text for _, text in cells] == [
        "messages[0].content[1]", "document dropped (content)", "no &lt;documents&gt;",
    ]  # fmt: skip
    assert all("overflow-wrap: anywhere" in style for style, _ in cells)


def test_usage_is_a_table_of_what_was_reported() -> None:
    units = freeze_object({"images": 2})
    usage = Usage(input_tokens=1200, cost_usd=Decimal("0.0000001"), service_tier="<b>", extra_units=units)
    table = usage._repr_html_()

    assert "1,200" in table
    assert "0.0000001" in table
    assert "&lt;b&gt;" in table
    assert "images" in table
    assert "output_tokens" not in table


def test_a_stream_is_printed_as_it_arrives_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(["Ganymede is the largest.", "Yes."])
    with model.client().stream("Which?") as stream:
        assert stream.show().text == "Ganymede is the largest."

    async def ask() -> Message:
        async with model.async_client() as client, client.stream("Sure?") as stream:
            return await stream.show()

    assert asyncio.run(ask()).text == "Yes."
    assert capsys.readouterr().out == "Ganymede is the largest.\nYes.\n"


class _Kernel:
    """The part of IPython's shell in a notebook that displays are published by."""

    kernel = True

    def __init__(self) -> None:
        self.display_pub = self
        self.published: list[tuple[str, str, bool]] = []

    def get_ipython(self) -> _Kernel:
        return self

    def publish(self, data: Any, metadata: Any, *, transient: Any, update: bool) -> None:
        self.published.append((data["text/markdown"], transient["display_id"], update))


def test_in_a_notebook_a_stream_is_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _Kernel()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setattr("interlingua._display._PAUSE", 0)
    with ScriptedModel(["Ganymede is it."]).client().stream("Which?") as stream:
        stream.show()

    assert [text for text, _, _ in kernel.published[:3]] == ["Ganymede", "Ganymede is", "Ganymede is it."]
    assert kernel.published[-1][0].startswith("**assistant** · scripted:model")
    assert [update for _, _, update in kernel.published] == [False, True, True, True]
    assert len({display for _, display, _ in kernel.published}) == 1


def test_updates_of_a_notebook_are_not_more_than_ten_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _Kernel()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    live = LiveOutput()
    for _ in range(1000):
        live.add("x")

    assert len(kernel.published) <= 3


def test_a_refused_connection_is_a_short_traceback() -> None:
    code = (
        "from interlingua import Client\n"
        "Client('ollama:llama3', base_url='http://127.0.0.1:9/v1', retry=0).send('Hello')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert done.stderr.splitlines()[-1].startswith(
        "interlingua.errors.APIConnectionError: no answer from http://127.0.0.1:9"
    )
    assert len(done.stderr.splitlines()) <= 16
    assert "httpx" in done.stderr  # the cause is named
