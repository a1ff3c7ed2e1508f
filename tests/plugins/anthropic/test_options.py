"""Options on this wire: both live versions, thinking families, forced choice, betas, falsy values."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlingua._http.signing import sign_request
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, Loss, WireRequest
from interlingua.types.blocks import (
    CacheHint,
    DocumentBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, Role
from interlingua.types.options import ToolChoice
from interlingua_anthropic.request import to_wire_schema
from interlingua_cli.lint import lint_request
from tests.plugins.anthropic.asking import ANTHROPIC, NEW, OLD, answer, asked, body, body_of, elements
from tests.support.adapter import READ

Q = [user("q")]


# -- versions ----------------------------------------------------------------------------------------------------------


def test_sampling_is_sent_to_models_that_honour_it_under_the_version_that_takes_it() -> None:
    request = asked(Q, model=OLD, temperature=0.5)

    assert body_of(request)["temperature"] == 0.5
    assert request.headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("model", [NEW, "claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-2", "claude-haiku-5-5"])
def test_sampling_is_dropped_with_a_loss_where_it_is_refused(model: str) -> None:
    request = asked(Q, model=model, temperature=0)

    assert "temperature" not in body_of(request)
    assert "anthropic-version" not in request.headers
    assert [loss.path for loss in request.losses] == ["options.temperature"]


def test_sampling_is_dropped_where_the_caller_pins_the_version_that_refuses_it() -> None:
    request = asked(Q, model=OLD, top_p=0.5, provider_options={"anthropic_version": "2026-10-21"})

    assert "top_p" not in body_of(request)
    assert request.headers["anthropic-version"] == "2026-10-21"


def test_case_32_zero_is_a_value() -> None:
    parsed = body(Q, model=OLD, temperature=0, top_k=0, max_tokens=0)

    assert (parsed["temperature"], parsed["top_k"], parsed["max_tokens"]) == (0, 0, 0)


def test_case_32_sampling_steps_back_for_thinking_and_the_answer_has_room() -> None:
    request = asked(Q, model=OLD, temperature=0.5, thinking=True, max_tokens=3000)
    parsed = body_of(request)

    assert "temperature" not in parsed
    assert 1024 <= parsed["thinking"]["budget_tokens"] < 3000
    assert [loss.path for loss in request.losses] == ["options.temperature"]


def test_case_32_a_budget_without_max_tokens_leaves_room() -> None:
    parsed = body(Q, model=OLD, thinking_budget=30_000)

    assert parsed["thinking"] == {"type": "enabled", "budget_tokens": 30_000}
    assert parsed["max_tokens"] > 30_000


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_documents_and_citations_that_the_new_version_refuses_are_sent_under_neither(version: str) -> None:
    paper = DocumentBlock(source=MediaSource(kind="base64", data="cGxhaW4="), media_type="text/plain")
    cited = TextBlock(text="so", citations=({"type": "char_location"},))
    found = {
        "type": "search_result", "source": "s", "title": "t",
        "content": [{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}],
        "citations": {"enabled": True},
    }  # fmt: skip
    search = OpaqueBlock(provider="anthropic", kind="search_result", data=found)
    history = [user([search, cited, paper]), answer(TextBlock(text="a"), paper), user("n")]
    request = asked(history, model=OLD, provider_options={"anthropic_version": version})
    first, text, document, own, _ = elements(body_of(request))

    assert first == {**found, "content": [{"type": "text", "text": "x"}]}
    assert text == {"type": "text", "text": "so"}
    assert document["source"] == {"type": "text", "media_type": "text/plain", "data": "plain"}
    assert own == {"type": "text", "text": "a"}
    assert sorted(loss.block_type for loss in request.losses) == ["document", "opaque", "text"]


# -- thinking families -------------------------------------------------------------------------------------------------


BOUND = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize(
    ("model", "options", "thinking", "effort"),
    [
        (NEW, {"thinking": True}, {**BOUND, "display": "summarized"}, None),
        (NEW, {"thinking": False}, BOUND, "low"),
        (NEW, {"thinking_budget": 5000}, {**BOUND, "display": "summarized"}, "medium"),
        ("claude-sonnet-5-5", {"thinking": False}, {"type": "between_tools"}, None),
        ("claude-opus-5", {"thinking": False, "effort": "max"}, {"type": "disabled"}, "high"),
        ("claude-opus-5", {"thinking": False, "effort": "low"}, {"type": "disabled"}, "low"),
        ("claude-opus-4-8", {"effort": "none"}, {"type": "disabled"}, None),
        ("claude-opus-4-6", {"thinking_budget": 2000}, {"type": "enabled", "budget_tokens": 2000}, None),
        (OLD, {"thinking": False}, {"type": "disabled"}, None),
        (OLD, {"thinking_budget": 10}, {"type": "enabled", "budget_tokens": 1024}, None),
        (OLD, {}, None, None),
        (NEW, {"effort": "minimal"}, BOUND, "low"),
    ],
)
def test_each_family_is_asked_in_its_words(
    model: str, options: dict[str, Any], thinking: dict[str, Any] | None, effort: str | None
) -> None:
    parsed = body(Q, model=model, **options)

    assert parsed.get("thinking") == thinking
    assert parsed.get("output_config", {}).get("effort") == effort


def test_no_room_for_the_smallest_budget_is_said_before_sending() -> None:
    with pytest.raises(CapabilityError):
        asked(Q, model=OLD, thinking=True, max_tokens=1000)


# -- choice ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        ("auto", None, {"type": "auto"}),
        ("required", None, {"type": "any"}),
        ("none", None, {"type": "none"}),
        (ToolChoice("read_file"), False, {"type": "tool", "name": "read_file", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
    ],
)
def test_choice(choice: Any, parallel: bool | None, expected: dict[str, Any]) -> None:
    assert body(Q, [READ], tool_choice=choice, parallel_tool_calls=parallel)["tool_choice"] == expected


@pytest.mark.parametrize("choice", ["required", ToolChoice("read_file")])
def test_a_forced_choice_without_tools_is_refused(choice: Any) -> None:
    for model in (NEW, OLD):
        with pytest.raises(CapabilityError):
            asked(Q, [], model=model, tool_choice=choice)


def test_a_forced_choice_wins_over_manual_thinking() -> None:
    request = asked(Q, [READ], model=OLD, tool_choice="required", thinking=True)

    assert "thinking" not in body_of(request)
    assert [loss.path for loss in request.losses] == ["options.thinking"]


# -- headers and connection --------------------------------------------------------------------------------------------


def test_betas_and_ids_become_headers_and_stay_out_of_the_body() -> None:
    more = {"betas": ["a-1", "b-2"], "user_profile_id": "up_1", "workspace_id": "ws_1", "speed": "fast"}
    request = asked(Q, provider_options=more)

    assert request.headers["anthropic-beta"] == "a-1,b-2"
    assert request.headers["anthropic-user-profile-id"] == "up_1"
    assert request.headers["anthropic-workspace-id"] == "ws_1"
    assert body_of(request)["speed"] == "fast"
    assert not more.keys() - {"speed"} & body_of(request).keys()


def test_betas_of_a_request_are_added_to_those_of_the_connection() -> None:
    connection = ANTHROPIC.connection(ConnectionSettings(api_key="k", options={"betas": ["a-1", "b-2"]}))
    request = asked(Q, provider_options={"betas": ["c-3", "a-1"]})

    sent = sign_request(connection, request, {"Anthropic-Beta": "d-4"}).headers  # and the caller's own header to both
    assert sent["anthropic-beta"] == "a-1,b-2,c-3,d-4"  # a comma-joined list without spaces
    assert sign_request(connection, asked(Q), {}).headers["anthropic-beta"] == "a-1,b-2"


@pytest.mark.parametrize(("auth", "name"), [(None, "x-api-key"), ("bearer", "authorization")])
def test_exactly_one_auth_header(auth: str | None, name: str) -> None:
    options = {"auth": auth, "version": "2023-06-01", "betas": ["x-1"]} if auth else {}
    connection = ANTHROPIC.connection(ConnectionSettings(api_key="k-1", options=options))
    request = WireRequest(path="/v1/messages", body=b"", api="messages")

    assert list(connection.auth(request)) == [name]
    assert connection.headers["anthropic-version"] == ("2023-06-01" if auth else "2026-10-21")
    assert "k-1" not in str(dict(connection.headers))


# -- structured output -------------------------------------------------------------------------------------------------


def test_a_response_schema_is_put_into_the_subset_with_a_loss_for_each_word_moved() -> None:
    schema = {
        "type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "minimum": 1}, "k": {"type": "string", "enum": ["a"]}},
    }  # fmt: skip
    request = asked(Q, response_schema=schema)
    written = body_of(request)["output_config"]["format"]

    assert written["type"] == "json_schema"
    assert written["schema"]["additionalProperties"] is False
    assert written["schema"]["properties"]["k"] == {"enum": ["a"]}
    assert "minimum" not in written["schema"]["properties"]["n"]
    assert "minimum: 1" in written["schema"]["properties"]["n"]["description"]
    assert len(request.losses) == 1


# -- server tools ------------------------------------------------------------------------------------------------------

SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}


def _opaque(data: dict[str, Any]) -> OpaqueBlock:
    return OpaqueBlock(provider="anthropic", kind=data["type"], data=data)


def test_a_paused_turn_is_continued_without_a_user_message_and_merged_with_its_end() -> None:
    from interlingua.types.messages import StopReason

    paused = answer(_opaque(SERVER), stop_reason=StopReason.PAUSE_TURN)
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    rest = answer(_opaque(result), TextBlock(text="done"))
    asking = asked([user("q"), paused], model=NEW)

    assert not asking.losses
    assert body_of(asking)["messages"][-1] == {"role": "assistant", "content": [SERVER]}
    assert body([user("q"), paused, rest, user("n")])["messages"][1]["content"] == [
        SERVER, result, {"type": "text", "text": "done"},
    ]  # fmt: skip


def test_a_server_call_cut_off_before_its_result_is_dropped_with_a_loss() -> None:
    from interlingua.types.messages import MessageStatus

    cut = answer(TextBlock(text="I look"), _opaque(SERVER), status=MessageStatus.PARTIAL)
    request = asked([user("q"), cut, user("n")])

    assert [e["type"] for e in elements(body_of(request))] == ["text", "text", "text"]
    assert [loss.verdict for loss in request.losses] == ["dropped"]


def test_uploads_and_new_blocks_go_back_verbatim() -> None:
    upload = {"type": "container_upload", "file_id": "file_1"}
    new = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
    parsed = body([user([_opaque(upload)]), answer(_opaque(new), TextBlock(text="x")), user("n")])

    assert elements(parsed)[0] == upload
    assert elements(parsed)[1] == new


MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}


@pytest.mark.parametrize(
    ("data", "named", "sent"),
    [
        ([{"type": "compaction", "content": "Before."}], None, "compact-2026-01-12"),
        ([{"type": "compaction", "content": "Before."}], ["compact-2026-09-04"], "compact-2026-09-04"),
        ([MCP, MCP_RESULT], None, "mcp-client-2025-11-20"),
        ([MCP, MCP_RESULT], ["files-api-2025-04-14"], "files-api-2025-04-14,mcp-client-2025-11-20"),
        ([MCP, MCP_RESULT], "mcp-client-2025-04-04", "mcp-client-2025-04-04"),
        ([{"type": "container_upload", "file_id": "f"}], None, None),
    ],
)
def test_blocks_of_a_beta_feature_go_back_with_its_header(
    data: list[dict[str, Any]], named: Any, sent: str | None
) -> None:
    history = [user("q"), answer(*map(_opaque, data), TextBlock(text="x")), user("n")]
    for model, own in ((NEW, "thinking-binding-controls-2026-08-01"), (OLD, "")):
        request = asked(history, model=model, provider_options={} if named is None else {"betas": named})

        assert request.headers.get("anthropic-beta", "") == ",".join(filter(None, (sent, own)))
        assert [element for element in elements(body_of(request)) if element["type"] != "text"] == data
        assert not request.losses
    assert "anthropic-beta" not in asked([user("q")], model=OLD).headers


# -- thinking bound to its prefix --------------------------------------------------------------------------------------


def _bound(history: list[Message], text: str = "a") -> Message:
    """An answer of a bound model to this history, as a stream would give it."""
    from tests.plugins.anthropic.asking import context, whole

    request = asked(history, [READ], model=NEW)
    import json

    from tests.support import driving

    content = [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": text}]
    return driving.whole(ANTHROPIC, json.dumps(whole(content)).encode(), context(NEW, request.echo))


def _thinks(history: list[Message], tools: Any = (READ,)) -> list[bool]:
    turns = body(history, tools, model=NEW)["messages"]
    return [turn["content"][0]["type"] == "thinking" for turn in turns if turn["role"] == "assistant"]


def test_bound_thinking_goes_back_while_its_prefix_is_what_it_was() -> None:
    history = [user("q")]
    history += [_bound(history), user("n")]
    history += [_bound(history), user("m")]

    assert _thinks(history) == [True, True]


def test_after_an_edit_bound_thinking_is_dropped_until_an_answer_to_the_edited_history() -> None:
    history = [user("q")]
    history += [_bound(history), user("n")]
    edited = [user("another q"), *history[1:]]
    edited += [_bound(edited), user("m")]

    assert _thinks(edited) == [False, True]


def test_a_changed_tool_list_drops_bound_thinking_and_a_moved_cache_marker_does_not() -> None:
    import attrs

    history = [user("q")]
    history += [_bound(history), user("n")]
    marked = attrs.evolve(READ, cache=CacheHint())

    assert _thinks(history, [marked]) == [True]
    assert _thinks(history, [attrs.evolve(READ, description="Other.")]) == [False]


def test_a_name_of_a_history_that_does_not_fit_the_wire_is_projected() -> None:
    call = ToolUseBlock(id="tu_1", name="functions.read file", input={}, provider_id="toolu_1")
    parsed = body([user("q"), answer(call), tool_result(call, "r")], [READ])

    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", elements(parsed)[1]["name"])


def test_audio_asserted_by_the_caller_is_a_loss_not_a_crash() -> None:
    from interlingua.types.blocks import AudioBlock

    clip = AudioBlock(source=MediaSource(kind="base64", data="AA=="))
    message = Message(role=Role.USER, content=(clip, TextBlock(text="q")))
    request = asked([message], capabilities={"supports_audio": True, "accepted_audio_media_types": ()})

    assert [loss.verdict for loss in request.losses] == ["dropped"]


# -- a turn in progress ------------------------------------------------------------------------------------------------

CALL = ToolUseBlock(id="toolu_1", name="read_file", input={"path": "a"})
THOUGHT = ThinkingBlock(text="hm", signature="c2ln")
MANUAL = ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-1"]


def _loop(*steps: Message) -> list[Message]:
    """Return a conversation in the middle of a turn: each step's call is answered."""
    return [user("q"), *[message for step in steps for message in (step, tool_result(CALL, "x"))]]


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        *[(model, {"effort": "high"}, "effort") for model in MANUAL],
        *[(model, {"thinking": True}, "thinking") for model in MANUAL],
        *[(model, {"thinking_budget": 2000}, "thinking_budget") for model in [*MANUAL, "claude-sonnet-4-6"]],
    ],
)
@pytest.mark.parametrize(
    "begun",
    [
        answer(CALL, provider="openai", api="chat", model="gpt-4o"),
        answer(THOUGHT, CALL, model="claude-opus-4-5"),  # another Claude's, which projection takes away
        answer(TextBlock(text="I look."), CALL, provider="google", api="generate", model="gemini-2.5-pro"),
    ],
    ids=["call", "other-claude", "text"],
)
def test_a_turn_begun_without_thinking_goes_on_without_it(
    model: str, options: dict[str, Any], name: str, begun: Message
) -> None:
    for history in (_loop(begun), _loop(begun, answer(CALL, model=model))):
        request = asked(history, [READ], model=model, **options)
        assert "thinking" not in body_of(request)
        assert (f"options.{name}", "dropped") in [(loss.path, loss.verdict) for loss in request.losses]
        assert lint_request(ANTHROPIC, request) == ()


