"""Plain content, told at a look that is taken once: text, text and calls, or one result of one text.

Never looks at metadata, and never judges: what is not plain is only not usual. Rules, projection and adapters come in,
to go the short way where nothing can be wrong, lost or special.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, Role

TEXT: Final = "text"


CALLS: Final = "calls"


RESULT: Final = "result"


Plain = Literal["text", "calls", "result", ""]


_NAME_LIMIT = 64


_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL  # an enum's member is found by a slow call before Python 3.12


_keep = Message.__dict__["_plain"].__set__  # a frozen value's own slot, filled once


def plainness(message: Message) -> Plain:
    """Return which plain content a message has, or "" when it has none; remembered on the message.

    Texts are not blank and carry no signature, citation or cache hint; no call or result carries one either.

    * `TEXT`: one text, of any role but TOOL.
    * `CALLS`: an assistant's calls, after at most one text; names are short and snake_case, arguments were read.
    * `RESULT`: one result of one text, in a TOOL message.
    """
    found: Plain | None = message._plain  # type: ignore[assignment]
    if found is None:
        found = _look(message)
        _keep(message, found)
    return found


def _look(message: Message) -> Plain:
    content, role = message.content, message.role
    if not content:
        return ""
    first = content[0]
    if role is _TOOL:
        return RESULT if len(content) == 1 and _is_result(first) else ""
    if type(first) is TextBlock:
        text = first.text
        if first.signature is not None or first.cache is not None or first.citations or not text or text.isspace():
            return ""
        if len(content) == 1:
            return TEXT
        calls = content[1:]
    else:
        calls = content
    if role is not _ASSISTANT:
        return ""
    for call in calls:
        if not (
            type(call) is ToolUseBlock
            and call.parse_error is None
            and call.signature is None
            and call.cache is None
            and _is_name(call.name)
        ):
            return ""
    return CALLS


def _is_result(block: ContentBlock) -> bool:
    if type(block) is not ToolResultBlock or len(block.content) != 1 or block.cache is not None:
        return False
    part = block.content[0]
    return (
        type(part) is TextBlock
        and part.signature is None
        and part.cache is None
        and not part.citations
        and part.text != ""
        and not part.text.isspace()
    )


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    plain = name.isascii() and name.isidentifier() and name.islower() and name[0] != "_"
    return plain and len(name) <= _NAME_LIMIT
