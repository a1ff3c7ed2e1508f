"""Read the members of a request other than messages and tools: options, and members that stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from interlingua.types import Effort, ToolChoice
from interlingua_chat_completions.dialect import Dialect

_EFFORTS = get_args(Effort)
_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
_NAMES = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "random_seed": "seed",
    "stop": "stop",
    "parallel_tool_calls": "parallel_tool_calls",
    "user": "user_id",
    "safety_identifier": "user_id",
}


class BodyOptions:
    """The members of a body as options, and the unchanged members (`extra`)."""

    def __init__(self, body: Mapping[str, Any], dialect: Dialect) -> None:
        self._body, self._dialect = body, dialect
        self.found: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.covered: dict[str, tuple[str, ...]] = {}
        written = {
            dialect.max_tokens_field, "temperature", "top_p", "stop", dialect.seed_field, dialect.user_field,
            *(("top_k",) if dialect.top_k else ()),
            *(("parallel_tool_calls",) if dialect.parallel_tool_calls and body.get("tools") else ()),
        }  # fmt: skip
        handled = {"model", "messages", "tools"}
        for member, option in _NAMES.items():
            if body.get(member) is not None and option not in self.found:
                handled.add(member)
                self.found[option] = body[member]
                if member not in written:
                    self._keep(member, option)
        if body.get("stream") is True:
            handled.add("stream")
        for member in ("stream", "stream_options"):
            if member in body and member not in handled:
                handled.add(member)
                self._keep(member)
        for member, read in (
            ("reasoning_effort", self._effort),
            ("thinking", self._thinking),
            ("reasoning", self._reasoning),
            ("response_format", self._response_format),
            ("tool_choice", self._tool_choice),
        ):
            if body.get(member) is not None and read(body[member]):
                handled.add(member)
        self.extra |= {name: value for name, value in body.items() if name not in handled}

    def _keep(self, member: str, *options: str) -> None:
        """Keep the member unchanged for this API, which receives it instead of these options."""
        self.extra[member] = self._body[member]
        self.covered[member] = options

    def _effort(self, value: Any) -> bool:
        if value not in _EFFORTS:
            return False
        self.found["effort"] = value
        dialect = self._dialect
        if dialect.effort_shape != "field" and not (value == "none" and dialect.thinking_shape == "effort"):
            self._keep("reasoning_effort", "effort")
        return True

    def _thinking(self, value: Any) -> bool:
        if not isinstance(value, dict) or value.get("type") not in ("enabled", "disabled"):
            return False
        self.found["thinking"] = value["type"] == "enabled"
        self._keep("thinking", *(() if self._dialect.thinking_shape == "type" else ("thinking",)))
        return True

    def _reasoning(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if value.get("effort") in _EFFORTS:
            self.found["effort"] = value["effort"]
        if isinstance(value.get("enabled"), bool):
            self.found["thinking"] = value["enabled"]
        if type(value.get("max_tokens")) is int:
            self.found["thinking_budget"] = value["max_tokens"]
        if self._dialect.thinking_shape != "object":
            self._keep("reasoning", "effort", "thinking", "thinking_budget")
        else:
            self._keep("reasoning")
        return value.keys() <= {"effort", "enabled", "max_tokens"}

    def _response_format(self, value: Any) -> bool:
        form = value.get("json_schema") if isinstance(value, dict) else None
        if not isinstance(form, dict) or not isinstance(form.get("schema"), dict):
            return False
        self.found["response_schema"] = form["schema"]
        if isinstance(form.get("name"), str):
            self.found["response_name"] = form["name"]
        self._keep("response_format", "response_schema")
        return True

    def _tool_choice(self, value: Any) -> bool:
        named = value.get("function", value) if isinstance(value, dict) else None
        if isinstance(named, dict) and isinstance(named.get("name"), str):
            self.found["tool_choice"] = ToolChoice(named["name"])
        elif isinstance(value, str) and value in _CHOICES:
            self.found["tool_choice"] = _CHOICES[value]
        else:
            return False
        self._keep("tool_choice", "tool_choice")
        return True
