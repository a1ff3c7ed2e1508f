"""The keyword arguments of a call, as a type checker sees them, are those that the client reads."""

from __future__ import annotations

import inspect

import attrs
import pytest

import interlingua as il
from interlingua.types import RequestKwargs, RequestOptions

ARGUMENTS = {"model", "tools", "routing", "user_id", "team_id"}


def test_every_option_of_an_adapter_is_an_argument() -> None:
    assert RequestKwargs.__optional_keys__ == ARGUMENTS | attrs.fields_dict(RequestOptions).keys() - {
        "stream",
        "connection",
    }


@pytest.mark.parametrize("name", ["send", "stream", "prepare", "build_request", "count_tokens", "plan_output"])
def test_both_clients_take_the_same_arguments(name: str) -> None:
    blocking, asynchronous = (inspect.signature(getattr(kind, name)) for kind in (il.Client, il.AsyncClient))

    assert blocking.parameters == asynchronous.parameters
    assert blocking.parameters["options"].annotation == "Unpack[RequestKwargs]"
