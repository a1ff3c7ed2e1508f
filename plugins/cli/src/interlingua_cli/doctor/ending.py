"""The end of a conversation: an answer that stands last.

Never takes the answer away. `examine` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from interlingua.types.blocks import TextBlock
from interlingua.types.messages import Role, StopReason
from interlingua_cli.doctor.finding import Finding
from interlingua_cli.doctor.record import Record


def check_ending(records: Sequence[Record], findings: list[Finding]) -> None:
    """Look at the last message: white space at its end is refused, and by many models an answer as such."""
    if not records or records[-1].message.role is not Role.ASSISTANT:
        return
    last = records[-1]
    message = last.message
    if message.metadata.stop_reason is StopReason.PAUSE_TURN:
        return  # sent back as it stands, to be gone on with
    block = message.content[-1] if message.content else None
    at = len(message.content) - 1
    if type(block) is TextBlock and block.text != block.text.rstrip() and block.signature is None:
        what = "white space at the end of the last answer, which is refused where the answer is gone on with"
        was = last.block(at)
        last.put(attrs.evolve(message, content=(*message.content[:-1], attrs.evolve(block, text=block.text.rstrip()))))
        findings.append(
            last.finding(
                "trailing-space",
                f"content[{at}].text",
                what,
                "REGRESSIONS case 12",
                "replaced",
                was=was,
                now=last.block(at),
            )
        )
    what = "the conversation ends with an answer; models that continue none refuse it as it stands"
    hint = "add a user message before sending"
    findings.append(last.finding("ends-with-answer", "", what, "REGRESSIONS case 40", hint=hint))
