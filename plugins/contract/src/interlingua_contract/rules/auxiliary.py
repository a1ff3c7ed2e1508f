"""Rules on auxiliary requests: tokens are counted of the request that is asked about, batch answers keep their ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest
from interlingua.types import assistant, system, user
from interlingua_contract.json_paths import texts, words_beside
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import READ, offered_tools
from interlingua_contract.subject import Subject


@rule(
    "C82",
    "The request that counts tokens is about the request given: its model, messages, system prompt and tools.",
    source="hook auxiliary_request",
    fix="""Build the request for `count_tokens` from `arguments["request"]`: the same body, without the fields that the
    endpoint refuses (a limit, streaming), and with its own path and model. A part that is left out is not counted.""",
)
def counting_asks_about_the_request(subject: Subject) -> Iterator[RuleFinding]:
    """Two different requests for each aim."""
    for aim in subject.aims:
        tools = offered_tools(aim)
        history = [user("mkt1q a question of some length"), assistant("mkt4q"), user("mkt2q")]
        if aim.capabilities.supports_system_prompt:
            history.insert(0, system("mkt0q Be brief."))
        first = subject.write(aim, history, tools, max_tokens=77)
        second = subject.write(aim, [*history, user("mkt3q")], tools, max_tokens=77)
        try:
            asked = [subject.provider.auxiliary_request("count_tokens", {"request": one}) for one in (first, second)]
        except CapabilityError:
            continue
        yield from _check_counting(first, asked[0], aim.name, aim.model)
        if asked[0].body == asked[1].body:
            yield RuleFinding("two requests are counted as one: the body does not depend on the request", aim.name)


def _check_counting(request: WireRequest, asked: WireRequest, where: str, model: str) -> Iterator[RuleFinding]:
    given, counted = texts(json.loads(request.body)), texts(json.loads(asked.body))
    decoded = "\n".join([*counted, *_unpacked(counted)])
    wanted = [leaf for leaf in given if "mkt" in leaf or leaf in (READ.name, READ.description)]
    missing = [leaf for leaf in wanted if leaf not in decoded]
    if missing:
        yield RuleFinding(f"{missing[0][:60]!r} is in the request, and is not counted", where)
    if model in given and model not in decoded and model not in asked.path:
        yield RuleFinding(f"the model {model!r} is not in the counting request", where)
    if asked.api != request.api:
        yield RuleFinding(f"it has the api {asked.api!r}, the request {request.api!r}", where)


def _unpacked(leaves: list[str]) -> Iterator[str]:
    """Yield what a leaf in base64 holds: a service may want the whole request in one field."""
    import base64  # noqa: PLC0415  for few services
    import binascii  # noqa: PLC0415  as above

    for leaf in leaves:
        try:
            yield from texts(json.loads(base64.b64decode(leaf, validate=True)))
        except (ValueError, binascii.Error):
            continue


@rule(
    "C83",
    "Each request of a batch is in it once, under its own id, whatever the order.",
    source="hook auxiliary_request",
    fix="""Write every pair of `requests` with that pair's id and body, in the order received. Answers return in any
    order: only the id tells which question they answer.""",
)
def batches_keep_their_ids(subject: Subject) -> Iterator[RuleFinding]:
    """Three different requests of one model, in two orders."""
    aims = {aim.api: aim for aim in reversed(subject.aims)}
    for aim in aims.values() if subject.connection.batch_limits is not None else ():
        pairs = [(f"row-{at}", subject.write(aim, [user(f"mkt{at}q")], max_tokens=77)) for at in (1, 2, 3)]
        for order in (pairs, [pairs[2], pairs[0], pairs[1]]):
            body = _batch_body(subject, order)
            for name, _ in order if body is not None else ():
                found = words_beside(body, name, ["mkt1q", "mkt2q", "mkt3q"])
                if found != {own := f"mkt{name[-1]}q"}:
                    yield RuleFinding(f"under the id {name!r} of {own!r} is {sorted(found) or 'nothing'}", aim.api)
                    return


def _batch_body(subject: Subject, pairs: list[tuple[str, WireRequest]]) -> Any:
    """Return the JSON that holds the requests, of the upload or else of the creation; None if neither is offered."""
    arguments: dict[str, Any] = {"requests": pairs, "name": "contract", "file": "file-1"}
    for kind in ("batch_upload", "batch_create"):
        try:
            text = subject.provider.auxiliary_request(kind, arguments).body.decode(errors="replace")
        except CapabilityError:
            continue
        lines = [line for line in text.splitlines() if line.startswith("{") and "row-" in line]  # a file's, in a form
        if lines:
            return [json.loads(line) for line in lines]
    return None
