"""Ask a model of another API for JSON, or for an answer that follows a schema: by its own means, or in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interlingua.plugins import Loss, dumps, option_loss
from interlingua.types import (
    Message,
    ModelCapabilities,
    RequestOptions,
    Role,
    TextBlock,
    ToolDefinition,
    new_ulid,
    replace,
)

_JSON = "Answer with one JSON object, and nothing else: no other text, and no code fence around it."
_SCHEMA = _JSON + " The object follows this JSON Schema:\n{}"
_NAMED = "Answer with one JSON object."
_TOLD = "the system prompt asks for it"
_TIME = datetime.fromtimestamp(0, UTC)  # a request does not say when its messages were made


class AnswerShape:
    """The shape of an answer that a request asks for, and how a model is asked for it.

    Args:
        can: the model's capabilities; None if they are not known.
        tools: the tools of the request.
        options: its options.
        losses: receives a row for what is asked for in words.
    """

    def __init__(
        self,
        can: ModelCapabilities | None,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        losses: list[Loss],
    ) -> None:
        self._can, self._losses = can, losses
        self._obstacle = ""  # why the model takes neither a schema nor its JSON mode in this request
        self._words = self._name = ""
        if can is not None and tools and not can.structured_output_with_tools:
            self._obstacle = "this model takes no schema or JSON mode together with tools"
        elif can is not None and options.stream and not can.structured_output_streams:
            self._obstacle = "this model takes no schema or JSON mode in a stream"

    def json_mode(self, option: str, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the `provider_options` for some JSON object; without a JSON mode, words ask for it.

        Args:
            option: the option that asks for it.
            messages: the conversation. Services refuse a JSON mode if it does not name JSON.
        """
        mode = {} if self._can is None or self._obstacle else dict(self._can.json_mode)
        if not mode:
            self._words = _JSON
            reason = f"{self._obstacle or 'this model has no JSON mode'}; {_TOLD}"
            self._losses.append(option_loss(option, "rewritten", reason))
        elif not any(map(_names_json, messages)):
            self._name = _NAMED
            self._losses.append(
                option_loss(option, "rewritten", "a JSON mode needs a prompt that names JSON; it does now")
            )
        return mode

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return None if the model takes a schema; else words ask for it, beside the `provider_options` returned."""
        can = self._can
        if can is None or (can.supports_structured_output and not self._obstacle):
            return None
        self._words = _SCHEMA.format(dumps(schema).decode())
        reason = f"{self._obstacle or 'this model takes no schema'}; {_TOLD}"
        self._losses.append(option_loss("response_schema", "rewritten", reason))
        return {} if self._obstacle else dict(can.json_mode)

    def told(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return a conversation with the words at the end of its system prompt, or of its first question."""
        if self._name:
            first = next((at for at, each in enumerate(messages) if each.role is Role.USER), None)
            messages = messages if first is None else _with_text(messages, first, self._name)
        if not self._words:
            return messages
        leading = next((at for at, each in enumerate(messages) if each.role is not Role.SYSTEM), len(messages))
        if leading:
            return _with_text(messages, leading - 1, self._words)
        words = Message(id=new_ulid(), role=Role.SYSTEM, content=(TextBlock(text=self._words),), created_at=_TIME)
        return (words, *messages)


def _names_json(message: Message) -> bool:
    """Return whether a message has the word "json"; some services do not count a system prompt."""
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    return message.role is not Role.SYSTEM and any("json" in text.lower() for text in texts)


def _with_text(messages: tuple[Message, ...], at: int, text: str) -> tuple[Message, ...]:
    told = replace(messages[at], content=(*messages[at].content, TextBlock(text=text)))
    return (*messages[:at], told, *messages[at + 1 :])
