"""The collector rests while a history is read, and is afterwards as it was."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

import pytest

from interlingua import codec
from interlingua.codec import gc_paused
from interlingua.types.factories import user
from interlingua_sessions import open_store
from interlingua_sessions.turn import SessionSetup, SessionState


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a command, which owns its process."""
    monkeypatch.setattr(codec, "_gc_pauses_allowed", True)


def test_a_library_leaves_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_gc_pauses_allowed", False)
    with gc_paused():
        assert gc.isenabled()
    codec.allow_gc_pauses()
    with gc_paused():
        assert not gc.isenabled()


def test_afterwards_it_is_as_it_was() -> None:
    assert gc.isenabled()
    with suppress(ValueError), gc_paused():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()

    gc.disable()
    try:
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_history_is_read_without_it(tmp_path: Path) -> None:
    """2,000 messages are some 10,000 objects: about 20 collections otherwise, by CPython's threshold of 700."""
    begun: list[int] = []

    def count(phase: str, _info: object) -> None:
        begun.append(1) if phase == "start" else None

    with open_store(tmp_path / "store.db") as store:
        record = store.create_session("s")
        store.extend([user(str(at), session_id="s") for at in range(2000)])
        gc.callbacks.append(count)
        try:
            core = SessionState(store, record, SessionSetup(registry=None, context=lambda messages, _: messages))  # type: ignore[arg-type]
        finally:
            gc.callbacks.remove(count)

    assert len(core.messages) == 2000
    assert len(begun) <= 3
