"""Write answers of any model as bodies and streams of the Responses API (WIRE.md, Responses served)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import InterlinguaError, ServerError
from interlingua.plugins import EMPTY, Loss, WireResponse, dumps
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ImageBlock,
    Message,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    RedactedThinkingBlock,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    read_tool_input,
    replace,
)
from interlingua_chat_completions.errors import error_detail, to_wire_error
from interlingua_openai.responses.client_calls import FORMS, new_call, with_arguments
from interlingua_openai.responses.items import PICTURE, call_id_of
from interlingua_openai.responses.replay import IN_BLOCKS, ItemMatch, match_items, to_wire_item
from interlingua_openai.responses.stream_blocks import SPAN
from interlingua_serving import AnswerState, BaseStreamWriter, ServeContext, dumps_line

_INCOMPLETE = {
    StopReason.MAX_TOKENS: "max_output_tokens",
    StopReason.CONTEXT_WINDOW: "max_output_tokens",
    StopReason.REFUSAL: "content_filter",
}
_JSON = {"content-type": "application/json"}
_DEFAULTS: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_OWN_END = ("usage", "service_tier", "incomplete_details")
_STATELESS = "state of the model that answered has no place here; there is nothing to seal it with"


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer: the items of its stream, or this API's own items unchanged."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"))
    raw = metadata.provider_raw or EMPTY
    writer = ResponseWriter(context)
    rows = (raw.get("replay") or EMPTY).get("items") if context.is_own else None
    matches = match_items(rows, message.content) if rows else None
    events: list[StreamEvent] = [RawUpdate(replay=raw.get("replay") or None, trace=raw.get("trace") or None)]
    if matches is not None and all(match.same for match in matches):
        writer.feed(events)
        items = [to_wire_item(_with_own_ids(match)) for match in matches]
    else:
        events = [RawUpdate(trace=raw.get("trace") or None)] if context.is_own else events
        writer.feed([*events, *[BlockEnd(index=at * SPAN, block=block) for at, block in enumerate(message.content)]])
        items = writer.finish_items()
    reason, word = metadata.stop_reason or StopReason.OTHER, metadata.stop_reason_raw
    response = writer.response(items, reason, word, metadata.usage)
    if metadata.stop_reason is None and not context.is_own:  # an answer that does not say that it is whole
        response["status"] = "incomplete"
    body = dumps(response)
    return WireResponse(headers=_JSON, body=body, losses=tuple(writer.losses))


def _with_own_ids(match: ItemMatch) -> ItemMatch:
    """Return the item's blocks with the ids that the service issued for its calls."""
    own = [replace(one, id=one.provider_id) if isinstance(one, ToolUseBlock) and one.provider_id else one
           for one in match.blocks]  # fmt: skip
    return match._replace(blocks=tuple(own))


@attrs.define
class _Item:
    """An open item: its start, its content so far, its place, and its origin's state.

    Attributes:
        place: its `output_index`.
        kind: message, reasoning, function_call or custom_tool_call.
        item: the item as it was announced.
        announced: this API's own service announced it under its id: its skeleton is in the replay state.
        parts: pieces of each part's text; a call's arguments are part 0.
        ends: the whole block of each part, if it was received.
    """

    place: int
    kind: str
    item: dict[str, Any]
    announced: bool = False
    parts: dict[int, list[str]] = attrs.field(factory=dict)
    ends: dict[int, ContentBlock] = attrs.field(factory=dict)
    start: ToolUseStart | None = None

    def text(self, part: int = 0) -> str:
        return "".join(self.parts.get(part, ()))