def test_a_turn_that_began_with_thinking_goes_on_thinking_whatever_its_later_steps_hold() -> None:
    request = asked(_loop(answer(THOUGHT, CALL), answer(CALL)), [READ], model=OLD, thinking=True)

    assert body_of(request)["thinking"]["type"] == "enabled"
    assert request.losses == ()


def test_the_next_turn_thinks_again() -> None:
    foreign = answer(CALL, provider="openai", api="chat", model="gpt-4o")
    history = [*_loop(foreign), answer(TextBlock(text="done"), provider="openai", api="chat"), user("and now?")]

    assert body(history, [READ], model=OLD, thinking=True)["thinking"]["type"] == "enabled"


def test_adaptive_thinking_goes_on_with_any_turn() -> None:
    foreign = answer(CALL, provider="openai", api="chat", model="gpt-4o")
    for model in ("claude-sonnet-4-6", "claude-opus-4-7", NEW):
        assert body(_loop(foreign), [READ], model=model, thinking=True)["thinking"]["type"] == "adaptive"


def test_a_beginning_to_be_continued_is_continued_without_thinking() -> None:
    request = asked([user("q"), answer(TextBlock(text="It is"))], model=OLD, thinking=True)

    assert "thinking" not in body_of(request)
    assert [loss.path for loss in request.losses] == ["options.thinking"]
    assert lint_request(ANTHROPIC, request) == ()


