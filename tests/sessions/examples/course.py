"""A tool call, then a swap in mid-session, in a stored session, and what the store holds then.

Shared by the replayed and the live test.
The words are those of the recorded demo, which plays the same examples.
"""

from __future__ import annotations

from interlingua._http.client import Client
from interlingua.types.blocks import CacheHint, TextBlock
from interlingua.types.factories import tool_result
from interlingua.types.messages import Message, Role, RoutingMode
from interlingua_cli.demo.session import FILES, READ_FILE, Scenario
from interlingua_sessions import Store
from interlingua_sessions.routing.policy import RoutingPolicy
from interlingua_sessions.session import Session

SWAP = "user swap via /model command"


def opened(store: Store, client: Client, cast: Scenario, session_id: str = "sess_42") -> Session:
    """Open the examples' session: the first model is the workspace's default."""
    policy = RoutingPolicy(workspace_default=cast.models[0])
    return Session.open(store, session_id, client=client, policy=policy, options=cast.options)


def read_a_file(session: Session, text: str, *, cached: bool = False) -> Message:
    """Say something that makes the model call the tool, answer every call, and return its last answer."""
    turn = session.turn([TextBlock(text=text, cache=CacheHint() if cached else None)], tools=[READ_FILE])
    for _ in range(3):
        answer = turn.ask([READ_FILE])
        if not answer.tool_calls:
            return answer
        for call in answer.tool_calls:
            path = str(call.input.get("path"))
            found = FILES.get(path)
            turn.add(tool_result(call, found if found is not None else f"no file {path!r}", is_error=found is None))
    return answer


def check_tool_turn(store: Store, session: Session, model: str, *, mode: RoutingMode) -> None:
    """User, assistant with the call, tool message naming it, assistant; all in one store."""
    last_question = max(at for at, one in enumerate(session.messages) if one.role is Role.USER)
    turn = session.messages[last_question:]
    asked, result = turn[1], turn[2]
    (call,) = asked.tool_calls
    assert [message.role for message in turn[:3]] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert call.name == "read_file"
    assert call.id.startswith("tu_")
    assert result.metadata.parent_tool_use_id == call.id
    assert result.tool_results[0].tool_use_id == call.id
    for answer in (message for message in turn if message.role is Role.ASSISTANT):
        assert (answer.metadata.model, answer.metadata.provider) == (model, model.partition(":")[0])
        assert answer.metadata.usage is not None
        assert answer.metadata.routing is not None
        assert (answer.metadata.routing.mode, answer.metadata.routing.chosen_model) == (mode, model)
    row = store.tool_call(call.id)
    assert (row.message_id, row.result_message_id, row.status) == (asked.id, result.id, "succeeded")
    assert (row.name, row.provider, row.provider_id) == ("read_file", model.partition(":")[0], call.provider_id)
