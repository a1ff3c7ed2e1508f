"""Options by name: what is refused, and when two requests share one value."""

from __future__ import annotations

from typing import Any

import pytest

import interlingua as il
from interlingua._request.prepare import read_options
from interlingua.types.options import RequestOptions


def options(**given: Any) -> RequestOptions:
    return read_options(given, model="m", stream=False, user_id=None)


@pytest.mark.parametrize("name", ["stream", "model", "user_id", "max_token"])
def test_a_name_that_is_no_option_is_refused(name: str) -> None:
    with pytest.raises(il.CallerError, match=f"unknown option '{name}'"):
        options(**{name: True})


def test_options_of_the_same_names_and_values_are_equal_and_others_are_not() -> None:
    assert options(max_tokens=1) == options(max_tokens=1)
    assert options(thinking=True).thinking is True
    with pytest.raises(il.CallerError, match=r"option thinking: expected bool, got int"):
        options(thinking=1)
    assert options(max_tokens=1).model == "m" != read_options({"max_tokens": 1}, model="n", stream=False).model


def test_a_value_that_can_change_is_read_anew() -> None:
    extra = {"a": 1}
    before = options(provider_options=extra)
    extra["a"] = 2
    assert options(provider_options=extra).provider_options == {"a": 2}
    assert before.provider_options == {"a": 1}
