"""The limiter of a cluster, called as its actors call it: grants within the budget, also after it is started again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from interlingua_bulk.ray_limiter import Limiter


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
