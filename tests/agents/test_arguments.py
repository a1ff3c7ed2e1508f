"""Arguments that an `Agent` does not take: the error says where they belong."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua_agents import Agent


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_tokens", r"it is an option of the requests: options=\{'max_tokens': …\}"),
        ("base_url", r"pass a client to the run: Client\(…, base_url=…\)"),
        ("system", "use instructions=…"),
        ("tool", r"did you mean tools\?"),
    ],
)
def test_an_argument_of_another_place_is_named(name: str, hint: str) -> None:
    arguments: Any = {name: 1}
    with pytest.raises(TypeError, match=rf"^Agent\(\) has no argument '{name}': {hint}$"):
        Agent("anthropic:claude-haiku-4-5", **arguments)