@pytest.mark.parametrize("options", [{"thinking": False}, {"effort": "none"}])
def test_switched_off_in_the_middle_of_a_turn_thinking_leaves_that_turn(options: dict[str, Any]) -> None:
    earlier = [user("p"), answer(THOUGHT, TextBlock(text="so"))]
    request = asked([*earlier, *_loop(answer(THOUGHT, CALL))], [READ], model=OLD, **options)

    kinds = [[element["type"] for element in turn["content"]] for turn in body_of(request)["messages"]]
    assert kinds == [["text"], ["thinking", "text"], ["text"], ["tool_use"], ["tool_result"]]
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("messages[3].content[0]", "dropped")]
    assert lint_request(ANTHROPIC, request) == ()


@pytest.mark.parametrize(
    ("model", "kind"),
    [*((model, "enabled") for model in MANUAL), ("claude-sonnet-4-6", "adaptive"), ("claude-opus-4-7", "adaptive")],
)
def test_a_turn_that_began_with_thinking_goes_on_with_it_where_nothing_is_said(model: str, kind: str) -> None:
    request = asked(_loop(answer(THOUGHT, CALL, model=model)), [READ], model=model)
    parsed = body_of(request)

    assert parsed["thinking"]["type"] == kind
    assert [element["type"] for element in elements(parsed)] == ["text", "thinking", "tool_use", "tool_result"]
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.thinking", "rewritten")]
    assert lint_request(ANTHROPIC, request) == ()


