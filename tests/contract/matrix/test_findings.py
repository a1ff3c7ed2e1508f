"""The matrix is green for third parties that are right, and red, with the reason, for each way of being wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import Loss
from interlingua.types.blocks import ImageBlock, MediaSource
from interlingua.types.messages import Message
from interlingua_contract.matrix.grid import Grid, Matrix
from interlingua_contract.matrix.histories import History, Script
from interlingua_contract.matrix.recorded import recorded_histories
from interlingua_contract.matrix.sides import Speaker, sides
from tests.contract.matrix.acme import Body, Change, pair
from tests.support import tree


def _matrix(change: Change | None = None, rules: Sequence[str] = ()) -> Matrix:
    return Grid(sides(pair(change, rules))).run()


def _findings(matrix: Matrix) -> set[str]:
    return {finding for cell in matrix.cells for run in cell.runs for finding in run.findings}


def _parts(body: Body) -> Iterator[Body]:
    for turn in body["turns"]:
        yield from turn["parts"]


def test_two_third_parties_are_green_and_every_pair_is_there() -> None:
    matrix = _matrix()

    assert _findings(matrix) == set()
    assert matrix.green
    assert [(cell.begun, cell.swapped) for cell in matrix.cells] == [("acme", "bolt"), ("bolt", "acme")]
    assert [run.history for run in matrix.cells[0].runs] == list(matrix.histories)


def test_the_set_is_the_one_that_was_asked_for() -> None:
    # plain, tools, parallel tools, tool error, images in and in tool results, thinking signed/redacted/
    # unsigned, aborted partial, dangling call, orphan result, unicode extremes, 400 messages, documents, citations,
    # cached prompt, refusal
    assert len(_matrix().histories) == 18


def test_foreign_thinking_is_in_the_ledger_and_own_thinking_is_not() -> None:
    cell = _matrix().cells[0]
    signed = next(run for run in cell.runs if run.history == "thinking, signed")

    # two answers of acme think, and bolt is sent none of it; on the way back bolt's own first answer thinks
    assert [(loss.block_type, loss.verdict) for loss in signed.losses] == [("thinking", "dropped")] * 2
    assert [(loss.path, loss.verdict) for loss in signed.back] == [("messages[5].content[0]", "dropped")]


def _lose_last_text(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    del body["turns"][-1]["parts"][0]


def _lose_a_seal(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if part.get("seal"):
            part["seal"] = part["seal"][:-1]


def _lose_an_argument(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if "with" in part:
            part["with"] = {**part["with"], "more": 1}


def _lose_the_flag(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        part.pop("failed", None)


def _flag_by_a_word(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if "failed" in part:
            part["went"] = "badly" if part.pop("failed") else "well"


def _flag_by_a_sentence(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if part.pop("failed", None):
            part["parts"][0]["text"] = f"Error: {part['parts'][0]['text']}"


def _lose_an_image(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if "picture" in part:
            part["picture"] = part["picture"][::-1]


def _move_an_image(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for turn in body["turns"]:
        for part in list(turn["parts"]):
            pictures = [inner for inner in part.get("parts", ()) if "picture" in inner]
            for picture in pictures:
                part["parts"].remove(picture)
                turn["parts"].append(picture)


def _say_it_twice(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    losses.append(Loss(path="messages[0].content[0]", block_type="text", verdict="dropped", reason="so it seems"))


def _say_it_for_nothing(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    losses.append(Loss(path="messages[0].content[0]", block_type="text", verdict="rewritten", reason="so it seems"))


def _number(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    body["turns"][0]["of"] = len(messages)


def _count(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    body["count"] = len(messages)


def _cut_an_id(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for part in _parts(body):
        if "answer" in part:
            part["answer"] = part["answer"][:9]


def _tag_the_system(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for turn in body["turns"]:
        if turn["by"] == "system":
            turn["parts"][0]["text"] = f"<system>\n{turn['parts'][0]['text']}\n</system>"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_lose_last_text, "(text): text neither in the wire nor in the ledger"),
        (_lose_a_seal, "(thinking): signature neither in the wire nor in the ledger"),
        (_lose_an_argument, "(tool_use): call neither in the wire nor in the ledger"),
        (_lose_the_flag, "(tool_result): error neither in the wire nor in the ledger"),
        (_flag_by_a_sentence, "(tool_result): error neither in the wire nor in the ledger"),
        (_lose_an_image, "(image): data neither in the wire nor in the ledger"),
        (_move_an_image, "(image): place neither in the wire nor in the ledger"),
        (_tag_the_system, "(text): role neither in the wire nor in the ledger"),
        (_say_it_twice, "(text): text in the wire and in the ledger (so it seems)"),
        (_say_it_for_nothing, "(text): the ledger has 1 rows for 0 losses (so it seems)"),
        (_number, "its request is not an element prefix of the request after the return"),
        (_count, "a field beside the conversation changed in the request after the return"),
        (_cut_an_id, "is missing from either the call or the result"),
    ],
)
def test_each_way_of_being_wrong_is_found(change: Change, why: str) -> None:
    matrix = _matrix(change)
    findings = _findings(matrix)

    assert any(finding.endswith(why) for finding in findings), findings
    assert not any("acme" in finding for finding in findings), "the one that is right is blamed"
    assert not any(cell.green for cell in matrix.cells)


def _draw(script: Script, a: Speaker) -> None:
    script.user("Draw it.")
    data = base64.b64encode(script.mark("drawn").encode() * 3).decode()
    picture = ImageBlock(source=MediaSource(kind="base64", data=data), media_type="image/png")
    script.answer(a, script.text("Here."), picture)
    script.user()


def _drawn(change: Change | None = None) -> Matrix:
    draw = History(name="drawn", needs=("supports_images",), write=_draw)
    return Grid(sides(pair(change)), [draw]).run()


def _give_pictures_to_the_user(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for turn in body["turns"]:
        if any("picture" in part for part in turn["parts"]):
            turn["by"] = "user"


def _keep_pictures_in_the_answer(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
    for turn in body["turns"]:
        if any("picture" in part for part in turn["parts"]):
            turn["by"] = "assistant"


def test_a_picture_of_an_answer_that_another_service_sees_as_the_users_is_one_loss() -> None:
    cell = _drawn().cells[0]

    assert cell.green, cell.runs
    assert [(loss.block_type, loss.verdict) for loss in cell.runs[0].losses] == [("image", "rewritten")]


def test_a_picture_of_an_answer_must_stand_where_the_ledger_says() -> None:
    silent = "(image): role neither in the wire nor in the ledger"
    false = (
        "(image): the ledger has 1 rows for 0 losses (another service's model made it; it follows in a user message)"
    )

    assert any(finding.endswith(silent) for finding in _findings(_drawn(_give_pictures_to_the_user)))
    assert any(finding.endswith(false) for finding in _findings(_drawn(_keep_pictures_in_the_answer)))


def test_a_flag_may_be_a_word_of_the_wire() -> None:
    matrix = _matrix(_flag_by_a_word)

    assert all(cell.green for cell in matrix.cells), _findings(matrix)


def test_a_request_its_linter_refuses_is_red() -> None:
    rule = """
