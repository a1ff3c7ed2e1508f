"""The suite itself: overrides, deviations, the closed network, and what the command prints."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from itertools import pairwise

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings

from interlingua._request.rules import validate_conversation
from interlingua.errors import CallerError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.events import MessageComplete, TextDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart
from interlingua.types.messages import Message, StopReason
from interlingua_cli.root import cli
from interlingua_contract.event_law import broken_laws
from interlingua_contract.guard import NetworkUsed, no_network, watch_side_effects
from interlingua_contract.report import ContractReport, check, draw_badge
from interlingua_contract.rule import ContractRule, RuleFinding
from interlingua_contract.rules import ALL
from interlingua_contract.strategies import blocks, conversations, request_points, tools
from interlingua_contract.subject import Quirks, Subject, read_quirks
from interlingua_contract.suite import ProviderContract
from tests.support import tree

relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _rule(*findings: str) -> ContractRule:
    def made(_subject: Subject) -> Iterator[RuleFinding]:
        yield from (RuleFinding(why=why) for why in findings)

    return ContractRule(number="C99", name="made_up", statement="Made up.", source="here", fix="nothing", check=made)


def test_a_badge_says_how_many_of_the_rules_that_apply_are_kept() -> None:
    rules = [attrs.evolve(_rule(), number="C97"), attrs.evolve(_rule("wrong"), number="C98")]
    results = tuple(check(Subject("anthropic"), rule) for rule in rules)
    report = ContractReport(provider="anthropic", distribution="d", version="1", results=results)
    assert 'aria-label="interlingua contract 1: 1 of 2 rules"' in draw_badge(report)
    assert "#c33" in draw_badge(report)
    assert "#c33" not in draw_badge(attrs.evolve(report, results=results[:1]))


def test_there_is_one_test_per_rule() -> None:
    named = {name for name in dir(ProviderContract) if name.startswith("test_")}

    assert named == {rule.test_name for rule in ALL}


def test_a_rule_cannot_be_overridden_in_silence() -> None:
    with pytest.raises(TypeError, match="only with"):

        class _Bad(ProviderContract):
            def test_c42_estimates_are_near(self) -> None: ...


def test_a_rule_that_is_not_there_cannot_be_overridden() -> None:
    with pytest.raises(TypeError, match="no such rule"):

        class _Bad(ProviderContract):
            def test_c42_estimates_are_far(self) -> None: ...


def test_an_override_runs_the_rule_all_the_same() -> None:
    class Marked(ProviderContract):
        provider = "llamacpp"

        @pytest.mark.xfail(strict=True, reason="it is")
        def test_c44_connection_is_complete(self) -> None:
            raise AssertionError("this body is not run")

    Marked().test_c44_connection_is_complete()


def test_a_declared_deviation_must_deviate() -> None:
    quirks = Quirks(deviations={"C99": {"broken": "so it is"}})

    assert check(Subject("llamacpp", quirks=quirks), _rule("broken")).outcome == "deviates"
    assert check(Subject("llamacpp", quirks=quirks), _rule("broken", "and the key is shown")).outcome == "fail"
    assert check(Subject("llamacpp", quirks=quirks), _rule()).outcome == "fail"


def test_a_deviation_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Quirks(deviations={"C01": {"words": " "}})
    with pytest.raises(ValueError, match="needs a reason"):
        Quirks(deviations={"C01": "so it is"})  # type: ignore[dict-item]


def test_call_ids_may_differ_by_api() -> None:
    assert Quirks().has_call_ids("chat")
    assert not Quirks(ids_on_wire=False).has_call_ids("chat")
    assert [Quirks(ids_on_wire={"a": False}).has_call_ids(api) for api in ("a", "b")] == [False, True]


def test_unknown_quirks_are_refused() -> None:
    path = tree.ROOT / "pyproject.toml"

    with pytest.raises(CallerError):
        read_quirks(path)


def test_the_network_is_closed() -> None:
    with no_network(), pytest.raises(NetworkUsed):
        socket.create_connection(("127.0.0.1", 9))


def test_the_watch_sees_what_it_should() -> None:
    import datetime as dt
    import os
    import random
    import time
    import uuid

    for ask in (time.time, dt.datetime.now, random.random, uuid.uuid4, lambda: os.environ.get("HOME"), os.getpid):
        with watch_side_effects() as seen:
            ask()

        assert seen, ask
    with watch_side_effects() as seen:
        sorted({"b", "a"})

    assert not seen


@relaxed
@given(conversations(), tools())
def test_histories_are_valid_but_for_what_core_repairs(history: list[Message], offered: list[object]) -> None:
    wrong = [each for each in validate_conversation(history) if not each.repairable]

    assert not wrong


def test_strategies_reach_every_block_type() -> None:
    seen: set[str] = set()

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(conversations())
    def look(history: list[Message]) -> None:
        seen.update(block.type for message in history for block in message.content)

    look()

    assert seen >= {
        *("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "audio", "video", "document"),
        *("opaque", "unknown"),
    }


@relaxed
@given(blocks())
def test_blocks_are_blocks(block: object) -> None:
    assert isinstance(getattr(block, "type", None), str)


@relaxed
@given(conversations())
def test_request_points_only_grow(history: list[Message]) -> None:
    points = request_points(history)

    assert all(later[: len(point)] == point for point, later in pairwise(points))


def test_the_event_law() -> None:
    end = MessageComplete(stop_reason=StopReason.END_TURN)
    start = ToolUseStart(index=0, id="tu_1", name="f")

    assert not list(broken_laws([TextDelta(index=0, text="a"), end]))
    assert not list(broken_laws([start, ToolUseInputDelta(index=0, partial_json="{}"), ToolUseEnd(index=0), end]))
    assert list(broken_laws([end, TextDelta(index=0, text="late")]))
    assert list(broken_laws([start, end]))
    assert list(broken_laws([ToolUseInputDelta(index=0, partial_json="{}")]))
    assert list(broken_laws([start, start]))
    assert list(broken_laws([start, ToolUseEnd(index=0, block=ToolUseBlock(id=start.id, name="other"))]))
    assert list(broken_laws([TextDelta(index=0, text="a"), ToolUseStart(index=0, id="tu_1", name="f")]))


def _run(*arguments: str) -> tuple[int, str]:
    folder = str(tree.ROOT / "cassettes" / "llamacpp")
    done = CliRunner().invoke(cli, ["check", "llamacpp", "--cassettes", folder, *arguments], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_the_command_reports_for_programs() -> None:
    code, out = _run("--json", "--rule", "c43", "--rule", "C44")
    report = json.loads(out)

    assert code == 0
    assert (report["provider"], report["contract_version"], report["passed"]) == ("llamacpp", 1, True)
    assert report["distribution"] == "interlingua-chat-completions"
    assert [rule["rule"] for rule in report["rules"]] == ["C43", "C44"]
    assert {row["capability"] for row in report["support"] if row["declared"]} >= {"supports_tools"}


def test_the_command_fails_with_its_provider() -> None:
    folder = str(tree.ROOT / "cassettes" / "anthropic")
    done = CliRunner().invoke(cli, ["check", "llamacpp", "--cassettes", folder, "--rule", "C51"])

    assert done.exit_code == 1
    assert "How to fix" in done.stdout


def test_an_unknown_rule_is_refused() -> None:
    assert _run("--rule", "C999")[0] == 2
