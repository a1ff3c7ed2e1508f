"""Results that come after a further answer reach the model on every wire, right behind their calls.

Google accepts such a history as it is (recorded, google-generate/80287bcc609a6ab8: 200); other services refuse it.
"""

from __future__ import annotations

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, build_request
from interlingua.types import RequestOptions, ToolUseBlock, assistant, tool_result, user
from interlingua_cli.lint import lint_request
from tests.support.adapter import READ

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]
APIS = [
    (key, api) for key in KEYS for api in REGISTRY.provider(key).connection(ConnectionSettings(environ={})).endpoints
]
FIRST = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
SECOND = ToolUseBlock(id="tu_2", name="read_file", input={"path": "b"})
pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(("key", "api"), APIS)
@pytest.mark.parametrize("later", [False, True], ids=["at the end", "before a question"])
def test_both_results_reach_the_model(key: str, api: str, later: bool) -> None:
    history = [user("q"), assistant([FIRST]), assistant([SECOND])]
    history += [tool_result(FIRST, "the first text"), tool_result(SECOND, "the second text")]
    history += [user("and now?")] if later else []
    options = RequestOptions(model="a-model-nobody-lists", api=api)
    try:
        request = build_request(REGISTRY.provider(key), history, [READ], options)
    except CapabilityError:
        pytest.skip("no tools here")
    written = request.body.decode()

    assert "the first text" in written
    assert "the second text" in written
    assert "interrupted" not in written
    assert ("messages[3].content[0]", "rewritten") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


def test_a_call_that_is_never_answered_still_gets_an_error_result_before_what_followed() -> None:
    history = [user("q"), assistant([FIRST]), assistant("Sorry."), user("and now?")]
    options = RequestOptions(model="a-model-nobody-lists")
    request = build_request(REGISTRY.provider("openai"), history, [READ], options)
    written = request.body.decode()

    assert written.index("interrupted") < written.index("Sorry.")
    assert {loss.path for loss in request.losses} == {"messages[1]"}
