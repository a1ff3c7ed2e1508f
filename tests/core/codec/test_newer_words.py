"""Words of metadata that a newer version wrote: read as `other`, kept, and written back."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.codec import decode_message, dumps, dumps_message, encode_message, read_jsonl
from interlingua.errors import CallerError, DecodeError
from interlingua.types import MessageMetadata, Provenance, RoutingDecision, RoutingMode, StopReason

ROUTING = {"mode": "rule", "chosen_model": "acme:m", "reason": "why", "rule_name": "cheap"}


def stored(**changes: Any) -> dict[str, Any]:
    """Return a stored answer with other metadata."""
    decision = RoutingDecision(mode=RoutingMode.MANUAL, chosen_model="acme:m", reason="why")
    metadata = MessageMetadata(
        model="acme:m", provider="acme", routing=decision, stop_reason=StopReason.END_TURN,
        provenance=Provenance.GENERATED,
    )  # fmt: skip
    data = encode_message(attrs.evolve(il.assistant("hi"), metadata=metadata))
    data["metadata"] |= changes
    return data


NEWER: list[tuple[dict[str, Any], Any]] = [
    ({"stop_reason": "out_of_budget"}, lambda metadata: metadata.stop_reason is StopReason.OTHER),
    ({"provenance": "forked"}, lambda metadata: metadata.provenance is Provenance.OTHER),
    ({"routing": ROUTING | {"mode": "auction"}}, lambda metadata: metadata.routing.mode is RoutingMode.OTHER),
    (
        {"stop_reason": "x", "provenance": "y", "routing": ROUTING | {"mode": "z"}, "a_new_field": 1},
        lambda metadata: metadata.stop_reason is StopReason.OTHER and metadata.routing.mode is RoutingMode.OTHER,
    ),
]


@pytest.mark.parametrize(("changes", "is_other"), NEWER)
def test_a_newer_word_is_read_as_other_and_written_back(
    changes: dict[str, Any], is_other: Any, caplog: pytest.LogCaptureFixture
) -> None:
    data = stored(**changes)
    with caplog.at_level(logging.INFO, "interlingua"):
        message = decode_message(data)
    levels = [record.levelname for record in caplog.records if "written by a newer version" in record.message]

    assert is_other(message.metadata)
    written = encode_message(message)["metadata"]
    assert {**written, **changes, "routing": written["routing"] | changes.get("routing", {})} == written
    assert encode_message(decode_message(encode_message(message))) == encode_message(message)
    assert "_newer_words" not in encode_message(message)["metadata"]
    assert levels == ["INFO"]  # nothing is lost


def test_a_changed_value_is_written_instead_of_the_newer_word() -> None:
    message = decode_message(stored(stop_reason="out_of_budget"))
    changed = attrs.evolve(message, metadata=attrs.evolve(message.metadata, stop_reason=StopReason.MAX_TOKENS))

    assert encode_message(changed)["metadata"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("odd", [{"stop_reason": 5}, {"routing": 5}, {"status": "odd"}, {"_newer_words": [1]}])
def test_other_faults_stay_faults(odd: dict[str, Any]) -> None:
    if "_newer_words" in odd:
        assert decode_message(stored(**odd)).text == "hi"
        return
    with pytest.raises(DecodeError):
        decode_message(stored(**odd))


def test_one_newer_word_does_not_lock_a_conversation() -> None:
    lines = [dumps_message(il.user("hi")), dumps(stored(stop_reason="out_of_budget")), dumps_message(il.user("go on"))]

    assert [message.text for message in read_jsonl(lines)] == ["hi", "hi", "go on"]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, 2, float("inf"), float("nan")])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(CallerError, match=r"RoutingDecision\.confidence"):
        RoutingDecision(mode=RoutingMode.PATTERN, chosen_model="acme:m", reason="why", confidence=confidence)


def test_a_rule_without_a_name_is_refused() -> None:
    with pytest.raises(CallerError, match=r"RoutingDecision\.rule_name: a decision by a rule needs its name"):
        RoutingDecision(mode=RoutingMode.RULE, chosen_model="acme:m", reason="why")
    with pytest.raises(DecodeError, match=r"metadata\.routing\.rule_name"):
        decode_message(stored(routing=ROUTING | {"rule_name": None}))
