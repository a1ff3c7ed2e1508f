"""What crosses the seam when an adapter serves: somebody's request in its API, and how the answer is written in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs

from interlingua.frozen import replace
from interlingua.ids import new_ulid
from interlingua.json import EMPTY, dumps
from interlingua.plugins.wire import Loss, message_loss, option_loss
from interlingua.types.blocks import (
    ContentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    read_tool_input,
)
from interlingua.types.events import (
    BlockEnd,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua.types.messages import Message, Origin, utc_now
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition

State = Mapping[str, Any]
"""What only the origin of an answer can use, as JSON (`AnswerState`): who made it, its replay state, its blocks'."""

# what other APIs cannot carry of a block; of the last two, all
_FIELDS: dict[type, tuple[str, ...]] = {
    TextBlock: ("signature", "citations"),
    ThinkingBlock: ("signature",),
    ToolUseBlock: ("provider_id", "signature", "raw_input"),
    RedactedThinkingBlock: ("data",),
    OpaqueBlock: ("provider", "kind", "data"),
}
_WHOLE = {kind.type: kind for kind in (RedactedThinkingBlock, OpaqueBlock)}


@attrs.frozen(kw_only=True)
class InboundRequest:
    """A request that was made in an adapter's own API, read.

    Attributes:
        messages: the conversation; answers have the origin that their sealed state names, else this API's service.
        tools: what the model may call, mostly `WireTool`.
        options: of the request: `model` as it was asked for, `stream`, `api`; without `provider_options`.
        extra: what only this API can say, in the form of `options.provider_options`.
        covered: members of `extra` whose meaning `options` have too, each with the options to leave out beside it.
        private: indexes of messages that are meant for this API's own service, and for no other.
        provider: key of the provider whose API it is.
        losses: what could not be read, such as a seal that was altered.
        echo: facts that the adapter wants to see when the answer is written (`ServeContext.echo`).
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: AdapterOptions
    extra: Mapping[str, Any] = EMPTY
    covered: Mapping[str, Sequence[str]] = EMPTY
    private: tuple[int, ...] = ()
    provider: str
    losses: tuple[Loss, ...] = ()
    echo: Mapping[str, Any] = EMPTY

    def for_upstream(
        self, provider: str, api: str, model: str
    ) -> tuple[tuple[Message, ...], AdapterOptions, tuple[Loss, ...]]:
        """Return messages and options for the model that will answer, and the losses.

        An upstream that speaks this API gets all that was said; another, less what only this API can say. The exact
        form of what is `covered` is for this API's own service and the very model that was asked for: others may not
        take it.

        Args:
            provider: its provider key.
            api: which of that provider's wire formats.
            model: its model name without provider key.
        """
        asked, messages, losses = self.options.model, self.messages, list(self.losses)
        own = provider == self.provider and api == self.options.api
        if own and model == asked:
            left_out: dict[str, Any] = dict.fromkeys(name for names in self.covered.values() for name in names)
            return messages, attrs.evolve(self.options, **left_out, provider_options=self.extra), tuple(losses)
        extra = {name: value for name, value in self.extra.items() if name not in self.covered}
        if api != self.options.api:
            said = [name for name, value in extra.items() if value is not None]
            losses += [option_loss(f"provider_options.{name}", "dropped", "only this API has it") for name in said]
            extra = {}
        if own:  # unsealed answers are taken for those of the model in use
            before, now = f"{provider}:{asked}", f"{provider}:{model}"
            messages = tuple(
                [
                    replace(each, metadata=replace(each.metadata, model=now)) if each.metadata.model == before else each
                    for each in messages
                ]
            )
        else:
            lost = [message_loss(at, "it is for this API's own service") for at in self.private]
            losses += [attrs.evolve(row, verdict="dropped") for row in lost]
            messages = tuple([each for at, each in enumerate(messages) if at not in self.private])
        return messages, attrs.evolve(self.options, model=model, api=api, provider_options=extra), tuple(losses)


@attrs.frozen(kw_only=True)
class ServeContext:
    """What an adapter may not find out by itself when it reads a request or writes its answer.

    Attributes:
        provider: key of the provider whose API is spoken; answers of that provider and API need no seal.
        api: which of its wire formats.
        model: the name that the caller asked for: answers say this one, whoever made them; "" for a request.
        origin: who makes the answer; None for an error before anybody was asked.
        echo: what the adapter put into `InboundRequest.echo`.
        answer_id: unique for each answer, letters and digits; to be prefixed in the API's manner.
        new_id: gives further such ids, for the parts of an answer.
        clock: gives the time, UTC.
        seal: makes a text of state that only `unseal` can read: URL-safe base64, padded. None: state is dropped.
        unseal: gives back the state; {} for a seal that may not be used here (altered, another key, tenant or time);
            None for a text that is no seal.
    """

    provider: str
    api: str
    model: str = ""
    origin: Origin | None = None
    echo: Mapping[str, Any] = EMPTY
    answer_id: str = attrs.field(factory=new_ulid)
    new_id: Callable[[], str] = new_ulid
    clock: Callable[[], datetime] = utc_now
    seal: Callable[[State], str] | None = None
    unseal: Callable[[str], State | None] = lambda _text: None

    @property
    def is_own(self) -> bool:
        """True when this API's own service makes the answer."""
        return self.origin is not None and self.origin[:2] == (self.provider, self.api)