@pytest.mark.parametrize("options", [{"max_tokens": 1000}, {"tool_choice": "required"}])
def test_where_it_cannot_go_on_thinking_leaves_the_turn(options: dict[str, Any]) -> None:
    request = asked(_loop(answer(THOUGHT, CALL)), [READ], model=OLD, **options)

    assert "thinking" not in body_of(request)
    assert [loss.path for loss in request.losses] == ["messages[1].content[0]"]


def test_a_forced_choice_takes_the_thinking_of_the_turn_with_it() -> None:
    request = asked(_loop(answer(THOUGHT, CALL)), [READ], model=OLD, tool_choice="required", thinking=True)

    assert [element["type"] for element in elements(body_of(request))] == ["text", "tool_use", "tool_result"]
    assert sorted(loss.path for loss in request.losses) == ["messages[1].content[0]", "options.thinking"]


# -- values that are refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*MANUAL, "claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6"])
def test_a_model_that_takes_one_of_temperature_and_top_p_gets_the_temperature(model: str) -> None:
    request = asked(Q, model=model, temperature=0.2, top_p=0.9)

    assert body_of(request)["temperature"] == 0.2
    assert "top_p" not in body_of(request)
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.top_p", "dropped")]
    assert body(Q, model=model, top_p=0.9)["top_p"] == 0.9


