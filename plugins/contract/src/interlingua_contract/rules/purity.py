"""Rules on `to_wire` as a function: same arguments, same bytes; nothing changed, nothing asked of the world.

Never looks at what the bytes mean.
The rules room comes in.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import attrs
from hypothesis import strategies as st

from interlingua.errors import CapabilityError
from interlingua.plugins import write_request
from interlingua.plugins.wire import ConnectionSettings
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.guard import watched
from interlingua_contract.reading import read
from interlingua_contract.rule import Finding, rule
from interlingua_contract.scenes import FOREIGN, READ
from interlingua_contract.strategies.conversations import conversations
from interlingua_contract.strategies.tools import tools
from interlingua_contract.subject import Aim, Subject

PICKY = ToolDefinition(
    name="picky",
    description="Mind every field.",
    input_schema={
        "type": "object",
        "properties": {"n": {"type": "integer", "description": ""}, "s": {"type": "string", "format": "date"}},
        "additionalProperties": False,
    },
    side_effects=SideEffects.NONE,
)


def _histories(subject: Subject, aim: Aim, **wanted: Any) -> st.SearchStrategy[list[Message]]:
    return conversations((own(subject, aim), FOREIGN), **wanted)


@rule(
    "C01",
    "`to_wire` gives the same bytes for the same arguments, whatever was asked before.",
    source="DESIGN 6, 8; hook to_wire",
    fix="""Make the body from the arguments alone. Usual causes: an id or a time minted while writing, iteration over
    a set, a module-level counter or cache whose key leaves something out (a fragment kept under a message must depend
    on nothing but the message and the model).""",
)
def to_wire_is_deterministic(subject: Subject) -> Iterator[Finding]:
    """The same body from the same façade, from one that remembers nothing, and from copies without memos."""
    other = subject.fresh()

    def law(aim: Aim, drawn: tuple[list[Message], list[Any]]) -> None:
        history, offered = drawn
        options = AdapterOptions(model=aim.model, api=aim.api)
        first = write_request(subject.provider, history, offered, options).body
        again = write_request(subject.provider, history, offered, attrs.evolve(options)).body
        copies = [attrs.evolve(message) for message in history]
        write_request(other, [user("something else")], [], attrs.evolve(options, max_tokens=77))
        fresh = write_request(other, copies, offered, attrs.evolve(options)).body
        if not first == again == fresh:
            raise Broken(f"bodies differ {_where(first, again if again != first else fresh)}")
        varied = attrs.evolve(options, max_tokens=77)
        unknown = [attrs.evolve(message, id=f"01KAKDPZ{number:018d}") for number, message in enumerate(history)]
        after = write_request(subject.provider, history, [], varied).body
        alone = write_request(other, unknown, [], varied).body
        if after != alone:
            raise Broken(f"with other options the body is still the one of before {_where(after, alone)}")

    yield from holds(subject, law, lambda aim: st.tuples(_histories(subject, aim), tools()))


@rule(
    "C02",
    "`to_wire` changes nothing it is given.",
    source="DESIGN 3, 4; hook to_wire",
    fix="""Values are immutable, the JSON inside them as well; build new objects. If you need to change a dict of a
    message, take `thaw(value)` first, and never write to `message.memo` except through `remembered`.""",
)
def arguments_are_left_alone(subject: Subject) -> Iterator[Finding]:
    """Arguments look the same after writing as before, opaque state included."""

    def law(aim: Aim, drawn: tuple[list[Message], list[Any]]) -> None:
        history, drawn_tools = drawn
        listed, offered = list(history), [*drawn_tools, PICKY]
        options = AdapterOptions(model=aim.model, api=aim.api, provider_options={"x_contract": {"a": [1]}})
        before = _picture(listed, offered, options)
        write_request(subject.provider, listed, offered, options)
        if _picture(listed, offered, options) != before:
            raise Broken("the messages, tools or options are not what they were before the call")

    yield from holds(subject, law, lambda aim: st.tuples(_histories(subject, aim), tools()))


def _picture(messages: list[Message], offered: list[Any], options: AdapterOptions) -> bytes:
    opaque = [message.metadata.provider_raw for message in messages]
    return pickle.dumps((repr(messages), repr(opaque), repr(offered), repr(options)))


@rule(
    "C03",
    "No hook asks anything of clock, randomness, environment, files or network.",
    source="DESIGN 2, 4; hooks to_wire, connection and stream_response",
    fix="""What changes from call to call belongs to core: ids and time come with the RequestContext, the environment
    comes to `connection` as `settings.environ`, signatures are made by the function that `Connection.auth` names.""",
)
def hooks_ask_nothing_of_the_world(subject: Subject) -> Iterator[Finding]:
    """Watch the interpreter while the pure hooks run."""
    for aim in subject.aims:
        with watched() as seen:
            subject.fresh().models()
            subject.provider.capabilities(aim.model, AdapterOptions(model=aim.model, api=aim.api))
            subject.provider.connection(ConnectionSettings(api_key="k", api=aim.api))
        if seen:
            yield Finding(why=f"asks for {', '.join(sorted(seen))}", where=f"{aim.name} capabilities/connection")

    def law(aim: Aim, history: list[Message]) -> None:
        options = AdapterOptions(model=aim.model, api=aim.api, user_id="u")
        with watched() as asked:
            try:
                write_request(subject.provider, history, [READ], options)
            except CapabilityError:
                return
        if asked:
            raise Broken(f"to_wire asks for {', '.join(sorted(asked))}")

    yield from holds(subject, law, lambda aim: _histories(subject, aim, turns=2))
    yield from _reading(subject)


def _reading(subject: Subject) -> Iterator[Finding]:
    """The hooks that read, on two recorded answers of each form."""
    for good, streamed in ((True, False), (True, True), (False, False)):
        chosen = [one for one in subject.exchanges if (one.good, one.streamed) == (good, streamed)]
        for exchange in chosen[:2]:
            read(subject, exchange)  # what is imported when it is first needed is no question
            with watched() as asked:
                read(subject, exchange)
            if asked:
                yield Finding(why=f"reading asks for {', '.join(sorted(asked))}", where=exchange.cassette)


def _where(one: bytes, other: bytes) -> str:
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"from byte {at}: {one[at : at + 40]!r} and {other[at : at + 40]!r}"
