"""Parts -> `contents` and `systemInstruction` of a request: a content a message, the results of a batch in one.

Never writes a part. Neighbours of one role are taken as they are (recorded), so nothing that was sent ever grows, and
a conversation that grew is joined only where it is new. `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from interlingua.plugins.encoding import Json, keep_grown, remembered, take_grown
from interlingua.plugins.wire import Loss, message_loss
from interlingua.types.messages import Message, Role
from interlingua_google.parts import Parts, to_wire_parts
from interlingua_google.results import to_wire_result

FIRST_USER = b'{"text":"(The conversation begins with the assistant.)"}'
_OPEN = {"user": b'{"role":"user","parts":[', "model": b'{"role":"model","parts":['}
_NEXT = {role: b"]}," + opened for role, opened in _OPEN.items()}


class Contents(NamedTuple):
    """The conversation on this wire."""

    system: bytes | None
    contents: Json
    losses: tuple[Loss, ...]


@attrs.define
class _Joined:
    """What was joined so far; only ever appended to."""

    body: list[bytes] = attrs.field(factory=lambda: [b"["])
    last: str | None = None
    losses: list[Loss] = attrs.field(factory=list)
    calls: Mapping[str, tuple[str, bool]] = attrs.field(factory=dict)


def parts_of(message: Message, model: str) -> Parts:
    """Return a message's parts, made once for each model."""
    return remembered(message, ("google", "parts", model), lambda asked: to_wire_parts(asked, model))


def to_wire_contents(messages: Sequence[Message], model: str) -> Contents:
    """Join the projected conversation."""
    leading = next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    system = [parts_of(message, model) for message in messages[:leading]]
    losses = [row.at(at, messages[at].id) for at, made in enumerate(system) for row in made.rows]
    spoken = messages[leading:]
    key = ("google", "joined", model, leading)
    known, kept = take_grown(spoken, key)
    joined: _Joined = kept or _Joined()
    for at in range(known, len(spoken)):
        _add(joined, spoken[at], model, at + leading)
    keep_grown(spoken, key, joined)
    losses += joined.losses
    if spoken and joined.last == "model":
        reason = "the history ends with the model's words; this wire has no prefill and answers them as they are"
        losses.append(message_loss(len(messages) - 1, reason, messages[-1].id))
    written = b",".join([made.joined for made in system if made.joined])
    end = b"]}]" if joined.last else b"]"
    return Contents(b'{"parts":[' + written + b"]}" if written else None, [*joined.body, end], tuple(losses))


def _add(joined: _Joined, message: Message, model: str, at: int) -> None:
    if message.role is Role.TOOL:
        made = _result(joined, message)
    else:
        made = parts_of(message, model)
        joined.calls = made.calls
    joined.losses += [row.at(at, message.id) for row in made.rows]
    if not made.joined:
        return
    if joined.last is None and made.role == "model":
        reason = "this wire's first content is the user's; one that says so was put before it"
        joined.losses.append(message_loss(at, reason, message.id))
        joined.body += (_OPEN["user"], FIRST_USER)
        joined.last = "user"
    last = "results" if message.role is Role.TOOL else made.role
    batch = last == joined.last == "results"
    joined.body += (b"," if batch else _NEXT[made.role] if joined.last else _OPEN[made.role], made.joined)
    joined.last = last


def _result(joined: _Joined, message: Message) -> Parts:
    """Write a result as its call wants it: by the call's name, with its id only where the model gave one."""
    ids = [block.tool_use_id for block in message.tool_results()]
    name, issued = joined.calls.get(ids[0], (None, False)) if ids else (None, False)
    key = ("google", "result", name, issued)
    return remembered(message, key, lambda asked: to_wire_result(asked, name, with_id=issued))
