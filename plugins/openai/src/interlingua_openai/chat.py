"""OpenAI's dialect of Chat Completions for each model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, WireRequest, option_loss
from interlingua.types import Message, RequestOptions, ToolDefinition
from interlingua_chat_completions import request
from interlingua_chat_completions.dialect import Dialect
from interlingua_openai.catalogue import CHAT, IMAGE_DETAILS, USER_ID_LENGTH, capabilities_of, facts_of
from interlingua_openai.errors import ERROR_CODES

# these refuse the field, whatever its value (lint/chat.toml)
_no_parallel = re.compile(r"o[134](-.*)?").fullmatch


def to_wire(
    provider: str, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
) -> WireRequest:
    """Write the request of this provider key.

    Raises:
        CapabilityError: tools for a model that accepts them only on the other API.
    """
    losses: list[Loss] = []
    options = _without_thinking(options, losses) if tools else options
    made = request.to_wire(provider, messages, tools, options, dialect_for(options), api=CHAT)
    return attrs.evolve(made, losses=(*losses, *made.losses)) if losses else made


def _without_thinking(options: RequestOptions, losses: list[Loss]) -> RequestOptions:
    """Switch reasoning off if this API accepts functions only without it (WIRE.md, Reasoning and sampling)."""
    facts = facts_of(options.model)
    asked = options.effort not in (None, "none") or options.thinking
    if facts.get("chat_tools_think", True) or options.thinking is False:
        return options
    if "none" not in facts["efforts"]:
        raise CapabilityError(
            f"{options.model} takes tools in the Responses API only; leave out api='{CHAT}'", path="options.api"
        )
    if not asked and (facts.get("reasoning") == "off" or options.effort == "none"):
        return options
    reason = "with tools this model does not reason on this API; without api='chat' it does"
    losses.append(option_loss("effort" if options.effort else "thinking", "rewritten", reason))
    return attrs.evolve(options, effort="none", thinking=None)


def dialect_for(options: RequestOptions) -> Dialect:
    """Return the dialect of a request; sampling is accepted only if the model does not reason in it."""
    kind = facts_of(options.model).get("reasoning")
    effort = "none" if options.thinking is False else options.effort
    reasons = kind in ("on", "always") if effort is None else effort != "none"
    return dialect_of(options.model, samples=kind == "none" or not reasons)


@cache
def dialect_of(model: str, *, samples: bool = True) -> Dialect:
    """Return the dialect of one model; the same arguments return the same object.

    A reasoning model has `developer` messages instead of `system`. A model that always reasons accepts no sampling, and
    later ones accept no stop sequences. A model with unknown facts gets only what all models accept.
    """
    facts = facts_of(model)
    kind = facts.get("reasoning")
    efforts = tuple(facts.get("chat_efforts") or facts.get("efforts") or ())
    return Dialect(
        system_role="developer" if kind in ("off", "on", "always") else "system",
        max_tokens_field="max_completion_tokens",
        sampling=samples and facts.get("sampling") is not False,
        temperature_range=(0.0, 2.0),
        stop=facts.get("stop") is not False,
        stop_limit=4,
        user_field="safety_identifier",
        user_length=USER_ID_LENGTH,
        effort_shape="none" if kind == "none" else "field",
        effort_values=efforts,
        thinking_shape="none" if kind in ("none", "always") or (efforts and "none" not in efforts) else "effort",
        refusal_parts=True,
        image_details=IMAGE_DETAILS,
        parallel_tool_calls=_no_parallel(model) is None,
        max_tools=128,
        strict_option=True,
        structured="json_schema",
        object_root=True,
        cache_breakpoints=capabilities_of(model, CHAT).supports_prompt_caching,
        cache_key_field="prompt_cache_key",
        error_codes=ERROR_CODES,
    )