class ResponseWriter(BaseStreamWriter):
    """Writes the events of one answer as a stream of this API.

    An item of text or reasoning is open until the next one starts, a call until it is complete. The state of another
    origin is sealed into reasoning items: those of its thinking, and one after the last item for the rest.
    """

    def __init__(self, context: ServeContext) -> None:
        super().__init__(context)
        self._own = context.is_own
        self._id = f"resp_{context.answer_id}"
        self._created = int(context.clock().timestamp())
        self._state = AnswerState(context.origin, strings=True)
        self._number = 0
        self._begun = False
        self._items: list[dict[str, Any] | None] = []
        self._said: _Item | None = None  # the open item of text or reasoning
        self._key = -1
        self._calls: dict[int, _Item] = {}
        self._done: set[int] = set()
        self._rows: Any = ()
        self._picture: ImageBlock | None = None  # until the state of its item is known
        self._used: set[str] = set()
        self._trace: dict[str, Any] = {}
        self._delta: tuple[int, int, bytes] = (-1, 0, b"")  # block, part and head of the next delta of the same kind

    def take(self, event: StreamEvent) -> None:
        """Begin the stream with the first event, and call the method for the event."""
        if type(event) is TextDelta and event.index == self._delta[0] and self._said is not None:
            self._note(event)
            self._said.parts[self._delta[1]].append(event.text)
            self.out.append(b"%b%b,\"logprobs\":[],\"sequence_number\":%d}\n\n" % (
                self._delta[2], dumps_line(event.text), self._number))  # fmt: skip
            self._number += 1
            return
        if not isinstance(event, RawUpdate):
            self._begin()
        super().take(event)

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._note(event)
        self._say(event.index, "message" if isinstance(event, TextDelta) else "reasoning", event.text)

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Write a piece of a call's arguments."""
        self._note(event)
        if (item := self._calls.get(event.index)) is not None:
            self._arguments(item, event.partial_json)

    def _note(self, event: StreamEvent, wire_id: str = "") -> None:
        if not self._own:
            self._state.note(event, wire_id)

    # -- the response

    def _event(self, kind: str, **fields: Any) -> None:
        body = dumps_line({"type": kind, **fields, "sequence_number": self._number})
        self.out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), body))
        self._number += 1

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            response = self._envelope("in_progress", [])
            self._event("response.created", response=response)
            self._event("response.in_progress", response=response)

    def _envelope(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        body = {"id": self._id, "object": "response", "created_at": self._created, "status": status, "error": None}
        body |= {"incomplete_details": None, "model": self.context.model, "output": output}
        return body | _DEFAULTS | dict(self.context.echo.get("request") or EMPTY) | {"usage": None}

    def response(
        self, output: list[dict[str, Any]], reason: StopReason, word: str | None, usage: Usage | None
    ) -> dict[str, Any]:
        """Return the response object of an ended answer."""
        why = _INCOMPLETE.get(reason)
        if self._own and word not in (None, "completed"):
            why = word
        body = self._envelope("incomplete" if why else "completed", output)
        if why:
            body["incomplete_details"] = {"reason": why}
        body["usage"] = _usage(usage)
        if self._own:
            body |= {name: self._trace[name] for name in _OWN_END if name in self._trace}
        return body

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        output = self.finish_items()
        response = self.response(output, event.stop_reason, event.stop_reason_raw, self.usage)
        self._event(f"response.{response['status']}", response=response)
        self.ended = True

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self._begin()
        _, detail = error_detail(error)
        response = self._envelope("failed", [item for item in self._items if item is not None])
        response["error"] = {"code": detail["code"] or "server_error", "message": detail["message"]}
        response["usage"] = _usage(self.usage)
        self._event("response.failed", response=response)
        self.ended = True

    def finish_items(self) -> list[dict[str, Any]]:
        """Close the open items, seal the remaining state, and return all items."""
        self._settle()
        for item in list(self._calls.values()):
            self._close_call(item, None)
        if not self._own and (state := self._state.take(whole=True)) is not None and (seal := self._sealed(state)):
            self._begin()
            self._write_item(_reasoning(self._new_id("rs"), "", seal))
        return [item for item in self._items if item is not None]

    def _sealed(self, state: Mapping[str, Any]) -> str | None:
        if self.context.seal is not None:
            return self.context.seal(state)
        if state["blocks"] or state["replay"]:
            self._lose("thinking", _STATELESS)
        return None

    def _lose(self, kind: str, reason: str) -> None:
        self.losses.append(Loss(path="content", block_type=kind, verdict="dropped", reason=reason))

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        if not self._own:
            self._note(event)
            self._begin()
            return
        self._trace.update(event.trace or {})
        if not self._begun and isinstance(self._trace.get("id"), str):
            self._id = self._trace["id"]
        self._begin()
        rows = (event.replay or EMPTY).get("items")
        if rows is not None:
            self._rows = rows
            self._write_picture()
            if self._said is not None and _is_done(self._shell(self._said)):
                self._settle()

    # -- items

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}_{self.context.new_id().lower()}"

    def _open(self, kind: str, prefix: str, **fields: Any) -> _Item:
        """Announce an item, with the id from its service if there is one."""
        shell = self._rows[-1]["item"] if self._own and self._rows else EMPTY  # the newest item is the last one
        announced = shell.get("type") == kind and shell.get("id") not in self._used and isinstance(shell.get("id"), str)
        item = {"id": shell["id"] if announced else self._new_id(prefix), "type": kind, **fields}
        self._used.add(item["id"])
        if announced and "phase" in shell:
            item["phase"] = shell["phase"]
        self._items.append(None)
        opened = _Item(len(self._items) - 1, kind, item, announced)
        self._event("response.output_item.added", output_index=opened.place, item=item)
        return opened

    def _shell(self, opened: _Item) -> Mapping[str, Any]:
        """Return the skeleton of an item that this service's reader keeps."""
        items = (row["item"] for row in self._rows) if opened.announced else ()
        return next((item for item in items if item.get("id") == opened.item["id"]), EMPTY)

    def _write_item(self, item: dict[str, Any]) -> None:
        """Write a complete item."""
        place = len(self._items)
        self._items.append(item)
        self._event("response.output_item.added", output_index=place, item=item)
        self._event("response.output_item.done", output_index=place, item=item)

    def _write_picture(self) -> None:
        """Write the item of a picture that was received; with its state, as the service wrote it."""
        picture, self._picture = self._picture, None
        if picture is None:
            return
        shells = [row["item"] for row in self._rows if row["item"]["type"] == PICTURE and "id" in row["item"]]
        made = {"id": self._new_id("ig"), "type": PICTURE, "status": "completed"}
        shell = next((one for one in shells if one["id"] not in self._used), made)
        self._used.add(shell["id"])
        self._write_item({**shell, "result": picture.source.data})

    def _close(self, opened: _Item, item: dict[str, Any], blocks: tuple[ContentBlock | None, ...]) -> None:
        """Write the end of an item; if its skeleton is known, as the service wrote it."""
        shell = self._shell(opened)
        if shell and (opened.kind != "message" or len(shell.get("content") or ()) == len(blocks)):
            item = to_wire_item(ItemMatch(shell, blocks, same=True))
        self._items[opened.place] = item
        self._event("response.output_item.done", output_index=opened.place, item=item)

    # -- text and reasoning

    def _part_of(self, index: int, kind: str) -> int | None:
        """Return the part of the open item that a block belongs to; None for a block of another item.

        Only a message that this API's own service announced has several parts.
        """
        said = self._said
        if said is None or said.kind != kind:
            return None
        if index == self._key:
            return 0
        same = said.announced and kind == "message" and index // SPAN == self._key // SPAN
        return index % SPAN if same else None

    def _say(self, index: int, kind: str, text: str) -> None:
        part = self._part_of(index, kind)
        if part is None:
            if index in self._done:
                return
            self._settle()
            part = 0
            if kind == "message":
                self._said = self._open("message", "msg", status="in_progress", role="assistant", content=[])
            else:
                self._said = self._open("reasoning", "rs", summary=[])
            self._key = index
        said = self._said
        assert said is not None  # noqa: S101  it was opened above
        about = {"item_id": said.item["id"], "output_index": said.place}
        if part not in said.parts and (text or kind == "message"):
            said.parts[part] = []
            if kind == "message":
                empty = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
                self._event("response.content_part.added", **about, content_index=part, part=empty)
            else:
                summary = {"type": "summary_text", "text": ""}
                self._event("response.reasoning_summary_part.added", **about, summary_index=0, part=summary)
        if not text:
            return
        said.parts[part].append(text)
        if kind == "reasoning":
            self._event("response.reasoning_summary_text.delta", **about, summary_index=0, delta=text)
            return
        self._event("response.output_text.delta", **about, content_index=part, delta=text, logprobs=[])
        head = dumps({"type": "response.output_text.delta", **about, "content_index": part})[:-1]
        self._delta = (index, part, b'event: response.output_text.delta\ndata: %b,"delta":' % head)

    def _settle(self) -> None:
        """Close the open item of text or reasoning, or write a picture that waits for its state."""
        self._write_picture()
        said, self._said = self._said, None
        self._delta = (-1, 0, b"")
        if said is None:
            return
        self._done.add(self._key)
        about = {"item_id": said.item["id"], "output_index": said.place}
        if said.kind == "reasoning":
            self._settle_reasoning(said, about)
            return
        parts = []
        blocks: list[ContentBlock | None] = []
        for part in sorted({*said.parts, *said.ends}):
            text, end = said.text(part), said.ends.get(part)
            if isinstance(end, OpaqueBlock):
                parts.append(end.data)
                blocks.append(end)
                continue
            annotations = list(end.citations) if self._own and isinstance(end, TextBlock) else []
            made = {"type": "output_text", "annotations": annotations, "logprobs": [], "text": text}
            self._event("response.output_text.done", **about, content_index=part, text=text, logprobs=[])
            self._event("response.content_part.done", **about, content_index=part, part=made)
            parts.append(made)
            blocks.append(TextBlock(text=text, citations=annotations))
        self._close(said, {**said.item, "status": "completed", "content": parts}, tuple(blocks))

    def _settle_reasoning(self, said: _Item, about: Mapping[str, Any]) -> None:
        text = said.text()
        if said.parts:
            part = {"type": "summary_text", "text": text}
            self._event("response.reasoning_summary_text.done", **about, summary_index=0, text=text)
            self._event("response.reasoning_summary_part.done", **about, summary_index=0, part=part)
        end = said.ends.get(0)
        if isinstance(end, RedactedThinkingBlock):
            self._close(said, _reasoning(said.item["id"], "", end.data), (end,))
            return
        if self._own:
            sealed = end.signature if isinstance(end, ThinkingBlock) else None
        else:
            state = self._state.take(always=True)
            sealed = self._sealed(state) if state is not None else None
        item = _reasoning(said.item["id"], text, sealed)
        self._close(said, item, (ThinkingBlock(text=text, signature=sealed),))

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        block, index = event.block, event.index
        kind = "reasoning" if isinstance(block, ThinkingBlock) else "message"
        if self._part_of(index, kind) is None:
            self._settle()
        if isinstance(block, ToolUseBlock):
            self._whole_call(index, block)
            return
        self._note(event)
        if isinstance(block, (TextBlock, ThinkingBlock)):
            self._end_said(index, kind, block)
        elif index in self._done:
            return  # the end of the answer has it again, newly encrypted
        elif self._own and isinstance(block, RedactedThinkingBlock):
            self._said, self._key = self._open("reasoning", "rs", summary=[]), index  # its state follows
            self._said.ends[0] = block
        elif self._own and isinstance(block, OpaqueBlock) and isinstance(block.data, Mapping):
            if self._said is not None:  # a part of the open message
                self._said.ends[index % SPAN] = block
            else:
                self._done.add(index)
                self._write_item(dict(block.data))
        elif self._own and isinstance(block, ImageBlock) and block.source.kind == "base64":
            self._done.add(index)
            self._picture = block
        elif not isinstance(block, (RedactedThinkingBlock, OpaqueBlock)):
            self._lose(block.type, f"this API has no {block.type} in an answer")

    def _end_said(self, index: int, kind: str, block: TextBlock | ThinkingBlock) -> None:
        part = self._part_of(index, kind)
        if part is None or self._said is None or part not in self._said.parts:
            if index in self._done or (not block.text and not self._own):
                return
            self._say(index, kind, block.text)
        if self._said is not None:
            self._said.ends[self._part_of(index, kind) or 0] = block

    # -- calls

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call."""
        self._settle()
        wire_id = (event.provider_id if self._own else None) or event.id
        self._note(event, wire_id)
        name: dict[str, Any] = dict((self.context.echo.get("namespaces") or EMPTY).get(event.name) or EMPTY)
        kind = "custom_tool_call" if event.name in (self.context.echo.get("custom") or ()) else "function_call"
        kind = (self.context.echo.get("client_calls") or EMPTY).get(event.name, kind)
        if self._own and self._rows:
            shell = self._rows[-1]["item"]
            if call_id_of(shell) == wire_id:
                kind = shell["type"]
                name = {key: shell[key] for key in ("name", "namespace") if key in shell}
        held = {"arguments": ""} if kind == "function_call" else {"input": ""}
        fields = {"status": "in_progress", **held, "call_id": wire_id, "name": event.name, **name}
        prefix = "fc" if kind == "function_call" else "ctc"
        if kind in FORMS:
            begun = new_call(kind, wire_id, EMPTY)
            fields, prefix = ({"status": "in_progress"} if "call_id" in begun else {}) | begun, FORMS[kind].prefix
        opened = self._open(kind, prefix, **fields)
        opened.start = event
        opened.parts[0] = []
        self._calls[event.index] = opened

    def _arguments(self, opened: _Item, text: str) -> None:
        if not text:
            return
        opened.parts[0].append(text)
        if opened.kind == "function_call":
            about = {"item_id": opened.item["id"], "output_index": opened.place}
            self._event("response.function_call_arguments.delta", **about, delta=text)

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        opened = self._calls.pop(event.index, None)
        if opened is not None:
            self._note(event)
            self._close_call(opened, event.block)

    def _whole_call(self, index: int, block: ToolUseBlock) -> None:
        self.start_call(ToolUseStart(index=index, id=block.id, name=block.name, provider_id=block.provider_id))
        self._arguments(self._calls[index], block.input_json)
        self.end_call(ToolUseEnd(index=index, block=block))

    def _close_call(self, opened: _Item, block: ToolUseBlock | None) -> None:
        start = opened.start
        assert start is not None  # noqa: S101  only calls are closed here
        if block is not None and not opened.text():
            self._arguments(opened, block.input_json)
        raw = opened.text() or "{}"
        if opened.kind in FORMS:
            self._close_client_call(opened, read_tool_input(raw)[0] if block is None else block.input)
            return
        about = {"item_id": opened.item["id"], "output_index": opened.place}
        item = {**opened.item, "status": "completed"}
        if opened.kind == "custom_tool_call":
            value = read_tool_input(raw)[0].get("input")
            item["input"] = text = value if isinstance(value, str) else raw
            self._event("response.custom_tool_call_input.delta", **about, delta=text)
            self._event("response.custom_tool_call_input.done", **about, input=text)
        else:
            item["arguments"] = raw
            name = item["name"]
            self._event("response.function_call_arguments.done", **about, name=name, arguments=raw)
        item |= {key: value for key, value in self._shell(opened).items() if key not in item}
        self._items[opened.place] = item
        self._event("response.output_item.done", output_index=opened.place, item=item)

    def _close_client_call(self, opened: _Item, arguments: Mapping[str, Any]) -> None:
        """Write the end of a call of the service's tool that the caller runs, with the events of its arguments."""
        names = {name: opened.item[name] for name in ("id", "call_id") if name in opened.item}
        shell = self._shell(opened)
        if shell:
            item = with_arguments(shell, arguments, IN_BLOCKS) | names
            if item.get("status") == "in_progress":  # the state of its beginning
                item["status"] = "completed"
        else:
            ended = {"status": "completed"} if "call_id" in names else {}
            item = {**opened.item, **new_call(opened.kind, names.get("call_id", ""), arguments), **ended}
        if opened.kind == "shell_call":
            for at, command in enumerate(item["action"].get("commands") or ()):
                about = {"output_index": opened.place, "command_index": at}
                self._event("response.shell_call_command.added", **about, command="")
                self._event("response.shell_call_command.delta", **about, delta=command)
                self._event("response.shell_call_command.done", **about, command=command)
        elif opened.kind == "apply_patch_call" and (diff := item["operation"].get("diff")):
            about = {"item_id": item["id"], "output_index": opened.place}
            self._event("response.apply_patch_call_operation_diff.delta", **about, delta=diff)
            self._event("response.apply_patch_call_operation_diff.done", **about, diff=diff)
        self._items[opened.place] = item
        self._event("response.output_item.done", output_index=opened.place, item=item)


def _is_done(shell: Mapping[str, Any]) -> bool:
    """Return whether a skeleton describes the whole item."""
    if "status" in shell:
        return bool(shell["status"] != "in_progress")
    return any(shell.get(name) for name in ("content", "summary", "encrypted_content"))


def _reasoning(item_id: str, text: str, encrypted: str | None) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": summary}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    """Return the counts; None if there are no counts. An unknown detail is 0, because this API requires it."""
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    cached: dict[str, int] = {"cached_tokens": usage.cached_input_tokens or 0}
    if usage.cache_creation_input_tokens is not None:
        cached["cache_write_tokens"] = usage.cache_creation_input_tokens
    return {
        "input_tokens": read,
        "input_tokens_details": cached,
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": read + written,
    }
