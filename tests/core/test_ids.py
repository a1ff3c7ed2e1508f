"""ULIDs only ever increase; the oracle is python-ulid, which shares no code with the minter."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from ulid import ULID

from interlingua._ids import ModelId, UlidMinter, new_tool_use_id, new_ulid, parse_model_id, ulid_value
from interlingua.errors import CallerError

STAMP = 1_778_234_400_123  # milliseconds


def test_text_and_time_are_what_the_specification_says() -> None:
    text = UlidMinter(clock=lambda: STAMP * 1_000_000).mint()
    read = ULID.from_str(text)

    assert len(text) == 26
    assert str(read) == text
    assert read.milliseconds == STAMP


def test_eight_threads_get_increasing_and_different_ids() -> None:
    minter = UlidMinter()
    got: list[list[str]] = [[] for _ in range(8)]
    ready = threading.Barrier(8)

    def work(mine: list[str]) -> None:
        ready.wait()
        mine.extend(minter.mint() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for mine in got:
        assert all(ULID.from_str(a) < ULID.from_str(b) for a, b in pairwise(mine))
        assert mine == sorted(mine)
    assert len(set().union(*got)) == 16_000


def test_a_clock_that_steps_back_does_not_step_ids_back() -> None:
    times = iter([STAMP, STAMP + 5, STAMP - 60_000, STAMP - 60_000, STAMP + 6])
    minter = UlidMinter(clock=lambda: next(times) * 1_000_000)
    ids = [minter.mint() for _ in range(5)]

    assert all(a < b for a, b in pairwise(ids))
    assert [ULID.from_str(each).milliseconds - STAMP for each in ids] == [0, 5, 5, 5, 6]


def test_after_a_stored_id_from_the_future() -> None:
    """Increasing within a session; a session of another clock leaves all others where they are."""
    future = str(ULID.from_timestamp((STAMP + 10**9) / 1000))
    minter = UlidMinter(clock=lambda: STAMP * 1_000_000)
    session = [future]
    for _ in range(1000):
        session.append(minter.mint(after=session[-1]))

    assert all(ULID.from_str(a) < ULID.from_str(b) for a, b in pairwise(session))
    assert minter.mint(after=future) != minter.mint(after=future)
    assert ULID.from_str(minter.mint()).milliseconds == STAMP


def test_after_a_stored_id_of_this_minter() -> None:
    minter = UlidMinter(clock=lambda: STAMP * 1_000_000)
    ids = [minter.mint()]
    for _ in range(3000):
        ids.append(minter.mint(after=ids[-1]))
        ids.append(minter.mint())

    assert all(a < b for a, b in pairwise(ids))


def test_reading_is_the_librarys() -> None:
    text = new_ulid()

    assert ulid_value(text) == int(ULID.from_str(text))
    with pytest.raises(CallerError, match="not a ULID"):
        ulid_value("01HZ001")


def test_tool_ids() -> None:
    """`tu_<ulid>`."""
    prefix, _, rest = new_tool_use_id().partition("_")

    assert prefix == "tu"
    assert str(ULID.from_str(rest)) == rest


@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("acme:sonnet-4-6", "acme", "sonnet-4-6"),
        ("router:deep/deep-v3", "router", "deep/deep-v3"),
        ("local:qwen:7b", "local", "qwen:7b"),
    ],
)
def test_model_ids(text: str, provider: str, name: str) -> None:
    """`<provider>:<model_name>`."""
    assert parse_model_id(text) == ModelId(provider, name)
    assert str(parse_model_id(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [("sonnet", "has no provider"), (":x", "has no provider"), ("", "has no provider"),
     ("acme:", "names no model; write acme:<model>")],
)  # fmt: skip
def test_what_is_no_model_id(text: str, why: str) -> None:
    with pytest.raises(CallerError, match=why):
        parse_model_id(text)
