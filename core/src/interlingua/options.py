"""What a caller asks of one request, in canonical words; each adapter says them in its wire's.

Never holds a key, a URL or a timeout (those belong to the connection and the client).
Adapters, projection and the client may come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from interlingua.jsontext import EMPTY, FrozenDict, freeze_object, freeze_optional
from interlingua.values import quick

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


@attrs.frozen
class ToolNamed:
    """Force the one tool of this name."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | ToolNamed


def _stop(value: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _headers(value: Mapping[str, str] | None) -> FrozenDict:
    return freeze_object({name.lower(): text for name, text in (value or {}).items()})


@quick
@attrs.frozen(kw_only=True)
class AdapterOptions:
    """One request's options; None means "the provider's default", and 0 is a value (REGRESSIONS case 32).

    Attributes:
        model: model name as the provider knows it, without provider key.
        api: which wire format of the provider; None lets the adapter choose.
        stream: ask for a stream.
        max_tokens: longest answer in tokens.
        temperature: sampling temperature.
        top_p: nucleus sampling.
        top_k: sampling from the k likeliest.
        seed: for repeatable sampling, where a wire has it.
        stop: stop sequences.
        tool_choice: auto, none, required, or one tool.
        parallel_tool_calls: False forbids several calls in one answer.
        response_schema: JSON Schema the answer must follow.
        response_name: a name for that schema, where a wire wants one.
        effort: how hard to think.
        thinking: True or False to switch reasoning on or off, where a model lets one choose.
        thinking_budget: reasoning tokens allowed, where a model takes a budget.
        demote_thinking: send foreign reasoning as text; off by default, models imitate it (REGRESSIONS case 02).
        downscale_images: make images smaller that the target would refuse for their size (needs Pillow, the extra
            `images`); off by default, an image too large is a CapabilityError.
        user_id: stable pseudonymous end-user id for the provider's abuse control.
        provider_options: extra body fields in the provider's own words, laid over the body last.
        headers: extra request headers.
        capabilities: facts the caller asserts about a model the catalogue does not know.
    """

    model: str
    api: str | None = None
    stream: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = attrs.field(default=(), converter=_stop)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_schema: FrozenDict | None = attrs.field(default=None, converter=freeze_optional)
    response_name: str = "response"
    effort: Effort | None = None
    thinking: bool | None = None
    thinking_budget: int | None = None
    demote_thinking: bool = False
    downscale_images: bool = False
    user_id: str | None = None
    provider_options: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    headers: FrozenDict = attrs.field(default=EMPTY, converter=_headers)
    capabilities: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)


def option_fields() -> dict[str, Any]:
    """Return the option names with their attrs fields, for command lines and error messages."""
    return {field.name: field for field in attrs.fields(AdapterOptions)}
