"""docs/reference/served-apis.md says what the code does; `make matrix` writes it.

All providers are asked with INTERLINGUA_FULL=1; otherwise one of each wire format, whose rows of the page are compared.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from interlingua.plugins import Registry, WireRequest
from interlingua.types import Role
from interlingua_contract.matrix import HISTORIES, ServedApiCase, ServedCell, serve_histories, served_apis, sides
from interlingua_contract.matrix.reports import served_page
from interlingua_serving import InboundRequest, ServeContext
from tests.support import counts, tree

PAGE = tree.ROOT / "docs" / "reference" / "served-apis.md"
SERVED = ("anthropic", "google", "ollama", "openai")


def _apis() -> list[ServedApiCase]:
    return served_apis(Registry(), SERVED, tree.ROOT / "cassettes")


@pytest.fixture(scope="module")
def cells() -> tuple[ServedCell, ...]:
    found = sides(Registry())
    chosen = found if counts.FULL else list({side.api: side for side in reversed(found)}.values())
    return serve_histories(_apis(), chosen)


def test_every_api_and_provider_is_green(cells: tuple[ServedCell, ...]) -> None:
    findings = [f"{cell}, {run.history}: {text}" for cell in cells for run in cell.runs for text in run.findings]

    assert not findings, "\n".join(findings[:20])
    assert len({cell.api for cell in cells}) == 6
    assert {run.history for cell in cells for run in cell.runs} == {history.name for history in HISTORIES}


def test_the_page_is_current(cells: tuple[ServedCell, ...]) -> None:
    page, made = PAGE.read_text(encoding="utf-8"), served_page(cells)
    if counts.FULL:
        assert page == made, "run `make matrix`"
    rows = [line for line in made.splitlines() if line.startswith("| **")]
    assert rows
    assert set(rows) <= set(page.splitlines()), "run `make matrix`"


class _Losing:
    """A serving plugin whose reading of requests loses the last block of each answer."""

    def __init__(self, plugin: Any) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)

    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        read = self._plugin.from_wire_request(request, context)
        kept = [
            attrs.evolve(message, content=message.content[:-1]) if message.role is Role.ASSISTANT else message
            for message in read.messages
        ]
        return attrs.evolve(read, messages=tuple(kept))


@pytest.mark.parametrize(("name", "lost"), [("plain", "text"), ("tool error", "call")])
def test_what_is_lost_without_a_row_is_found(name: str, lost: str) -> None:
    [api] = [api for api in _apis() if api.side.name == "anthropic"]
    [upstream] = sides(Registry(), ["google/generate"])
    [history] = [history for history in HISTORIES if history.name == name]
    broken = _Losing(api.plugin)

    run = ServedApiCase(api.side, broken, api.echoed).cross(history, upstream)  # type: ignore[arg-type]

    assert any(f"the {lost} of an answer does not come back" in text for text in run.findings)
