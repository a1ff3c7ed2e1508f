"""Systematic mutation: faults are made at the seam, rules notice them, and a missing rule is seen as survivors."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from click.testing import CliRunner

from interlingua.errors import CallerError
from interlingua.plugins import Registry
from interlingua.types import user
from interlingua_cli.root import cli
from interlingua_contract.hook_calls import describe
from interlingua_contract.mutation import FREE, Mutant, MutationRun, Seam, Verdict, measure
from interlingua_contract.mutation.report import MutationReport, scores
from interlingua_contract.mutation.tree import format_place
from interlingua_contract.recordings import read_answer
from interlingua_contract.rules import ALL
from interlingua_contract.scenes import READ
from interlingua_contract.subject import Subject
from tests.support import tree
from tests.support.counts import FULL
from tests.tools import mutation

CASSETTES = tree.ROOT / "cassettes"


def _run(key: str, *numbers: str, **options: Any) -> MutationRun:
    rules = [rule for rule in ALL if rule.number in numbers]
    return MutationRun(key, CASSETTES / key, rules=rules, **options)


def _fates(run: MutationRun, wanted: Callable[[Mutant], bool]) -> dict[str, Verdict]:
    return {str(mutant): run.judge(mutant) for mutant in run.mutants() if wanted(mutant)}


def _is_description(mutant: Mutant) -> bool:
    place = format_place(mutant.place)
    return place.endswith("/description") and mutant.operation in ("drop", "cut", "other-case", "other-letter")


@pytest.mark.skipif(not FULL, reason="INTERLINGUA_FULL=1 draws changes of every format")
@pytest.mark.parametrize("key", ["anthropic", "bedrock", "cohere", "google", "mistral", "ollama", "openai"])
def test_of_some_changes_at_most_one_is_missed(key: str) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    report = measure(MutationRun(key, CASSETTES / key, seed=seed), sample=20, jobs=1).as_json()

    assert report["tried"] == 20
    assert len(report["survivors"]) <= 1, (seed, report["survivors"])


def test_a_planted_hole_is_seen_as_survivors() -> None:
    whole, holed = _run("llamacpp", "C07", "C18"), _run("llamacpp", "C18")
    whole.discover()
    holed.discover()
    caught, missed = _fates(whole, _is_description), _fates(holed, _is_description)

    assert {verdict.fate for verdict in caught.values()} == {"killed"}
    assert {verdict.rule for verdict in caught.values()} == {"C07"}
    assert missed.keys() == caught.keys()
    assert {verdict.fate for verdict in missed.values()} == {"survived"}


def test_answers_are_changed_whole_and_streamed() -> None:
    run = _run("anthropic", "C21", "C28", "C56")
    run.discover()
    reading = ("from_wire_response", "stream_response")
    places = ("/content/*[text]/text", "/*[text_delta]/text", "/metadata/usage/output_tokens")
    fates = _fates(run, lambda mutant: mutant.hook in reading and format_place(mutant.place) in places)

    assert {verdict.mutant.hook for verdict in fates.values()} == set(reading)
    assert fates["from_wire_response /metadata/usage/output_tokens off-by-one"].rule == "C21"
    assert fates["stream_response /*[text_delta]/text cut"].fate == "killed"
    assert fates["stream_response /*[text_delta]/text swap"].fate == "killed"


def test_a_seam_that_is_not_armed_changes_nothing() -> None:
    seam = Seam()
    plain = Subject("anthropic", CASSETTES / "anthropic")
    wrapped = Subject("anthropic", CASSETTES / "anthropic", registry=Registry([seam]))
    with seam.record("C99"):
        for exchange in wrapped.exchanges:
            mine, theirs = read_answer(wrapped, exchange), read_answer(plain, exchange)
            assert describe(mine.events) == describe(theirs.events)  # errors are compared by identity
            assert (mine.message, repr(mine.error)) == (theirs.message, repr(theirs.error))
        bodies = [each.write(each.aims[0], [user("q")], [READ]).body for each in (wrapped, plain)]

    assert bodies[0] == bodies[1]
    assert {hook for hook, _ in seam.crossings} >= {"to_wire", "from_wire_response", "stream_response"}


@pytest.mark.parametrize(
    ("hook", "rules", "place"),
    [
        ("connection", ("C44",), "/base_url"),
        ("capabilities", ("C44", "C45"), "/api"),
        ("models", ("C45",), "/*/max_context_tokens"),
        ("from_wire_error", ("C41",), "/retry_after"),
        ("to_wire_response", ("C61",), "/body/content/*[text]/text"),
        ("stream_to_wire", ("C62",), "/*[content_block_delta]/data/delta/text"),
        ("to_wire_error", ("C67",), "/status"),
        ("from_wire_request", ("C60",), "/messages/*[user]/content/*[text]/text"),
    ],
)
def test_every_hook_can_be_changed(hook: str, rules: Iterable[str], place: str) -> None:
    run = _run("anthropic", *rules)
    run.discover()
    fates = _fates(run, lambda mutant: mutant.hook == hook and format_place(mutant.place) == place)

    assert any(verdict.fate == "killed" for verdict in fates.values()), fates


@pytest.mark.parametrize(
    ("hook", "place"),
    [
        (
            "from_wire_request",
            "/messages/*[tool]/metadata/provider_raw/replay/parts/*/functionResponse/parts/*/inlineData/mimeType",
        ),
        ("to_wire", "/echo/body/store"),
    ],
)
def test_signed_and_recorded_requests_are_compared_whole(hook: str, place: str) -> None:
    run = _run("google", "C98")
    run.discover()
    fates = _fates(run, lambda mutant: mutant.hook == hook and format_place(mutant.place) == place)

    assert {verdict.fate for verdict in fates.values()} == {"killed"}


def test_a_rule_that_fails_already_cannot_judge() -> None:
    run = MutationRun("llamacpp", CASSETTES / "anthropic", rules=[rule for rule in ALL if rule.number == "C51"])
    run.discover()

    assert run.not_judging == ("C51",)
    assert run.mutants() == []


def test_a_rule_that_took_long_judges_too() -> None:
    run = _run("llamacpp", "C45", "C96", "C75")
    run.discover()
    run._seconds |= dict.fromkeys(run._seconds, 0.001) | {"C96": 9.0}  # of a busy machine
    fates = _fates(run, lambda mutant: mutant.hook == "capabilities" and mutant.operation in ("off-by-one", "invert"))

    assert {verdict.fate for verdict in fates.values()} == {"killed"}
    assert "C96" in {verdict.rule for verdict in fates.values()}


def test_a_provider_that_is_loaded_already_is_refused() -> None:
    registry = Registry()
    registry.provider("llamacpp")

    with pytest.raises(CallerError, match="already"):
        MutationRun("llamacpp", CASSETTES / "llamacpp", registry=registry)


def test_the_report_counts_by_hook_and_kind() -> None:
    report = measure(_run("llamacpp", "C07"), sample=12, jobs=1)
    counted = report.as_json()

    assert 0 < len(report.verdicts) <= 12 < report.planned
    assert report.score.killed + report.score.survived == sum(
        score.killed + score.survived for score in scores(report.verdicts, lambda each: each.mutant.hook).values()
    )
    assert counted["survivors"] == [] or {"hook", "place", "operation", "scene"} <= counted["survivors"][0].keys()
    assert "auxiliary_request" in report.unreached
    assert report.lines()[-1].startswith("llamacpp: ")


def test_processes_judge_alike() -> None:
    def fates(jobs: int) -> dict[str, str]:
        report: MutationReport = measure(_run("llamacpp", "C07"), sample=12, jobs=jobs)
        return {str(each.mutant): each.fate for each in report.verdicts}

    assert fates(2) == fates(1)


def test_no_time_ends_the_run_after_one_place() -> None:
    report = measure(_run("llamacpp", "C07"), seconds=0.001, jobs=1)

    assert len({each.mutant.place for each in report.verdicts}) == 1


def test_the_command_measures() -> None:
    folder = str(CASSETTES / "llamacpp")
    asked = ["check", "llamacpp", "--cassettes", folder, "--mutate", "--rule", "C07", "--sample", "4", "--jobs", "1"]
    done = CliRunner().invoke(cli, [*asked, "--json"], catch_exceptions=False)
    refused = CliRunner().invoke(cli, ["check", "llamacpp", "--sample", "4"])

    assert done.exit_code == 0
    assert json.loads(done.stdout)["tried"] == 4
    assert refused.exit_code == 2


MOST_FREE = 6


def test_the_list_of_what_is_free_only_shrinks() -> None:
    run = _run("anthropic", "C28", "C34", "C41", "C56", "C60")
    run.discover()
    needless = [free for free in FREE if not any(map(free.covers, run.mutants()))]

    assert not needless
    assert all(free.reason.endswith(".") for free in FREE)
    assert len(FREE) <= MOST_FREE, "nothing may be added: write the rule"


def test_the_page_has_the_operations_and_what_is_free() -> None:
    text = mutation.PAGE.read_text(encoding="utf-8")

    assert text.startswith(mutation.HEAD), "run make mutation"
    assert mutation.operations() in text
    assert mutation.free() in text


def test_the_page_shows_a_report() -> None:
    report = measure(_run("llamacpp", "C07"), sample=4, jobs=1).as_json()
    text = mutation.page([report])

    assert "\n| llamacpp | " in text
    assert "| | all | " in text
    assert "| `to_wire` |" in text
