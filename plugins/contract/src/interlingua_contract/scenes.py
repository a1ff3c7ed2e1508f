"""Conversations for the rules: small fixed histories, and laws over generated ones."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from interlingua.types import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    ModelCapabilities,
    OpaqueBlock,
    Origin,
    Provenance,
    RedactedThinkingBlock,
    Role,
    SideEffects,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
    VideoBlock,
    system,
    tool_result,
    user,
)
from interlingua_contract.rule import RuleFinding, around_difference
from interlingua_contract.strategies import conversations, tools
from interlingua_contract.subject import Aim, Subject

FOREIGN = Origin("elsewhere", "chat", "m-1")
WORDS = "contract payload, recognised by its length and its words"
PAYLOAD = base64.b64encode(WORDS.encode()).decode()
URL = "https://example.com/contract-payload.png"

READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    input_schema={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it is."}},
        "required": ["path"],
    },
    side_effects=SideEffects.READ,
)

_DATA = MediaSource(kind="base64", data=PAYLOAD)
PICTURE = ImageBlock(source=_DATA, media_type="image/png")


@attrs.frozen(kw_only=True)
class Scene:
    """A history with one block in it that some targets cannot carry.

    Attributes:
        name: name in messages; also the key in `quirks.dropped_kinds`.
        block_type: what the ledger calls it.
        history: the conversation.
        payload: what the body must contain if the capability is declared, and must not contain otherwise.
        flag: the capability that declares it, or several; empty if no target may carry it.
        media: the list of accepted media types that must hold `media_type` as well.
        media_type: media type of the payload.
        tools: definitions sent along.
    """

    name: str
    block_type: str
    history: tuple[Message, ...]
    payload: str
    flag: str = ""
    media: str = ""
    media_type: str = ""
    tools: tuple[ToolDefinition, ...] = ()

    def declared(self, capabilities: ModelCapabilities) -> bool:
        """True when the target declares that it can carry this."""
        if not self.flag or not all(getattr(capabilities, flag) for flag in self.flag.split()):
            return False
        accepted = getattr(capabilities, self.media) if self.media else ()
        return not accepted or self.media_type in accepted


def assistant_turn(content: list[ContentBlock], origin: Origin | None = FOREIGN, **facts: Any) -> Message:
    """Return an assistant message of an origin; None: written by hand."""
    if origin is None:
        return Message(role=Role.ASSISTANT, content=tuple(content))
    calls = any(isinstance(block, ToolUseBlock) for block in content)
    metadata = MessageMetadata(
        model=f"{origin.provider}:{origin.model}",
        provider=origin.provider,
        api=origin.api,
        usage=Usage(),
        stop_reason=StopReason.TOOL_USE if calls else StopReason.END_TURN,
        provenance=Provenance.GENERATED,
        **facts,
    )
    return Message(role=Role.ASSISTANT, content=tuple(content), metadata=metadata)


def call(number: int, path: str = "a.txt", **facts: Any) -> ToolUseBlock:
    """Return a call of `read_file`."""
    return ToolUseBlock(id=f"tu_01KAKDPZ000000000000{number:06d}", name="read_file", input={"path": path}, **facts)


def _in_question(*blocks: ContentBlock) -> tuple[Message, ...]:
    return (user([TextBlock(text="Look."), *blocks]),)


def _in_answer(*blocks: ContentBlock) -> tuple[Message, ...]:
    return user("Hello."), assistant_turn([*blocks, TextBlock(text="Said.")]), user("Go on.")


def media_scenes() -> list[Scene]:
    """Return one scene for each medium, inline."""
    blocks: dict[str, ImageBlock | AudioBlock | VideoBlock | DocumentBlock] = {
        "supports_images": PICTURE,
        "supports_audio": AudioBlock(source=_DATA, media_type="audio/wav"),
        "supports_video": VideoBlock(source=_DATA, media_type="video/mp4"),
        "supports_documents": DocumentBlock(source=_DATA, media_type="application/pdf", title="a.pdf"),
    }
    return [
        Scene(
            name=block.type,
            block_type=block.type,
            history=_in_question(block),
            payload=PAYLOAD,
            flag=flag,
            media=f"accepted_{block.type}_media_types",
            media_type=block.media_type or "",
        )
        for flag, block in blocks.items()
    ]


def foreign_scenes() -> list[Scene]:
    """Return one scene for each kind of state that belongs to another origin, or to an unknown one."""
    opaque = OpaqueBlock(provider=FOREIGN.provider, kind="search", data={"type": "search", "q": "mko1q"})
    rows: list[tuple[str, str, ContentBlock, str]] = [
        ("foreign thinking", "thinking", ThinkingBlock(text="mkh1q", signature="mks1q"), "mkh1q"),
        ("foreign redacted thinking", "redacted_thinking", RedactedThinkingBlock(data="mkd1q"), "mkd1q"),
        ("foreign opaque", "opaque", opaque, "mko1q"),
        ("a newer version's block", "unknown", UnknownBlock(raw={"type": "hologram", "x": "mkn1q"}), "mkn1q"),
        ("foreign text signature", "text", TextBlock(text="Signed.", signature="mks2q"), "mks2q"),
    ]
    signed = call(1, signature="mks3q")
    history = (user("Read."), assistant_turn([signed]), tool_result(signed, "text"), user("Go on."))
    return [
        *(
            Scene(name=name, block_type=kind, history=_in_answer(block), payload=payload)
            for name, kind, block, payload in rows
        ),
        Scene(name="foreign call signature", block_type="tool_use", history=history, payload="mks3q", tools=(READ,)),
    ]


def result_image() -> Scene:
    """Return a result with an image in it."""
    return _in_result(PICTURE, "supports_tool_result_images supports_images")


def result_document() -> Scene:
    """Return a result with a document in it."""
    document = DocumentBlock(source=_DATA, media_type="application/pdf", title="a.pdf")
    return _in_result(document, "supports_tool_result_documents")


def _in_result(block: ImageBlock | DocumentBlock, flag: str) -> Scene:
    tool_call = call(1)
    result = ToolResultBlock(tool_use_id=tool_call.id, content=(TextBlock(text="It shows:"), block))
    metadata = MessageMetadata(parent_tool_use_id=tool_call.id)
    answer = Message(role=Role.TOOL, content=(result,), metadata=metadata)
    return Scene(
        name=f"{block.type} in a result",
        block_type=block.type,
        history=(user("Read."), assistant_turn([tool_call], None), answer),
        payload=PAYLOAD,
        flag=flag,
        media=f"accepted_{block.type}_media_types",
        media_type=block.media_type or "",
        tools=(READ,),
    )


def linked_image() -> Scene:
    """Return an image by its address."""
    block = ImageBlock(source=MediaSource(kind="url", data=URL), media_type="image/png")
    return Scene(
        name="image by address",
        block_type="image",
        history=_in_question(block),
        payload=URL,
        flag="supports_images supports_image_urls",
        media="accepted_image_media_types",
        media_type="image/png",
    )


def with_cache_hint() -> tuple[Message, ...]:
    """Return a history with a cache hint."""
    return (user([TextBlock(text="Remember this.", cache=CacheHint())]),)


def with_system_prompt() -> tuple[Message, ...]:
    """Return a history with a system prompt."""
    return system("mkp1q Be brief."), user("mkt1q Hello.")


def text_document_probes() -> Mapping[str, tuple[tuple[Message, ...], str]]:
    """Return the probes of documents, for services whose documents are plain text."""
    document = DocumentBlock(source=_DATA, media_type="text/plain", title="a.txt")
    flag = "supports_tool_result_documents"
    return {"supports_documents": (_in_question(document), WORDS), flag: (_in_result(document, flag).history, WORDS)}


def capability_probes() -> Mapping[str, tuple[tuple[Message, ...], str]]:
    """Return capability -> (history, payload): how a request that uses it is recognised."""
    made = {scene.flag: (scene.history, PAYLOAD) for scene in media_scenes()}
    made["supports_tool_result_images"] = (result_image().history, PAYLOAD)
    made["supports_tool_result_documents"] = (result_document().history, PAYLOAD)
    made["supports_image_urls"] = (linked_image().history, URL)
    made["supports_system_prompt"] = (with_system_prompt(), "mkp1q")
    return made


_ENOUGH_FAILURES = 3
"""Failing aims after which a rule stops; only the first one's example is made smaller."""


