"""What an answer's origin alone can use survives being written in another API and sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import CallerError, CapabilityError, ServerError
from interlingua.plugins import (
    AnswerState,
    InboundRequest,
    Registry,
    ServeContext,
    WireRequest,
    WireResponse,
    hookimpl,
    restore_answer,
)
from interlingua.types import (
    AdapterOptions,
    BlockEnd,
    Message,
    OpaqueBlock,
    Origin,
    Provenance,
    RawUpdate,
    RedactedThinkingBlock,
    SideEffects,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    WireTool,
    system,
    user,
)
from interlingua.types.messages import MessageMetadata
from tests.support.fake_provider import Fake

ACME = Origin("acme", "talk", "acme-1")
ECHOED = Message(
    role="assistant",
    content=(),
    metadata=MessageMetadata(provider="fake", api="fake", model="fake:m", provenance=Provenance.IMPORTED),
)
BLOCKS = (
    RedactedThinkingBlock(data="ZW5j"),
    ThinkingBlock(text="One.", signature="s1"),
    TextBlock(text="Let me see."),
    ThinkingBlock(text="Two.", signature="s2"),
    ToolUseBlock(id="tu_1", name="Read", input={"a": 1}, provider_id="call_9", raw_input='{"a": 1}', signature="s3"),
    OpaqueBlock(provider="acme", kind="search", data={"type": "search", "n": 1}),
    TextBlock(text="Done.", signature="s4"),
)


def _answer() -> Message:
    raw = {"origin": list(ACME), "replay": {"items": [1]}, "trace": {}}
    metadata = MessageMetadata(provider="acme", api="talk", model="acme:acme-1", provider_raw=raw)
    return Message(role="assistant", content=BLOCKS, metadata=metadata)


def _state(*, strings: bool = False) -> Any:
    gathered = AnswerState(ACME, strings=strings)
    gathered.add_message(_answer(), lambda call: call.id)
    state = gathered.take(whole=True)
    assert gathered.take() is None, "it was taken"
    return json.loads(json.dumps(state, default=dict))


def test_an_answer_whose_texts_were_joined_comes_back_as_it_was() -> None:
    joined = [
        ThinkingBlock(text="One.Two."),
        TextBlock(text="Let me see.Done."),
        ToolUseBlock(id="tu_1", name="Read", input={"a": 1}),
    ]

    restored = restore_answer(ECHOED, [_state(), *joined])

    assert restored.content == BLOCKS
    assert restored.metadata.origin == ACME
    assert restored.metadata.provider_raw == {"origin": list(ACME), "replay": {"items": [1]}, "trace": {}}


def test_an_answer_that_the_caller_changed_keeps_what_still_fits() -> None:
    changed = [TextBlock(text="Other words."), ToolUseBlock(id="tu_1", name="Read", input={"a": 2})]

    restored = restore_answer(ECHOED, [_state(), *changed])

    (call,) = restored.tool_calls()
    assert (call.provider_id, call.signature, call.raw_input) == ("call_9", "s3", None)
    assert restored.text_content() == "Other words."
    assert restored.metadata.origin == ACME


def test_states_in_several_places_restore_what_stood_behind_each() -> None:
    gathered = AnswerState(ACME, strings=False)
    items: list[Any] = []
    for index, block in enumerate(BLOCKS):
        gathered.add(index, block, block.id if isinstance(block, ToolUseBlock) else "")
        items.append(gathered.take() or {})
        if not isinstance(block, (RedactedThinkingBlock, OpaqueBlock)):
            bare = {"text": getattr(block, "text", None)}
            items.append(
                ToolUseBlock(id="tu_1", name="Read", input={"a": 1})
                if isinstance(block, ToolUseBlock)
                else type(block)(**bare)
            )

    assert restore_answer(ECHOED, items).content == BLOCKS


def test_of_answers_put_together_the_last_ones_origin_counts() -> None:
    states = []
    for origin, signature in ((Origin("other", "talk", "x"), "s0"), (ACME, "s1")):
        gathered = AnswerState(origin, strings=False)
        gathered.add(0, ThinkingBlock(text="Hm.", signature=signature))
        states.append(gathered.take() or {})
    thought, text = ThinkingBlock(text="Hm."), TextBlock(text="x")

    restored = restore_answer(ECHOED, [states[0], thought, text, states[1], thought, text])

    assert restored.content == (text, ThinkingBlock(text="Hm.", signature="s1"), text)
    assert restored.metadata.origin == ACME


def test_what_came_after_its_block_goes_back_to_it() -> None:
    gathered = AnswerState(ACME, strings=False)
    gathered.note(BlockEnd(index=0, block=ThinkingBlock(text="", signature="late")))
    state = gathered.take()
    assert state is not None

    restored = restore_answer(ECHOED, [ThinkingBlock(text="Hm."), TextBlock(text="x"), state])

    assert [block.signature for block in restored.thinking()] == ["late"]


def test_a_streamed_call_is_gathered_as_a_whole_one() -> None:
    gathered = AnswerState(ACME, strings=False)
    call = ToolUseBlock(id="tu_1", name="Read", input={"a": 1}, provider_id="call_9", raw_input='{"a": 1}')
    gathered.note(RawUpdate(replay={"items": [1]}))
    gathered.note(TextDelta(index=0, text="x"))
    gathered.note(ToolUseStart(index=4, id="tu_1", name="Read", provider_id="call_9"), "tu_1")
    gathered.note(ToolUseInputDelta(index=4, partial_json='{"a": '))
    gathered.note(ToolUseInputDelta(index=4, partial_json="1}"))
    gathered.note(ToolUseEnd(index=4))
    state = gathered.take()
    assert state is not None

    restored = restore_answer(
        ECHOED, [state, TextBlock(text="x"), ToolUseBlock(id="tu_1", name="Read", input={"a": 1})]
    )

    assert restored.content == (TextBlock(text="x"), call)


def test_an_answer_without_state_stays_the_callers() -> None:
    gathered = AnswerState(ACME, strings=True)
    gathered.note(TextDelta(index=0, text="x"))
    gathered.note(ToolUseStart(index=1, id="tu_1", name="f", provider_id="tu_1"), "tu_1")

    assert gathered.take() is None
    assert restore_answer(ECHOED, [{}, TextBlock(text="x")]).metadata is ECHOED.metadata


def test_only_an_upstream_of_the_same_api_gets_what_only_that_api_has() -> None:
    request = InboundRequest(
        messages=(system("x-header"), user("Hi."), ECHOED),
        options=AdapterOptions(model="m", api="fake", max_tokens=9),
        extra={"store": False},
        private=(0,),
        provider="fake",
    )

    messages, options, losses = request.for_upstream("fake", "fake", "real-m")
    assert (len(messages), options.model, options.provider_options, losses) == (3, "real-m", {"store": False}, ())
    assert messages[2].metadata.model == "fake:real-m"

    messages, options, losses = request.for_upstream("host", "fake", "m")
    assert (len(messages), options.provider_options, [loss.path for loss in losses]) == (
        2,
        {"store": False},
        ["messages[0]"],
    )

    messages, options, losses = request.for_upstream("acme", "talk", "acme-1")
    assert [message.role for message in messages] == ["user", "assistant"]
    assert (options.model, options.api, options.max_tokens, options.provider_options) == ("acme-1", "talk", 9, {})
    assert [(loss.path, loss.verdict) for loss in losses] == [
        ("options.provider_options.store", "dropped"),
        ("messages[0]", "dropped"),
    ]


def test_the_exact_form_of_an_option_is_for_the_very_model_that_was_asked_for() -> None:
    request = InboundRequest(
        messages=(user("Hi."),),
        options=AdapterOptions(model="m", api="fake", max_tokens=9, thinking=True),
        extra={"limit": 9, "thinking": {"type": "adaptive"}},
        covered={"limit": ("max_tokens",), "thinking": ()},
        provider="fake",
    )

    _, exact, _ = request.for_upstream("fake", "fake", "m")
    assert (exact.max_tokens, exact.thinking, exact.provider_options) == (None, True, request.extra)
    for upstream in (("fake", "fake", "other"), ("host", "fake", "m"), ("acme", "talk", "m")):
        _, options, losses = request.for_upstream(*upstream)
        assert (options.max_tokens, options.thinking, options.provider_options, losses) == (9, True, {}, ())


def test_a_tool_of_a_request_keeps_name_and_schema() -> None:
    schema = {"$schema": "x", "type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}}}
    tool = WireTool(name="Read", description="d", input_schema=schema, extra={"strict": True}, api="fake")

    assert (tool.name, tool.input_schema, tool.side_effects) == ("Read", schema, SideEffects.EXECUTE)
    assert (tool.extra_of("fake"), tool.extra_of("talk")) == ({"strict": True}, {})


class _Writer:
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.losses: list[Any] = []

    def feed(self, events: Any) -> bytes:
        return b"x" * len(list(events))

    def end(self) -> bytes:
        return b"."


class _Serving(Fake):
    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        body = json.loads(request.body)
        options = AdapterOptions(model=body["model"], api=request.api)
        return InboundRequest(messages=(user(body["text"]),), options=options, provider=context.provider)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return WireResponse(body=message.text_content().encode())

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> _Writer:
        return _Writer()

    @hookimpl
    def to_wire_error(self, error: Exception, context: ServeContext) -> WireResponse:
        return WireResponse(status=500)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        return WireResponse(body=str(value).encode()) if kind == "count_tokens" else None


def test_the_hooks_are_reached_and_a_request_that_cannot_be_read_is_the_callers_mistake() -> None:
    provider = Registry(providers={"fake": _Serving()}, entry_points=[]).provider("fake")
    context = ServeContext(provider="fake", api="fake", model="m", origin=Origin("fake", "fake", "m"))
    request = WireRequest(path="/talk", body=b'{"model": "m", "text": "Hi."}', api="fake")

    assert provider.from_wire_request(request, context).messages[0].text_content() == "Hi."
    assert provider.to_wire_response(user("Hi."), context).body == b"Hi."
    assert provider.stream_to_wire(context).feed([TextDelta(index=0, text="x")]) == b"x"
    assert provider.to_wire_error(ServerError("x"), context).status == 500
    assert provider.to_wire_auxiliary("count_tokens", 3, context).body == b"3"
    assert context.is_own
    assert context.answer_id != ServeContext(provider="fake", api="fake").answer_id
    with pytest.raises(CapabilityError):
        provider.to_wire_auxiliary("models", [], context)
    for body in (b"{", b"[]", b"{}", b'{"model": 3, "text": 4}'):
        with pytest.raises(CallerError):
            provider.from_wire_request(WireRequest(path="/talk", body=body, api="fake"), context)


def test_a_provider_without_the_hooks_serves_nothing() -> None:
    provider = Registry(providers={"fake": Fake()}, entry_points=[]).provider("fake")

    with pytest.raises(CapabilityError, match="does not serve"):
        provider.stream_to_wire(ServeContext(provider="fake", api="fake"))
