"""The size policy of provider_raw: `replay` is never trimmed, `trace` by size."""

from __future__ import annotations

from interlingua.plugins import RequestContext
from interlingua.types.messages import TRACE_LIMIT, Message, Origin, StopReason

CONTEXT = RequestContext(origin=Origin("acme", "chat", "m"))
LARGE = "x" * (TRACE_LIMIT + 1)


def made(trace: str, replay: str = "state") -> Message:
    return CONTEXT.message((), stop_reason=StopReason.END_TURN, replay={"state": replay}, trace={"note": trace})


def raw(message: Message) -> dict[str, object]:
    assert message.metadata.provider_raw is not None
    return message.metadata.provider_raw


def test_a_trace_over_the_limit_is_a_note_of_its_size() -> None:
    small, large = made("ok"), made(LARGE, replay=LARGE)

    assert raw(small)["trace"] == {"note": "ok"}
    assert raw(large)["trace"] == {"trimmed_bytes": len('{"note":""}') + len(LARGE)}
    assert raw(large)["replay"] == {"state": LARGE}
