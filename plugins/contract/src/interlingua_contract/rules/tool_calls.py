"""Rules on tool calls in a request: their ids, names, arguments and definitions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from interlingua._request.project import project_conversation
from interlingua.types import Message, tool_result, user
from interlingua_contract.json_paths import nodes, strings, texts, words_beside
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import READ, LawBroken, assistant_turn, call, check_law, mixed_histories
from interlingua_contract.subject import Aim, Subject

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "zeta": {"type": "string", "enum": ["mkq1q", "mkq2q"], "description": "mkd2q"},
        "alpha": {"type": "integer"},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"inner": {"type": "boolean"}}, "required": ["inner"]},
        },
    },
    "required": ["zeta", "list"],
}


@rule(
    "C05",
    "Every call id is in the request with its call and with its result only, whole and matching the pattern.",
    source="format.md, Identity",
    fix="""Write `block.id` for a call and `block.tool_use_id` for a result, unchanged: they are wire ids already.
    Do not cut, prefix, count or hash them. If the service rejects them, declare its `tool_id_pattern` and
    `tool_id_max_length`; if the wire has no ids at all, set `ids_on_wire=False` in the quirks.""",
    needs=("ids_on_wire",),
)
def call_ids_are_whole(subject: Subject) -> Iterator[RuleFinding]:
    """Compare the ids that core resolved with the leaves of the body."""
    if not any(map(subject.quirks.has_call_ids, subject.apis)):
        raise NotApplicable("this wire carries no call ids (quirks.ids_on_wire)")

    def law(aim: Aim, history: list[Message]) -> None:
        if not aim.capabilities.supports_tools or not subject.quirks.has_call_ids(aim.api):
            return
        projected, _ = project_conversation(history, subject.provider.target(aim.options()))
        ids = [block.id for message in projected for block in message.tool_calls]
        pattern = re.compile(aim.capabilities.tool_id_pattern)
        for one in ids:
            if not pattern.fullmatch(one) or len(one) > aim.capabilities.tool_id_max_length:
                raise LawBroken(f"{one!r} is outside the declared pattern")
        found = Counter(texts(subject.body(aim, history, [READ])))
        if wrong := {one: found[one] for one in ids if found[one] != 2}:
            raise LawBroken(f"each id must appear twice, with its call and with its result; found {wrong}")

    yield from check_law(subject, law, mixed_histories(subject, marked=True))


@rule(
    "C06",
    "A call's name and arguments reach the wire unchanged, malformed arguments and falsy values included.",
    source="format.md, Blocks; format.md, Canonical JSON",
    fix="""If the wire carries arguments as a string, write `block.input_json`; if it carries an object, write
    `block.input` unchanged: do not sort keys, do not drop null, 0, false or empty values, and escape only what JSON
    requires.""",
)
def arguments_arrive_exactly(subject: Subject) -> Iterator[RuleFinding]:
    """Arguments in unusual key order, with every falsy value and numbers that a careless reader changes."""
    value: dict[str, Any] = {
        "z": 0,
        "a": None,
        "m": False,
        "e": "",
        "l": [],
        "o": {},
        "f": 0.5,
        "w": 1.0,
        "i": 9007199254740993,
        "u": "ü \u2028",
    }
    for aim in subject.aims:
        if not aim.capabilities.supports_tools:
            continue
        block = attrs.evolve(call(1), input=value)
        body = subject.body(aim, [user("q"), assistant_turn([block], None), tool_result(block, "r")], [READ])
        if not any(json.dumps(node) == json.dumps(value) for node in _objects(body)):
            yield RuleFinding(f"no object of the body holds {value!r} in this order", aim.name)
        if texts(body).count(READ.name) < 2:
            yield RuleFinding(f"the name {READ.name!r} is in the tool's definition, but not in its call", aim.name)
        broken = attrs.evolve(call(1), input={}, raw_input='{"path": "mkr1q', parse_error="arguments are not JSON")
        request = subject.write(aim, [user("q"), assistant_turn([broken], None), tool_result(broken, "r")], [READ])
        dropped = any(loss.block_type == "tool_use" and loss.verdict == "dropped" for loss in request.losses)
        if not dropped and "mkr1q" not in request.body.decode():
            yield RuleFinding("arguments that are not JSON are not in the body, and no loss has them dropped", aim.name)


def _objects(body: Any) -> Iterator[Any]:
    yield from (node for _, node in nodes(body) if isinstance(node, dict))
    for text in (leaf for _, leaf in strings(body) if leaf.startswith("{")):
        try:
            yield json.loads(text)
        except ValueError:
            continue


_LONG = f" {'Use it for files, and when asked. ' * 200}\n"


@rule(
    "C07",
    "Tool definitions reach the wire whole and in order; without tools the request has no tool field.",
    source="format.md, Tools; hook to_wire",
    fix="""Write every tool with its name, description and schema, in the order received. Report a schema keyword
    that the wire does not support as a Loss instead of omitting it silently. If a model has no tools, declare
    `supports_tools=False`; core then sends it none.""",
)
def tool_definitions_arrive(subject: Subject) -> Iterator[RuleFinding]:
    """Every field of a definition, a long description, and many names in an unusual order."""
    names = ("zz_first", "beta", "read_file", "delta", "omega" * 12, "a1", *[f"tool_{at}" for at in range(20, 0, -1)])
    offered = [attrs.evolve(READ, name=name) for name in names]
    offered[0] = attrs.evolve(offered[0], description="mkd1q", input_schema=SCHEMA)
    offered[1] = attrs.evolve(offered[1], description=_LONG)
    for aim in subject.aims:
        request = subject.write(aim, [user("q")], offered)
        body = request.body.decode()
        if not aim.capabilities.supports_tools:
            if "zz_first" in body:
                yield RuleFinding("tools are sent though supports_tools is False", aim.name)
            continue
        places = [body.find(f'"{tool.name}"') for tool in offered]
        missing = [word for word in ("mkd1q", *[tool.name for tool in offered]) if word not in body]
        if missing and not request.losses:
            yield RuleFinding(f"{', '.join(missing)} of the definitions is not in the body", aim.name)
        elif places != sorted(places):
            yield RuleFinding("the tools were put in another order", aim.name)
        elif not request.losses and not any(leaf == _LONG for _, leaf in strings(json.loads(body))):
            yield RuleFinding(f"a description of {len(_LONG)} characters is not in the body unchanged", aim.name)
        elif not request.losses and not any(_covers(node, SCHEMA) for node in _objects(json.loads(body))):
            yield RuleFinding(f"no object of the body holds the whole schema {SCHEMA}", aim.name)


def _covers(found: Any, wanted: Any) -> bool:
    """True when all of `wanted` is found, keys in this order; a wire may add fields and write types in capitals."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict) or [name for name in found if name in wanted] != list(wanted):
            return False
        return all(_covers(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_covers(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted or (isinstance(found, str) and found.lower() == wanted))


@rule(
    "C69",
    "A result is beside the id of the call that it answers, a call beside its arguments, and both beside no other id.",
    source="format.md, Identity; hook to_wire",
    fix="""Take the id of a result from that block's own `tool_use_id`, not from a list of calls by position: results
    arrive in any order, and a model reads what it finds under an id as the answer to that call.""",
)
def results_have_the_id_of_their_call(subject: Subject) -> Iterator[RuleFinding]:
    """Two rounds of parallel calls, answered the other way round, each result and argument with its own mark."""
    for aim in subject.aims:
        can = aim.capabilities
        if not can.supports_tools:
            continue
        count = 3 if can.supports_parallel_tool_calls else 1
        rounds = [[call(10 * turn + at, f"mka{turn}{at}q") for at in range(count)] for turn in (1, 2)]
        history: list[Message] = [user("q")]
        for calls in rounds:
            history.append(assistant_turn([*calls], None))
            history += [tool_result(one, _result_mark(one)) for one in reversed(calls)]
        history.append(user("n"))
        projected, _ = project_conversation(history, subject.provider.target(aim.options()))
        ids = [block.id for message in projected for block in message.tool_calls]
        calls = [one for turn in rounds for one in turn]
        marks = {_result_mark(one): wire for one, wire in zip(calls, ids, strict=True)}
        marks |= {str(one.input["path"]): wire for one, wire in zip(calls, ids, strict=True)}
        body = subject.body(aim, history, [READ])
        if not subject.quirks.has_call_ids(aim.api) and not set(ids) & set(texts(body)):
            continue  # C09 compares the order, which is all that this wire has
        for mark, own in marks.items():
            found = words_beside(body, mark, ids)
            if found != {own}:
                what = "a result" if mark.startswith("mku") else "an argument"
                yield RuleFinding(f"{what} of the call {own!r} is beside {sorted(found) or 'no id'}", aim.name)
                break


def _result_mark(tool_call: Any) -> str:
    return str(tool_call.input["path"]).replace("mka", "mku")
