"""How OpenAI speaks Chat Completions with each model, as data for the shared format."""

from __future__ import annotations

import re
from functools import cache

from interlingua.types import AdapterOptions
from interlingua_chat_completions.dialect import Dialect
from interlingua_openai.catalogue import CHAT, capabilities_of, facts_of
from interlingua_openai.errors import ERROR_CODES

# these refuse the field, whatever its value (lint/chat.toml)
_no_parallel = re.compile(r"o[134](-.*)?").fullmatch


def dialect_for(options: AdapterOptions) -> Dialect:
    """Return the dialect of a request: a model that reasons in it takes no sampling, one that does not does."""
    kind = facts_of(options.model).get("reasoning")
    effort = "none" if options.thinking is False else options.effort
    reasons = kind in ("on", "always") if effort is None else effort != "none"
    return dialect_of(options.model, samples=kind == "none" or not reasons)


@cache
def dialect_of(model: str, *, samples: bool = True) -> Dialect:
    """Return the dialect of one model; the same object for the same arguments.

    A reasoning model has `developer` messages where others have `system`; one that always reasons takes no sampling,
    and the later ones take no stop sequences. A model of unknown facts gets what all accept.
    """
    facts = facts_of(model)
    kind = facts.get("reasoning")
    return Dialect(
        system_role="developer" if kind in ("off", "on", "always") else "system",
        max_tokens_field="max_completion_tokens",
        sampling=samples and facts.get("sampling") is not False,
        temperature_range=(0.0, 2.0),
        stop=facts.get("stop") is not False,
        stop_limit=4,
        user_field="safety_identifier",
        effort_shape="none" if kind == "none" else "field",
        thinking_shape="none" if kind in ("none", "always") else "effort",
        refusal_parts=True,
        parallel_tool_calls=_no_parallel(model) is None,
        strict_option=True,
        structured="json_schema",
        cache_breakpoints=capabilities_of(model, CHAT).supports_prompt_caching,
        cache_key_field="prompt_cache_key",
        error_codes=ERROR_CODES,
    )
