"""How this service speaks Chat Completions, model by model, as data for the shared format (sheet zai §2, §5).

Never translates: the format library does, by the dialect it is given.
The plugin object, the request writer and the catalogue come in.
"""

from __future__ import annotations

from functools import cache

from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.format import ChatFormat
from interlingua_zai.catalogue import facts_of
from interlingua_zai.errors import BUSINESS_CODES

FORMAT = ChatFormat("zai")
# The range is open (§2): these are the values nearest to its ends that the service's own SDK sends.
LOWEST, HIGHEST = 0.01, 0.99


@cache
def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model; the same object for the same name.

    Facts of the catalogue: `efforts` (which `reasoning_effort` it takes), `thinking` (`always` when it cannot be
    switched off), `preserved` (it reads the reasoning of earlier turns when told not to clear it).
    """
    facts = facts_of(model)
    return Dialect(
        include_usage=False,  # §4: usage comes without asking
        user_field="user_id",
        effort_shape="field" if facts.get("efforts") else "none",
        effort_values=tuple(facts.get("efforts") or ()),
        thinking_shape="none" if facts.get("thinking") in ("always", "never") else "type",
        thinking_members={"clear_thinking": False} if facts.get("preserved") else {},
        reasoning_fields=("reasoning_content",),
        reasoning_echo="reasoning_content",
        tool_choices=frozenset(("auto",)),
        structured="json_object",
        image_data_urls=False,
        file_parts=False,
        error_codes=BUSINESS_CODES,
        request_id_headers=("x-log-id", "x-request-id"),
        citation_fields=("web_search",),
    )