class LawBroken(AssertionError):
    """Raised inside a law when it does not hold; the message says what was expected.

    `compared` are the two values that differ, the expected one first.
    """

    def __init__(self, why: str, compared: tuple[str | bytes, str | bytes] | None = None) -> None:
        super().__init__(why)
        self.compared = compared


Law = Callable[[Aim, Any], None]
_FEWEST = 3  # examples: the first one drawn is always the simplest


def check_law(
    subject: Subject,
    law: Law,
    strategy: Callable[[Aim], st.SearchStrategy[Any]],
    share: int | None = None,
    aims: Sequence[Aim] | None = None,
) -> Iterator[RuleFinding]:
    """Run a law, which raises LawBroken, on every aim with what the strategy draws for it.

    `share` is the number of examples for each aim; by default the subject's examples are divided among them, three for
    each at least: with fewer examples than that, only every second aim is drawn for, or fewer. `aims` are the aims to
    run it on, if not all.
    """
    aims = subject.aims if aims is None else aims
    if share is None:
        aims = aims[:: -(-len(aims) // max(subject.examples // _FEWEST, 1)) or 1]
        share = max(subject.examples // max(len(aims), 1), _FEWEST)
    found = 0
    for aim in aims:
        failed = _first_failure(subject, law, aim, strategy(aim), share)
        if failed is None:
            continue
        value, error = failed if found else _shrink(law, aim, *failed, subject.shrink_s)
        why = str(error) if isinstance(error, LawBroken) else f"{type(error).__name__}: {error}"
        compared = error.compared if isinstance(error, LawBroken) else None
        values = around_difference(*compared) if compared is not None else {}
        yield RuleFinding(why, aim.name, scene=_sketch_history(value), **values)
        found += 1
        if found == _ENOUGH_FAILURES:
            return


def _first_failure(
    subject: Subject, law: Law, aim: Aim, strategy: st.SearchStrategy[Any], share: int
) -> tuple[Any, Exception] | None:
    for value in _draw(strategy, share, subject.seed):
        if (error := _run_law(law, aim, _copy_lists(value))) is not None:
            return value, error
    return None


@lru_cache(maxsize=256)
def _draw(strategy: st.SearchStrategy[Any], share: int, number: int) -> tuple[Any, ...]:
    """Return what a strategy draws with a seed; laws share it, because drawing takes longer than most of them."""
    drawn: list[Any] = []

    def keep(value: Any) -> None:
        drawn.append(value)

    relaxed = settings(
        max_examples=share,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(relaxed(given(strategy)(keep)))()
    return tuple(drawn)


def _copy_lists(value: Any) -> Any:
    """Return a value with copies of its lists: a broken plugin may change those that it receives."""
    if isinstance(value, tuple):
        return tuple(map(_copy_lists, value))
    return list(value) if isinstance(value, list) else value


def own_origin(subject: Subject, aim: Aim) -> Origin:
    """Return the origin of an aim's own answers."""
    return Origin(subject.key, aim.capabilities.api or aim.api, aim.model)


def mixed_histories(subject: Subject, **wanted: Any) -> Callable[[Aim], st.SearchStrategy[list[Message]]]:
    """Return the strategy of conversations whose answers are an aim's own or foreign; options as `conversations`."""
    options = tuple(wanted.items())
    return lambda aim: histories_of(
        (own_origin(subject, aim), FOREIGN), linked=aim.capabilities.supports_image_urls, options=options
    )


@cache
def histories_of(
    origins: tuple[Origin, ...], *, linked: bool, options: tuple[tuple[str, Any], ...] = ()
) -> st.SearchStrategy[list[Message]]:
    """Return `conversations` of these origins, the same object each time."""
    return conversations(origins, linked=linked, **dict(options))


@cache
def with_tools(histories: st.SearchStrategy[list[Message]]) -> st.SearchStrategy[Any]:
    """Return the strategy of conversations, each with tools; the same object each time."""
    return st.tuples(histories, tools())


def offered_tools(aim: Aim) -> list[ToolDefinition]:
    """Return the tool to offer if tools can be offered, else none."""
    return [READ] if aim.capabilities.supports_tools else []


def _run_law(law: Law, aim: Aim, value: Any) -> Exception | None:
    try:
        law(aim, value)
    except Exception as error:  # a law may be broken in any way
        return error
    return None


def _shrink(law: Law, aim: Aim, value: Any, error: Exception, seconds: float) -> tuple[Any, Exception]:
    """Remove messages and blocks while the law fails in the same way."""
    until = time.monotonic() + seconds
    going = True
    while going:
        going = False
        for candidate in _candidates(value):
            if time.monotonic() > until:
                return value, error
            found = _run_law(law, aim, candidate)
            if found is not None and _cause(found) == _cause(error):
                value, error, going = candidate, found, True
                break
    return value, error


def _cause(error: Exception) -> tuple[type, tuple[str, ...]]:
    """Return the type and the first words of an error, without what differs between examples: names and numbers."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"|\S*\d\S*", "", str(error)).split()
    return type(error), tuple(words[:6])


_SHORT = 12
"""Characters of a string that a person can read at once."""


def _candidates(value: Any) -> Iterator[Any]:
    """Yield smaller values: without a message, a block, the second half of a string, or a tool."""
    if isinstance(value, tuple):
        for at, part in enumerate(value):
            yield from ((*value[:at], smaller, *value[at + 1 :]) for smaller in _candidates(part))
    if not isinstance(value, list):
        return
    for at in range(len(value)):
        yield value[:at] + value[at + 1 :]
    for at, message in enumerate(value):
        if isinstance(message, Message) and len(message.content) > 1:
            for place in range(len(message.content)):
                kept = message.content[:place] + message.content[place + 1 :]
                yield [*value[:at], attrs.evolve(message, content=kept), *value[at + 1 :]]
    for at, message in enumerate(value):
        for place, block in enumerate(message.content if isinstance(message, Message) else ()):
            if isinstance(block, TextBlock) and len(block.text) > _SHORT:
                short = attrs.evolve(block, text=block.text[: len(block.text) // 2])
                kept = (*message.content[:place], short, *message.content[place + 1 :])
                yield [*value[:at], attrs.evolve(message, content=kept), *value[at + 1 :]]


def _sketch_history(value: Any) -> str:
    """Describe a conversation in one line: roles with their blocks, and the beginning of each text."""
    if isinstance(value, tuple):
        return " with ".join(map(_sketch_history, value))
    if not (isinstance(value, list) and value and all(isinstance(item, Message) for item in value)):
        return repr(value)[:300]
    lines = []
    for message in value:
        who = message.metadata.provider
        kinds = " ".join(map(_sketch_block, message.content))
        lines.append(f"{message.role}{f'@{who}' if who else ''}[{kinds}]")
    return " ".join(lines)


def _sketch_block(block: ContentBlock) -> str:
    if isinstance(block, (TextBlock, ThinkingBlock)):
        return f"{block.type} {block.text[:24]!r}"
    if isinstance(block, ToolUseBlock):
        return f"{block.type} {block.name}({block.input_json[:40]})"
    return block.type
