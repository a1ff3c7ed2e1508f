"""The limiter of a cluster, called as its actors call it: grants within the budget, also after it is started again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from interlingua.errors import CallerError
from interlingua_bulk.budget import STEP_USD
from interlingua_bulk.ray_limiter import Limiter, ModelRates


def _usd(*amounts: int) -> list[Decimal]:
    return list(map(Decimal, amounts))


def test_grants_stay_within_the_budget_and_an_actor_frees_what_it_does_not_need(tmp_path: Path) -> None:
    limiter = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"))
    assert limiter.grant("a", *_usd(0, 0), _usd(2)) == (4, False), "its next requests too"
    assert limiter.grant("a", *_usd(0, 0), _usd(3)) == (5, False), "a part is for others"
    assert limiter.grant("b", *_usd(0, 0), _usd(4)) == (4, False), "the next request in any case"
    assert limiter.grant("a", *_usd(2, 3), _usd(3)) == (5, False), "the other one may need less than it was granted"
    again = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"))  # on another machine
    assert again.grant("b", *_usd(1, 0), ()) == (1, False)
    assert again.grant("a", *_usd(2, 3), _usd(3)) == (8, False), "what the other one has given back"
    assert again.grant("a", *_usd(8, 0), _usd(1)) == (9, False)
    assert again.grant("b", *_usd(1, 0), _usd(1)) == (1, False), "the other one may spend less"
    assert again.grant("a", *_usd(9, 0), ()) == (9, False)
    assert again.grant("b", *_usd(1, 0), _usd(1)) == (1, True)


def test_a_lost_actor_does_not_keep_the_others_waiting_for_its_part(tmp_path: Path) -> None:
    now = 0.0
    limiter = Limiter(None, None, Decimal(10), str(tmp_path / "limiter.json"), lambda: now)
    assert limiter.grant("lost", *_usd(2, 1), _usd(1)) == (6, False)
    assert limiter.grant("a", *_usd(4, 0), _usd(1)) == (4, False), "the other one may give back what it does not need"
    now = 60.0
    assert limiter.grant("a", *_usd(4, 0), _usd(1)) == (4, True)
    assert limiter.grant("a", *_usd(3, 0), _usd(1)) == (4, False)


class _Actor:
    """Requests of at most these USD, which cost less, at an actor that is answered late and sometimes lost."""

    def __init__(self, name: str, costs: list[Decimal]) -> None:
        self.name, self.left = name, costs
        self.total = self.spent = Decimal(0)
        self.open: list[Decimal] = []
        self.is_done = False

    def step(self, limiter: Limiter, random: Random) -> None:
        while self.open and random.random() < 0.6:
            most = self.open.pop(random.randrange(len(self.open)))
            self.spent += most * Decimal(random.randrange(101)) / 100
        for most in self.left[-20:]:
            if self.spent + sum(self.open) + most <= self.total:
                self.left.remove(most)
                self.open.append(most)
        if random.random() < 0.5:
            self.total, is_used_up = limiter.grant(self.name, self.spent, sum(self.open, Decimal(0)), self.left[-20:])
            self.is_done = (is_used_up or not self.left) and not self.open


@pytest.mark.parametrize("seed", range(12))
def test_actors_never_exceed_the_budget_and_all_of_it_can_be_spent(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limiter, "_write_accounts", lambda _: None)
    random, now = Random(seed), 0.0
    limiter = Limiter(None, None, Decimal(20), str(tmp_path / "limiter.json"), lambda: now)
    most = random.choice([1, 3, 20])
    costs = [Decimal(random.randrange(1, most * 10**12)) * STEP_USD for _ in range(400)]
    actors = [_Actor(f"a{at}", costs[at::5]) for at in range(5)]
    lost: list[_Actor] = []
    for step in range(3_000):
        now += 0.1
        for actor in actors:
            actor.step(limiter, random)
        if step == 40 and seed % 3 == 0:
            lost.append(actors.pop())  # its requests may be paid for
        assert sum(each.spent + sum(each.open) for each in actors + lost) <= 20
        if all(each.is_done for each in actors):
            break
    assert all(each.is_done for each in actors), "none waits without end"
    used = sum(each.spent for each in actors) + sum(each.total for each in lost)
    assert all(not each.left or used + min(each.left[-20:]) > 20 for each in actors)


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
