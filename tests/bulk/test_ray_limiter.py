"""The limiter of a cluster, called as its actors call it: grants within the budget, also after it is started again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from interlingua.errors import CallerError
from interlingua_bulk.ray_limiter import Limiter, ModelRates


def test_grants_stay_within_the_budget_and_a_stopped_actor_frees_its_part(tmp_path: Path) -> None:
    limiter = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"))
    one, _ = limiter.grant("a", Decimal(0), Decimal(3))
    two, _ = limiter.grant("b", Decimal(0), Decimal(4))
    assert one + two <= 10
    assert limiter.grant("a", Decimal(3), Decimal(4)) == (Decimal(3), True)
    again = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"))  # on another machine
    assert again.grant("a", Decimal(5), Decimal(0))[0] == 5
    granted, is_used_up = again.grant("b", Decimal(1), Decimal(4))
    assert (granted, is_used_up) == (5, False), "what the other actor no longer needs"
    assert again.grant("c", Decimal(0), Decimal(1)) == (0, True)


def test_a_lost_actor_does_not_keep_the_others_waiting_for_its_part(tmp_path: Path) -> None:
    now = 0.0
    limiter = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"), lambda: now)
    assert limiter.grant("lost", Decimal(0), Decimal(3))[0] == 6, "its next requests too"
    granted, is_used_up = limiter.grant("a", Decimal(4), Decimal(1))
    assert (granted, is_used_up) == (4, False), "the other one may call and give back what it does not need"
    now = 60.0
    assert limiter.grant("a", Decimal(4), Decimal(1)) == (4, True)
    assert limiter.grant("a", Decimal(3), Decimal(1)) == (4, False)


def test_each_model_has_the_rate_and_its_pauses(tmp_path: Path) -> None:
    now = 0.0
    path = str(tmp_path / "limiter.json")
    limiter = Limiter(600.0, None, None, path, lambda: now)
    asked = ModelRates([8, 5], 0.0)
    assert limiter.lease({"a": asked, "b": ModelRates([8, 5], 3.0)})[0] == {
        "a": ModelRates([8, 5], 0),
        "b": ModelRates([8, 5], 3),
    }
    assert limiter.lease({"a": asked})[0] == {"a": ModelRates([2, 5], 0)}, "10 a second for all actors"
    now = 1.0
    assert limiter.lease({"a": ModelRates([99, 0], 0), "b": ModelRates([0, 0], 0)})[0]["b"].closed_for == 2
    again = Limiter(600.0, None, None, path, lambda: now)  # what it granted in this second is not known
    assert again.lease({"a": asked})[0]["a"].amounts == [0, 5]


def test_a_stop_reaches_every_actor(tmp_path: Path) -> None:
    limiter = Limiter(None, None, None, str(tmp_path / "limiter.json"))
    assert limiter.lease({}) == ({}, None)
    assert limiter.lease({}, "interrupted")[1] == limiter.lease({})[1] == "interrupted"


def test_a_file_that_cannot_be_written_is_an_error_of_the_calls(tmp_path: Path) -> None:
    limiter = Limiter(None, None, None, str(tmp_path / "none" / "limiter.json"))
    with pytest.raises(CallerError, match=r"limiter\.json cannot be written"):
        limiter.lease({})
