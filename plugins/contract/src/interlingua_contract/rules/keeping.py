"""Rules on what an answer said: its words, its arguments, its opaque state and its origin are all in the message.

Never compares two roads (roads do) and never breaks an answer (faults do).
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.codec.stored import encode_message
from interlingua.types.messages import Message, MessageStatus
from interlingua_cli.cassettes import Exchange
from interlingua_contract.frames import Frames
from interlingua_contract.json_paths import leaves, nodes, replaced, shown
from interlingua_contract.reading import read, read_whole
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.returning import answers
from interlingua_contract.subject import Subject

_STATE = 8


"""So long is a signature or encrypted reasoning at least, in the cassettes that show one."""


AWKWARD: dict[str, Any] = {"z": 0, "path": "a b", "m": False, "e": "", "l": [None], "w": 1.0, "i": 9007199254740993}


@rule(
    "C28",
    "Everything an answer says is in the message: prose, arguments as they came, names, and opaque state.",
    source="DESIGN 3 (raw_input), 6, 9; seed 003 §4",
    fix="""Every text, reasoning, signature and argument of a good answer belongs into a block; what has no block of its
    own goes into an OpaqueBlock, what a replay needs into `replay`, and what is no content into `trace`. Arguments keep
    their order and every value; where the wire has them as a string keep it as `raw_input`.""",
)
def nothing_said_is_lost(subject: Subject) -> Iterator[Finding]:
    """Each string of the answer that the request did not bring, whole or in events; each object of arguments."""
    for exchange in subject.exchanges:
        message = read(subject, exchange).message if exchange.good else None
        if message is None:
            continue
        kept = _strings(message)
        whole = {leaf for _, leaf in leaves(encode_message(message)) if isinstance(leaf, str)}
        asked = json.dumps(exchange.request, ensure_ascii=False)
        bodies = bodies_of(subject, exchange)
        for path, leaf in [found for body in bodies for found in leaves(body)]:
            if not isinstance(leaf, str) or not leaf:
                continue
            if _is_source(path) and leaf not in whole:
                yield Finding(why=f"the source {leaf[:60]!r} is not in the message", where=exchange.cassette)
            if not _says(path, leaf) or json.dumps(leaf, ensure_ascii=False) in asked:
                continue
            if json.dumps(leaf, ensure_ascii=False)[1:-1] not in kept and leaf not in kept:
                yield Finding(why=f"{shown(path)} ({leaf[:60]!r}) is not in the message", where=exchange.cassette)
        if not exchange.streamed:
            yield from _arguments(subject, exchange, message)


def bodies_of(subject: Subject, exchange: Exchange) -> list[Any]:
    """Return the JSON of an answer: of a whole body, or of each event."""
    if exchange.streamed:
        frames = Frames(subject, exchange)
        return [data for event in frames.events if (data := frames.data(event)) is not None]
    return [json.loads(exchange.body)]


def _says(path: tuple[str | int, ...], leaf: str) -> bool:
    """True for prose, and for what stands under a name of opaque state."""
    name = next((str(key).lower() for key in reversed(path) if isinstance(key, str)), "")
    return " " in leaf.strip() or (
        len(leaf) >= _STATE and ("signature" in name or "encrypted" in name or name == "data")
    )


def _is_source(path: tuple[str | int, ...]) -> bool:
    return any("citation" in str(key).lower() or key == "annotations" for key in path)


def _arguments(subject: Subject, exchange: Exchange, message: Message) -> Iterator[Finding]:
    """The arguments of each recorded call replaced by awkward ones, which must come out as they are."""
    body = json.loads(exchange.body)
    wanted = json.dumps(AWKWARD)
    for number, call in enumerate(message.tool_calls()):
        found = [path for path, node in nodes(body) if call.input and node == json.loads(call.input_json)]
        changed = [replaced(body, path, AWKWARD) for path in found]
        changed += [replaced(body, path, wanted) for path, leaf in leaves(body) if leaf == call.raw_input and leaf]
        for one in changed[:1]:
            again = read_whole(subject, exchange, json.dumps(one).encode()).message
            calls = again.tool_calls() if again is not None else []
            if len(calls) <= number or json.dumps(json.loads(calls[number].input_json)) != wanted:
                came = calls[number].input_json if len(calls) > number else "nothing"
                yield Finding(why=f"the arguments {wanted} are read as {came}", where=exchange.cassette)


def _strings(message: Message) -> str:
    stored = encode_message(message)
    return json.dumps(stored, ensure_ascii=False) + "".join(
        str(leaf) for _, leaf in leaves(stored) if isinstance(leaf, str)
    )


@rule(
    "C56",
    "An answer is credited to the provider, api and model that gave it, and a whole one is complete.",
    source="DESIGN 3 (origin), 6; seed 003 §6.1",
    fix="""Make the message with `RequestContext.message` and do not set provider, api, model or status yourself: state
    goes back only to its origin, so a wrong one loses it.""",
)
def answers_are_credited(subject: Subject) -> Iterator[Finding]:
    """Each recorded answer against the context it was read with."""
    for exchange, message in answers(subject):
        expected = subject.context(exchange).origin
        if message.metadata.origin != expected:
            yield Finding(why=f"origin {message.metadata.origin}, expected {expected}", where=exchange.cassette)
        if message.metadata.status is not MessageStatus.COMPLETE:
            yield Finding(why=f"a whole answer is {message.metadata.status}", where=exchange.cassette)


@rule(
    "C57",
    "The id of a call is minted by core, never made by the adapter nor taken from the wire.",
    source="seed 003 §6.2; DESIGN 6",
    fix="""Call `context.mint_tool_use_id()` once for each call, in order, and give the wire's own id as
    `provider_id`. Ids that come back in the next answer make two calls one.""",
)
def ids_are_minted_by_core(subject: Subject) -> Iterator[Finding]:
    """Each recorded answer with calls."""
    for exchange, message in answers(subject):
        mint = subject.context(exchange).mint_tool_use_id
        calls = message.tool_calls()
        minted = {mint() for _ in range(len(calls) + 8)}  # a stream may drop a call it has begun
        strange = [call.id for call in calls if call.id not in minted]
        if strange or len({call.id for call in calls}) < len(calls):
            yield Finding(why=f"core did not mint {strange or [call.id for call in calls]}", where=exchange.cassette)
