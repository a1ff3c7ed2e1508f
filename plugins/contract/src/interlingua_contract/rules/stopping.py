"""Rules on stop reasons: the mapping is total, and the provider's own word is kept.

Never knows a word of any wire: the recorded word is replaced by one that does not exist.
The rules room comes in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from interlingua.types.messages import StopReason
from interlingua_cli.cassettes import Exchange
from interlingua_contract.frames import Frames
from interlingua_contract.json_paths import leaves, replaced
from interlingua_contract.reading import Read, read, read_stream, read_whole
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.returning import answers
from interlingua_contract.subject import Subject

NEW = "contract_new_reason"


_BY_CONTENT = {StopReason.TOOL_USE, StopReason.REFUSAL}


"""What the content alone may tell, whatever the word."""


_PLAIN = {
    r"length|max_(output_)?tokens": (StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW),
    r"refus|filter|safety|sensitive|prohibited": (StopReason.REFUSAL,),
    r"tool": (StopReason.TOOL_USE, StopReason.ERROR),
}


"""Words that say the same in every wire that has them."""


@rule(
    "C36",
    "An unknown stop reason is OTHER (or what calls or a refusal tell), with the provider's word; never an exception.",
    source="DESIGN 3; sheet MAPPING",
    fix="""Map by a table with `.get(word, StopReason.OTHER)`, and give the word as `stop_reason_raw` on both
    roads.""",
)
def unknown_stop_reasons_are_other(subject: Subject) -> Iterator[Finding]:
    """Each recorded answer with its word replaced."""
    for exchange, message in answers(subject):
        word = message.metadata.stop_reason_raw
        if not word:
            yield Finding(why="stop_reason_raw is empty: the provider's word is not kept", where=exchange.cassette)
            continue
        found = _with_word(subject, exchange, word)
        if found is None:
            yield Finding(why=f"stop_reason_raw is {word!r}, a word that is not in the answer", where=exchange.cassette)
        elif found.escaped or found.error or found.message is None:
            yield Finding(why=f"an unknown word gives {found.error or found.escaped}", where=exchange.cassette)
        else:
            got = (found.message.metadata.stop_reason, found.message.metadata.stop_reason_raw)
            allowed = _BY_CONTENT & {message.metadata.stop_reason} | {StopReason.OTHER}
            if got[0] not in allowed or got[1] != NEW:
                yield Finding(why=f"{word!r} replaced by {NEW!r} gives {got}", where=exchange.cassette)


def _with_word(subject: Subject, exchange: Exchange, word: str) -> Read | None:
    """Read the answer with another word where the old one was told; None if it is not there."""
    changes = 0

    def change(data: Any) -> Any:
        nonlocal changes
        for path, leaf in list(leaves(data)):
            key = next((str(key).lower() for key in reversed(path) if isinstance(key, str)), "")
            if leaf == word and ("reason" in key or "status" in key):
                changes += 1
                data = replaced(data, path, NEW)
        return data

    if exchange.streamed:
        body = Frames(subject, exchange).changed(change)
        return read_stream(subject, exchange, body) if changes else None
    body = json.dumps(change(json.loads(exchange.body))).encode()
    return read_whole(subject, exchange, body) if changes else None


@rule(
    "C37",
    "A good answer has a stop reason that fits: calls are `tool_use`; a word that says length or refusal means it.",
    source="seed 003 §4.3; REGRESSIONS 11, 20; sheet MAPPING",
    fix="""Some wires say `stop` although they call: an answer with calls that ended well is TOOL_USE, with the word
    as it was in `stop_reason_raw`.""",
)
def stop_reasons_fit_the_content(subject: Subject) -> Iterator[Finding]:
    """Each recorded answer."""
    for exchange, message in answers(subject):
        reason = message.metadata.stop_reason
        word = (message.metadata.stop_reason_raw or "").lower()
        for pattern, meant in _PLAIN.items():
            if re.search(pattern, word) and reason not in meant:
                yield Finding(why=f"{word!r} is {reason}", where=exchange.cassette)
        if reason is None:
            yield Finding(why="a complete message without a stop reason", where=exchange.cassette)
        elif message.tool_calls() and reason in (StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.OTHER):
            yield Finding(why=f"{len(message.tool_calls())} calls and stop reason {reason}", where=exchange.cassette)
        elif reason is StopReason.TOOL_USE and not message.tool_calls():
            yield Finding(why="stop reason tool_use without a call", where=exchange.cassette)
        if reason is StopReason.ERROR and read(subject, exchange).error is None:
            yield Finding(why="a good answer with stop reason error", where=exchange.cassette)