def test_a_model_that_takes_both_gets_both() -> None:
    parsed = body(Q, model="claude-sonnet-4-0", temperature=0.7, top_p=0.3)

    assert (parsed["temperature"], parsed["top_p"]) == (0.7, 0.3)


def test_a_temperature_above_1_is_sent_as_1() -> None:
    request = asked(Q, model=OLD, temperature=1.6)

    assert body_of(request)["temperature"] == 1
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.temperature", "rewritten")]
    assert lint_request(ANTHROPIC, request) == ()


def test_a_value_that_is_not_sent_is_one_row() -> None:
    assert [loss.verdict for loss in asked(Q, model=NEW, temperature=1.6).losses] == ["dropped"]


@pytest.mark.parametrize(
    ("stop", "sent"), [((" \n", "END"), ["END"]), (("\n",), None), (("",), None), (("END ",), ["END "])]
)
def test_stop_sequences_of_white_space_are_left_out(stop: tuple[str, ...], sent: list[str] | None) -> None:
    request = asked(Q, stop=stop)

    assert body_of(request).get("stop_sequences") == sent
    assert [loss.path for loss in request.losses] == (["options.stop"] if sent != list(stop) else [])
    assert lint_request(ANTHROPIC, request) == ()


def test_a_schema_that_is_no_object_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": {"anyOf": [False, {"type": "string"}]}}}
    losses: list[Loss] = []

    assert to_wire_schema(schema, losses) == {**schema, "additionalProperties": False}
    assert to_wire_schema({"properties": [], "anyOf": "x"}, losses) == {"properties": [], "anyOf": "x"}
