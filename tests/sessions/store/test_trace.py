"""The store's trimming of provider_raw: `replay` is never trimmed, `trace` by size or age."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs

from interlingua import user
from interlingua_sessions.store.maintenance import trim_trace
from tests.core.types.test_raw import made, raw


def test_a_store_trims_by_size_and_by_age() -> None:
    message = made("a note")
    old = attrs.evolve(message, created_at=datetime.now(UTC) - timedelta(days=40))
    month = datetime.now(UTC) - timedelta(days=30)

    assert trim_trace(message) is message
    assert trim_trace(message, before=month) is message
    assert raw(trim_trace(old, before=month))["trace"] == {"trimmed_bytes": len('{"note":"a note"}')}
    assert raw(trim_trace(message, limit=3))["replay"] == {"state": "state"}
    assert trim_trace(message, limit=3) == message  # provider_raw is no part of equality


def test_what_has_no_trace_or_was_trimmed_before_is_left_alone() -> None:
    once = trim_trace(made("a note"), limit=0)

    assert trim_trace(once, limit=0) is once
    assert trim_trace(user("hi"), limit=0).metadata.provider_raw is None
