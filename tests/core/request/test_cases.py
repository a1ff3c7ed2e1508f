"""The cases of the field that projection answers, one by one, on a made-up target."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.provider import ProjectionTarget, Provider
from interlingua._plugins.registry import new_manager
from interlingua._request.project import MISSING_RESULT, locate_losses, project_conversation
from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, WireRequest, build_request
from interlingua.types.blocks import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UnknownBlock,
)
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Role
from interlingua.types.options import RequestOptions
from tests.core.request import scene
from tests.core.request.scene import IMAGE, call, made

TEXT = TextBlock(text="so")


def project(*messages: Message, target: ProjectionTarget | None = None) -> tuple[list[Message], Any]:
    return project_conversation(messages, target or scene.target())


@pytest.mark.parametrize("origin", [{"provider": "other"}, {"model": "n"}, {"api": "responses"}])
def test_case_01_foreign_thinking_is_dropped_and_the_text_stays(origin: dict[str, str]) -> None:
    projected, losses = project(user("hi"), made(ThinkingBlock(text="hm", signature="s"), TEXT, **origin))

    assert projected[1].content == (TEXT,)
    assert [(loss.path, loss.block_type, loss.verdict) for loss in losses] == [
        ("messages[1].content[0]", "thinking", "dropped")
    ]


def test_case_01_unsigned_thinking_is_dropped_unless_the_target_takes_it() -> None:
    message = made(ThinkingBlock(text="hm"), TEXT)
    lenient = scene.target(attrs.evolve(scene.ABLE, accepts_unsigned_thinking=True))

    assert project(user("hi"), message)[0][1].content == (TEXT,)
    assert project(user("hi"), message, target=lenient)[0][1].content == message.content


def test_case_01_a_dated_snapshot_is_the_same_model() -> None:
    message = made(ThinkingBlock(text="hm", signature="s"), TEXT, model="m-20260501")

    assert project(user("hi"), message)[0][1].content == message.content


def test_case_02_thinking_does_not_become_text_unless_asked() -> None:
    message = made(ThinkingBlock(text="secret plan"), TEXT, provider="other")
    asked = scene.target(thinking_as_text=True)

    assert "secret" not in str(project(user("hi"), message)[0])
    projected, losses = project(user("hi"), message, target=asked)
    assert projected[1].content == (TextBlock(text="secret plan"), TEXT)
    assert losses[0].verdict == "rewritten"


def test_case_03_own_state_survives_byte_equal_and_in_order() -> None:
    raw = {"origin": ["acme", "chat", "m"], "replay": {"k": 1}, "trace": {}}
    message = made(
        ThinkingBlock(text="", signature="only"),
        RedactedThinkingBlock(data="blob"),
        ThinkingBlock(text="hm", signature="s"),
        attrs.evolve(TEXT, signature="t"),
        call("tu_1", "own_1", signature="u", raw_input='{ "a":1}', input={"a": 1}),
        provider_raw=raw,
    )
    projected, losses = project(user("hi"), message, tool_result("tu_1", "ok"))

    assert projected[1].content == (*message.content[:4], attrs.evolve(message.tool_calls[0], id="own_1"))
    assert projected[1].metadata.provider_raw == raw
    assert losses == ()


def test_signatures_go_to_targets_that_take_them_on_these_blocks_only() -> None:
    signed = (
        attrs.evolve(TEXT, signature="t"),
        TextBlock(text=" ", signature="b"),
        call("tu_1", "own_1", signature="u"),
    )
    plain = (TEXT, attrs.evolve(call("own_1", "own_1")))
    takes_none = scene.target(attrs.evolve(scene.ABLE, signed_blocks=()))
    projected, losses = project(user("hi"), made(*signed), tool_result("tu_1", "ok"), target=takes_none)

    assert [(row.path, row.verdict, row.reason) for row in losses] == [
        ("messages[1].content[0]", "rewritten", "its signature cannot be sent to this target"),
        ("messages[1].content[1]", "dropped", "empty text, which services reject"),
        ("messages[1].content[2]", "rewritten", "its signature cannot be sent to this target"),
    ]
    assert projected[1].content == plain

    takes_calls = scene.target(attrs.evolve(scene.ABLE, signed_blocks=("tool_use",)))
    projected, losses = project(user("hi"), made(*signed), tool_result("tu_1", "ok"), target=takes_calls)

    assert projected[1].content == (TEXT, attrs.evolve(signed[2], id="own_1"))
    assert [row.verdict for row in losses] == ["rewritten", "dropped"]


def test_a_foreign_provider_raw_is_hidden() -> None:
    projected, _ = project(user("hi"), made(TEXT, provider="other", provider_raw={"replay": {"x": 1}}))

    assert projected[1].metadata.provider_raw is None


def test_case_07_a_dangling_call_gets_the_same_error_result_every_time() -> None:
    history = [user("hi"), made(call("tu_1")), user("never mind")]
    first, losses = project(*history)

    assert [each.role for each in first] == ["user", "assistant", "tool", "user"]
    filled = first[2].tool_results[0]
    assert (filled.is_error, filled.content) == (True, (TextBlock(text=MISSING_RESULT),))
    assert losses[0].path.startswith("messages[1]")
    assert losses[0].verdict == "rewritten"
    again, none = project(*first, target=scene.target())
    assert [each.content for each in again] == [each.content for each in first]  # idempotent
    assert none == ()


def test_case_08_an_orphan_result_is_dropped_with_a_loss() -> None:
    projected, losses = project(user("hi"), tool_result("tu_gone", "x"), user("go on"))

    assert [each.role for each in projected] == ["user", "user"]
    assert [(loss.path, loss.verdict) for loss in losses] == [("messages[1].content[0]", "dropped")]


def test_case_08_results_of_a_turn_that_fell_away_fall_with_it() -> None:
    cut = made(call("tu_1", parse_error="cut"), status=MessageStatus.CANCELLED)
    projected, _ = project(user("hi"), cut, tool_result("tu_1", "x"), user("go on"))

    assert [each.role for each in projected] == ["user", "user"]


def test_case_09_results_come_in_the_calls_order_before_the_user_speaks() -> None:
    a, b = call("tu_a"), call("tu_b")
    projected, losses = project(user("hi"), made(a, b), tool_result(b, "B"), tool_result(a, "A"), user("and?"))

    assert [each.role for each in projected] == ["user", "assistant", "tool", "tool", "user"]
    assert [each.tool_results[0].content[0] for each in projected[2:4]] == [TextBlock(text="A"), TextBlock(text="B")]
    assert losses == ()


def test_several_results_in_one_message_are_taken_apart() -> None:
    a, b = call("tu_a"), call("tu_b")
    both = Message(role=Role.TOOL, content=[ToolResultBlock(tool_use_id=each.id, content=each.id) for each in (b, a)])
    projected, _ = project(user("hi"), made(a, b), both)

    assert [[block.tool_use_id for block in each.tool_results] for each in projected[2:]] == [["tu_a"], ["tu_b"]]


def test_case_10_two_calls_of_one_turn_with_one_id_get_their_results_in_order() -> None:
    same = call("call_0")
    projected, losses = project(user("hi"), made(same, same), tool_result(same, "A"), tool_result(same, "B"))

    ids = [each.id for each in projected[1].tool_calls]
    assert len(set(ids)) == 2
    assert [(each.tool_results[0].tool_use_id, each.tool_results[0].content) for each in projected[2:]] == [
        (ids[0], (TextBlock(text="A"),)),
        (ids[1], (TextBlock(text="B"),)),
    ]
    assert losses == ()


def test_the_ledger_and_critical_indexes_point_into_the_message_as_it_was() -> None:
    a, b = call("tu_a"), call("tu_b")
    content = [ToolResultBlock(tool_use_id="tu_a", content="x"), ToolResultBlock(tool_use_id="tu_b", content=[IMAGE])]
    both = Message(role=Role.TOOL, content=content, metadata=MessageMetadata(critical=(0,)))
    blind = scene.target(attrs.evolve(scene.ABLE, supports_images=False))
    _, losses = project(user("hi"), made(a, b), both, target=blind)

    assert [(loss.path, loss.verdict) for loss in losses] == [("messages[2].content[1]", "rewritten")]


@pytest.mark.parametrize("provider_id", [None, "own_b"])
def test_an_adapters_row_about_one_result_of_several_points_at_it(provider_id: str | None) -> None:
    """The result goes by itself, under the id that the provider gave its call."""
    calls = made(call("tu_a", provider_id and "own_a"), call("tu_b", provider_id))
    results = [ToolResultBlock(tool_use_id=each.id, content=[TextBlock(text=each.id)]) for each in calls.tool_calls]
    history = [user("hi"), calls, Message(role=Role.TOOL, content=results)]
    projected, before = project(*history)
    row = Loss(path="messages[3].content[0].is_error", block_type="tool_result", verdict="rewritten", reason="so")

    (located,) = locate_losses([row], projected, history, before)
    assert (located.path, located.message_id) == ("messages[2].content[1].is_error", history[2].id)


def test_case_10_duplicate_ids_over_turns_stay_apart_and_stable() -> None:
    target = scene.target(scene.NARROW)
    history: list[Message] = [user("hi")]
    seen: list[str] = []
    for _ in range(4):
        history += [made(call("functions.todo:0"), provider="other"), tool_result("functions.todo:0", "x")]
        projected, _losses = project_conversation(history, target)
        ids = [each.id for message in projected for each in message.tool_calls]
        assert ids[: len(seen)] == seen
        assert len(set(ids)) == len(ids)
        assert [block.tool_use_id for message in projected for block in message.tool_results] == ids
        seen = ids


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_case_12_empty_text_goes_and_a_message_of_nothing_else_with_it(text: str) -> None:
    history = [user("hi"), made(TextBlock(text=text)), Message(role=Role.USER, content=[TextBlock(text=text), TEXT])]
    projected, losses = project(*history)

    assert [each.content for each in projected] == [history[0].content, (TEXT,)]
    assert len(losses) == 2


BLIND = scene.target(attrs.evolve(scene.ABLE, supports_images=False))
FOREIGN = OpaqueBlock(provider="elsewhere", kind="thing", data={"a": 1})


@pytest.mark.parametrize(
    ("content", "stand_in"),
    [
        ([IMAGE], "[image not sent: this target takes no image]"),
        ([TextBlock(text=" \n")], "[empty message]"),
        ([TextBlock(text=""), IMAGE], "[image not sent: this target takes no image]"),
        ([FOREIGN], "[opaque not sent: thing content belongs to elsewhere and goes only there]"),
        ([], "[empty message]"),
    ],
)
def test_a_users_turn_of_which_nothing_is_left_says_so(content: list[ContentBlock], stand_in: str) -> None:
    turn = Message(role=Role.USER, content=content)
    projected, losses = project(user("hi"), made(TEXT), turn, target=BLIND)

    assert projected[2].content == (TextBlock(text=stand_in),)
    assert projected[2].id == turn.id
    assert [loss.path for loss in losses] == [f"messages[2].content[{at}]" for at in range(max(len(content), 1))]
    again, none = project(*projected, target=BLIND)
    assert (again, none) == (projected, ())


def test_a_note_in_the_place_of_a_users_image_tells_the_model() -> None:
    projected, losses = project(Message(role=Role.USER, content=[TEXT, IMAGE, TEXT]), target=BLIND)

    note = TextBlock(text="[image not sent: this target takes no image]")
    assert projected[0].content == (TEXT, note, TEXT)
    assert [(loss.path, loss.verdict, loss.severity) for loss in losses] == [
        ("messages[0].content[1]", "dropped", "content")
    ]


def test_a_critical_image_is_not_replaced_by_a_stand_in() -> None:
    _, losses = project(Message(role=Role.USER, content=[IMAGE], metadata=MessageMetadata(critical=(0,))), target=BLIND)

    assert [loss.verdict for loss in losses] == ["blocked"]


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
PDF = "JVBERi0xLjQK"


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize(
    ("kind", "data", "media_type"),
    [
        (ImageBlock, PNG, "image/png"),
        (DocumentBlock, PDF, "application/pdf"),
        (ImageBlock, PDF, None),
        (DocumentBlock, PNG, None),
        (ImageBlock, "AAAA", None),
        (ImageBlock, "no base64", None),
        (ImageBlock, "Qk0+AAAAAAAAAD4AAAAoAAAA", None),  # a type that is not taken
    ],
)
def test_media_without_a_type_get_the_one_their_bytes_show(
    role: Role, kind: Any, data: str, media_type: str | None
) -> None:
    block = kind(source=MediaSource(kind="base64", data=data), media_type="")
    able = attrs.evolve(scene.ABLE, supports_documents=True, supports_tool_result_documents=True)
    for_results = [user("hi"), made(call("tu_1")), tool_result("tu_1", [TEXT, block])]
    history = [Message(role=Role.USER, content=[TEXT, block])] if role is Role.USER else for_results
    projected, losses = project(*history, target=scene.target(able))
    content: Any = projected[-1].content if role is Role.USER else projected[-1].tool_results[0].content

    assert [loss.block_type for loss in losses] == [block.type]
    assert [getattr(part, "media_type", None) for part in content[1:]] == [media_type]


def test_media_by_reference_and_a_models_own_need_no_type() -> None:
    linked = ImageBlock(source=MediaSource(kind="url", data="https://example.org/a"))
    spoken = AudioBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="")
    hearing = scene.target(attrs.evolve(scene.ABLE, supports_image_urls=True, supports_audio=True))
    history = [user([linked]), made(spoken, TEXT)]

    projected, losses = project(*history, target=hearing)
    assert ([each.content for each in projected], losses) == ([each.content for each in history], ())


def test_case_21_media_in_results() -> None:
    history = [user("hi"), made(call("tu_1")), tool_result("tu_1", [TEXT, IMAGE]), user("what is it?")]

    native, losses = project(*history)
    assert native[2].tool_results[0].content == (TEXT, IMAGE)
    assert losses == ()

    no_results = scene.target(attrs.evolve(scene.ABLE, supports_tool_result_images=False))
    moved, losses = project(*history, target=no_results)
    assert [each.role for each in moved] == ["user", "assistant", "tool", "user", "user"]
    assert moved[3].content[-1] is IMAGE
    assert all(block.type == "text" for block in moved[2].tool_results[0].content)
    assert losses[0].verdict == "rewritten"

    blind = scene.target(attrs.evolve(scene.ABLE, supports_images=False))
    noted, losses = project(*history, target=blind)
    assert [each.role for each in noted] == ["user", "assistant", "tool", "user"]
    assert "image" in noted[2].tool_results[0].content[1].text  # type: ignore[union-attr]
    assert losses[0].block_type == "image"


DOCUMENT = DocumentBlock(source=MediaSource(kind="base64", data="aGk="), media_type="text/plain")


def test_documents_in_results_have_a_flag_of_their_own() -> None:
    history = [user("hi"), made(call("tu_1")), tool_result("tu_1", [TEXT, DOCUMENT, IMAGE]), user("what is it?")]

    def inside(**flags: Any) -> tuple[list[str], list[str]]:
        able = attrs.evolve(scene.ABLE, **{"supports_tool_result_images": False, **flags})
        projected, _ = project(*history, target=scene.target(able))
        moved = [str(block.type) for message in projected[3:] for block in message.content]
        return [str(part.type) for part in projected[2].tool_results[0].content], moved

    assert inside(supports_tool_result_documents=True) == (["text", "document", "text"], ["text", "image", "text"])
    both = {"supports_tool_result_documents": True, "supports_documents": True, "supports_tool_result_images": True}
    assert inside(**both) == (["text", "document", "image"], ["text"])
    assert inside(supports_documents=True) == (["text", "text", "text"], ["text", "document", "image", "text"])
    assert inside(supports_tool_result_images=True) == (["text", "text", "image"], ["text"])


@pytest.mark.parametrize(
    ("origin", "declared", "kept"),
    [
        ({}, True, True),
        ({"model": "another"}, True, True),
        ({}, False, False),
        ({"provider": "other"}, True, False),
        ({"api": "responses"}, True, False),
        ({"provider": "other"}, False, False),
    ],
)
def test_citations_go_back_to_the_provider_and_api_they_came_from(
    origin: dict[str, str], declared: bool, kept: bool
) -> None:
    cited = TextBlock(text="so it is", citations=({"url": "https://a.test"},))
    able = attrs.evolve(scene.ABLE, supports_citations=declared, thinking_scope="never")
    projected, losses = project(user("hi"), made(cited, **origin), user("go on"), target=scene.target(able))

    assert projected[1].text == "so it is"
    assert bool(projected[1].content[0].citations) is kept  # type: ignore[union-attr]
    assert [loss.verdict for loss in losses] == ([] if kept else ["rewritten"])


@pytest.mark.parametrize("status", [MessageStatus.PARTIAL, MessageStatus.CANCELLED, MessageStatus.ERROR])
def test_case_35_an_aborted_turn_keeps_its_text_only(status: MessageStatus) -> None:
    lenient = scene.target(attrs.evolve(scene.ABLE, accepts_unsigned_thinking=True))
    half = call("tu_1", parse_error="the call was cut off", raw_input='{"pa')
    message = made(ThinkingBlock(text="hm"), TEXT, half, status=status)

    projected, losses = project(user("hi"), message, user("go on"), target=lenient)

    assert [each.content for each in projected] == [(TextBlock(text="hi"),), (TEXT,), (TextBlock(text="go on"),)]
    assert sorted(loss.block_type for loss in losses) == ["thinking", "tool_use"]


def test_leading_system_messages_stay_and_later_ones_are_tagged_where_they_stand() -> None:
    """Case 25."""
    projected, losses = project(system("a"), system("b"), user("hi"), system("c"))

    assert [each.role for each in projected] == ["system", "system", "user", "user"]
    assert "c" in projected[3].text
    assert losses[0].verdict == "rewritten"


def test_a_tagged_system_message_keeps_its_last_cache_hint() -> None:
    able = attrs.evolve(scene.ABLE, supports_prompt_caching=True)
    hinted = [TextBlock(text="c", cache=CacheHint(ttl="1h")), TextBlock(text="d", cache=CacheHint())]
    later = Message(role=Role.SYSTEM, content=hinted)
    projected, _ = project(user("hi"), later, target=scene.target(able))

    assert [block.cache for block in projected[1].content if isinstance(block, TextBlock)] == [CacheHint()]


class _Hook:
    """The hooks the façade needs to write a request."""

    @hookimpl
    def capabilities(self, model: str, options: Any) -> Any:
        return attrs.evolve(scene.ABLE, supports_images=False)

    @hookimpl
    def to_wire(self, messages: Any, tools: Any, options: Any) -> WireRequest:
        return WireRequest(path="/", body=b"{}", api="chat")


def _acme() -> Provider:
    return Provider("acme", new_manager([_Hook()]).hook)


def test_a_critical_block_fails_the_request_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    message = Message(role=Role.USER, content=[TEXT, IMAGE], metadata=MessageMetadata(critical=(1,)))
    provider = _acme()

    with pytest.raises(CapabilityError) as caught:
        build_request(provider, [user("hi"), message], [], RequestOptions(model="m"))

    assert caught.value.path == "messages[1].content[1]"
    harmless = attrs.evolve(message, metadata=MessageMetadata(critical=(0,)))
    assert build_request(provider, [user("hi"), harmless], [], RequestOptions(model="m")).losses[0].verdict == "dropped"


def test_a_critical_block_inside_a_message_nobody_can_place_fails_too() -> None:
    orphan = attrs.evolve(tool_result("tu_gone", "x"), metadata=MessageMetadata(critical=(0,)))

    with pytest.raises(CapabilityError):
        build_request(_acme(), [user("hi"), orphan], [], RequestOptions(model="m"))


def test_each_loss_is_one_warning_with_the_five_fields(caplog: pytest.LogCaptureFixture) -> None:
    """Seed 003 §4.2: session_id, message_id, block type, adapter name, reason; at WARN, as a log entry."""
    message = Message(role=Role.USER, session_id="s1", content=[TEXT, IMAGE, UnknownBlock(raw={"type": "hologram"})])
    with caplog.at_level(logging.WARNING, "interlingua"):
        build_request(_acme(), [message], [], RequestOptions(model="m"))

    assert [(record.levelname, record.session_id, record.message_id, record.block_type, record.adapter) for record  # type: ignore[attr-defined]
            in caplog.records] == [
        ("WARNING", "s1", message.id, "image", "acme"),
        ("WARNING", "s1", message.id, "unknown", "acme"),
    ]  # fmt: skip
    assert all(record.reason for record in caplog.records)  # type: ignore[attr-defined]