class StreamWriter(Protocol):
    """Writes the events of one answer in an API's framing.

    Attributes:
        content_type: of the HTTP answer.
        losses: what this API could not say.
    """

    content_type: str
    losses: list[Loss]

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the bytes for the events of one upstream read, ready to be written at once; b"" for none.

        An `ErrorEvent` is written as this API's own error, last.
        """
        ...

    def end(self) -> bytes:
        """Return what is left when no more events come; an error where none of them ended the answer."""
        ...


def dumps_line(value: Any) -> bytes:
    """Write JSON without the characters besides CR and LF at which some clients end a line (NEL, U+2028, U+2029)."""
    data = dumps(value)
    return (
        data.replace(b"\xc2\x85", b"\\u0085").replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    )


class AnswerState:
    """Gathers from an answer's events what only its origin can use, for a writer to seal.

    Args:
        origin: who makes the answer.
        strings: the API that is written carries arguments of calls as text, so that the text need not be sealed.
    """

    def __init__(self, origin: Origin | None, *, strings: bool) -> None:
        self._origin = list(origin or ())
        self._strings = strings
        self._replay: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}  # in order of appearance
        self._pieces: dict[int, list[str]] = {}
        self._new: dict[int, bool] = {}
        self._new_replay = False

    def note(self, event: StreamEvent, wire_id: str = "") -> None:
        """Look at an event; of a `ToolUseStart`, `wire_id` is the id that the caller is given."""
        if type(event) is TextDelta or type(event) is ThinkingDelta:
            self._entry(event.index, event.type[:-6])["length"] += len(event.text)
        elif type(event) is ToolUseInputDelta:
            if not self._strings:
                self._pieces.setdefault(event.index, []).append(event.partial_json)
        elif type(event) is ToolUseStart:
            self._entry(event.index, "tool_use")["id"] = wire_id
            self._keep(event.index, {"provider_id": event.provider_id if event.provider_id != wire_id else None})
        elif type(event) is ToolUseEnd and event.block is None:
            self._keep(event.index, {"raw_input": "".join(self._pieces.pop(event.index, ()))})
        elif type(event) is ToolUseEnd or type(event) is BlockEnd:
            self.add(event.index, event.block)  # type: ignore[arg-type]
        elif type(event) is RawUpdate and event.replay:
            self._replay.update(event.replay)
            self._new_replay = True

    def add(self, index: int, block: ContentBlock, wire_id: str = "") -> None:
        """Note a whole block."""
        entry = self._entry(index, block.type)
        if wire_id:
            entry["id"] = wire_id
        if not entry["length"]:
            entry["length"] = len(getattr(block, "text", ""))
        self._keep(index, {name: getattr(block, name) for name in _FIELDS.get(type(block), ())})

    def add_message(self, message: Message, wire_id: Callable[[ToolUseBlock], str]) -> None:
        """Note a whole message; `wire_id` gives the id that the caller is given for a call."""
        for index, block in enumerate(message.content):
            self.add(index, block, wire_id(block) if isinstance(block, ToolUseBlock) else "")
        self._replay.update((message.metadata.provider_raw or EMPTY).get("replay") or EMPTY)
        self._new_replay = bool(self._replay)

    def _entry(self, index: int, kind: str) -> dict[str, Any]:
        found = self._blocks.get(index)
        if found is None:
            found = self._blocks[index] = {"type": kind, "length": 0}
        return found

    def _keep(self, index: int, fields: Mapping[str, Any]) -> None:
        entry = self._blocks[index]
        for name, value in fields.items():
            if not value or value == entry.get("id" if name == "provider_id" else name):
                continue
            if name == "raw_input" and (self._strings or value == dumps(read_tool_input(value)[0]).decode()):
                continue
            entry[name] = value
            self._new[index] = True

    @property
    def has_blocks(self) -> bool:
        """True when something new of a block waits to be taken; replay state alone may wait for a better place."""
        return bool(self._new)

    def take(self, *, whole: bool = False, always: bool = False) -> State | None:
        """Return what is new since the last call, None for nothing.

        Args:
            whole: the answer is finished: return everything. Only such a state can divide texts that the API joins.
            always: return who made the answer also where there is nothing else.
        """
        if not (always or self._new or self._new_replay):
            return None
        blocks = [entry for index, entry in self._blocks.items() if whole or index in self._new]
        state = {"origin": self._origin, "replay": self._replay, "blocks": blocks, "whole": whole}
        self._new, self._new_replay = {}, False
        return state if whole else {**state, "replay": dict(self._replay), "blocks": [dict(each) for each in blocks]}


def restore_answer(message: Message, items: Sequence[ContentBlock | State]) -> Message:
    """Return an answer that a caller sent back with what was sealed of it.

    Args:
        message: without content.
        items: its blocks, and each state that was sealed in front of the block that it stood with.
    """
    items = _of_one_origin(items)
    states: list[State] = [item for item in items if isinstance(item, Mapping)]
    echoed: list[ContentBlock] = [item for item in items if not isinstance(item, Mapping)]
    if not states:
        return replace(message, content=tuple(echoed))
    provider, api, model = states[-1]["origin"]
    replay: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    for state in states:
        replay.update(state["replay"])
        for entry in state["blocks"]:
            if entry["type"] == "tool_use":
                calls.setdefault(entry["id"], {}).update(entry)
    content = _divided(states[-1]["blocks"], echoed) if states[-1]["whole"] else None
    if content is None:
        content = _in_order(items, calls)
    raw = {"origin": [provider, api, model], "replay": replay, "trace": {}} if replay else None
    metadata = replace(message.metadata, provider=provider, api=api, model=f"{provider}:{model}", provider_raw=raw)
    return replace(message, content=tuple(content), metadata=metadata)


def _of_one_origin(items: Sequence[ContentBlock | State]) -> list[ContentBlock | State]:
    """Return the items without states of others than the last one's origin, and without the thinking behind those.

    A caller may have put answers of two origins together.
    """
    origin = next((item["origin"] for item in reversed(items) if isinstance(item, Mapping) and item), None)
    out: list[ContentBlock | State] = []
    other = False
    for item in items:
        if isinstance(item, Mapping):
            other = bool(item) and item["origin"] != origin
            if item and not other:
                out.append(item)
        elif not (other and isinstance(item, ThinkingBlock)):
            other = False
            out.append(item)
    return out


def _divided(entries: Sequence[State], echoed: Sequence[ContentBlock]) -> list[ContentBlock] | None:
    """Return the blocks as they were before an API joined their texts; None where the caller changed something."""
    texts = {
        kind.type: "".join([block.text for block in echoed if type(block) is kind])
        for kind in (TextBlock, ThinkingBlock)
    }
    rest = [block for block in echoed if block.type not in texts]
    out: list[ContentBlock] = []
    for entry in entries:
        kind, length = entry["type"], entry["length"]
        if kind in texts:
            if len(texts[kind]) < length:
                return None
            block: ContentBlock = (TextBlock if kind == "text" else ThinkingBlock)(text=texts[kind][:length])
            texts[kind] = texts[kind][length:]
        elif kind in _WHOLE:
            out.append(_with_state(None, entry))
            continue
        elif not rest or rest[0].type != kind or getattr(rest[0], "id", "") != entry.get("id", ""):
            return None
        else:
            block = rest.pop(0)
        out.append(_with_state(block, entry))
    return None if rest or any(texts.values()) else out


def _in_order(items: Sequence[ContentBlock | State], calls: Mapping[str, State]) -> list[ContentBlock]:
    out: list[ContentBlock] = []
    waiting: list[State] = []
    for item in items:
        if isinstance(item, Mapping):
            entries = item["blocks"]
            out += [_with_state(None, entry) for entry in entries if entry["type"] in _WHOLE]
            waiting += [entry for entry in entries if entry["type"] in ("text", "thinking")]
        elif isinstance(item, ToolUseBlock):
            out.append(_with_state(item, calls.get(item.id, EMPTY)))
        else:
            entry = next((each for each in waiting if each["type"] == item.type), EMPTY)
            if entry:
                waiting.remove(entry)
            out.append(_with_state(item, entry))
    for entry in waiting:  # it came after its block
        for at in range(len(out) - 1, -1, -1):
            if out[at].type == entry["type"] and not getattr(out[at], "signature", None):
                out[at] = _with_state(out[at], entry)
                break
    return out


def _with_state(block: ContentBlock | None, entry: State) -> ContentBlock:
    kind: Any = _WHOLE[entry["type"]] if block is None else type(block)
    fields = {name: entry[name] for name in _FIELDS.get(kind, ()) if name in entry}
    if (
        isinstance(block, ToolUseBlock)
        and "raw_input" in fields
        and read_tool_input(fields["raw_input"])[0] != block.input
    ):
        del fields["raw_input"]
    return kind(**fields) if block is None else replace(block, **fields) if fields else block
