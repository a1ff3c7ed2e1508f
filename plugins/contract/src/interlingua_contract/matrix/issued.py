"""Call ids as a side would issue them, the same on every run.

Never asks a provider: its declared pattern tells what an id looks like, and its wire whether there is one at all.
The script comes in.
"""

from __future__ import annotations

import hashlib
import json
import re

from interlingua.types.blocks import ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, MessageMetadata, Origin, Provenance, Role
from interlingua.types.options import AdapterCapabilities
from interlingua_contract import json_paths as trees
from interlingua_contract.matrix.speaker import Speaker

_FORMS = ("call_{}", "{}")


_LENGTHS = (24, 9)


def issued_id(speaker: Speaker, number: int) -> str | None:
    """Return a call id as this speaker would issue it, or None where its wire carries none."""
    if not _issues(speaker):
        return None
    return _id(speaker, number)


def _id(speaker: Speaker, number: int) -> str | None:
    declared: AdapterCapabilities = speaker.side.capabilities(speaker.model)
    fits = re.compile(declared.tool_id_pattern).fullmatch
    digits = hashlib.sha256(f"{speaker.side.name} {number}".encode()).hexdigest()
    made = [form.format(digits[:length]) for length in _LENGTHS for form in _FORMS]
    return next((one for one in made if len(one) <= declared.tool_id_max_length and fits(one)), None)


def _issues(speaker: Speaker) -> bool:
    """Tell whether an own id comes back on this wire; found out once for each model."""
    known = speaker.side.issuing
    if speaker.model not in known:
        issued = _id(speaker, 0)
        call = ToolUseBlock(id=issued or "tu_0", name="ask", provider_id=issued)
        history = [user("q"), _credited(call, speaker.side.origin(speaker.model)), tool_result(call, "r")]
        body = json.loads(speaker.side.write(speaker.model, history, ()).body)
        known[speaker.model] = issued in trees.texts(body)
    return known[speaker.model]


def _credited(call: ToolUseBlock, origin: Origin) -> Message:
    metadata = MessageMetadata(
        model=f"{origin.provider}:{origin.model}",
        provider=origin.provider,
        api=origin.api,
        provenance=Provenance.IMPORTED,
    )
    return Message(role=Role.ASSISTANT, content=(call,), metadata=metadata)