title = "turns"
endpoint = '/turns$'

[[rule]]
id = "no-pictures"
says = "Nobody looks at pictures."
citation = "made up"
at = "turns[*].parts[*]"
forbids = ["picture"]
"""
    findings = _findings(_matrix(rules=[rule]))

    assert findings
    assert all("linter no-pictures" in finding for finding in findings)


def test_what_cannot_be_written_is_red_and_the_rest_goes_on() -> None:
    def refuse(body: Body, losses: list[Loss], messages: Sequence[Message]) -> None:
        if len(messages) > 100:
            losses.append(Loss(path="messages[0]", block_type="message", verdict="blocked", reason="too long"))

    matrix = _matrix(refuse)
    red = {run.history for cell in matrix.cells for run in cell.runs if run.findings}

    assert red == {"400 messages"}
    assert all("refused: CapabilityError" in finding for finding in _findings(matrix))


def test_recorded_answers_are_histories_with_their_replay_state() -> None:
    (side,) = sides(Registry(), ["openai/responses"])
    histories = list(recorded_histories(side, tree.ROOT / "cassettes"))
    kept = [message for _, script, _ in histories for message in script.messages if message.metadata.provider_raw]

    assert kept
    assert all(name.startswith("recorded: ") for name, _, _ in histories)
    assert any(block.type == "tool_use" for message in kept for block in message.content)
    assert list(recorded_histories(side, None)) == []
