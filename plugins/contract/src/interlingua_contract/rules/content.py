"""Rules on content in a request: exact text, media in order with type, title and detail, and cache markers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import attrs

from interlingua.types import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    Message,
    ModelCapabilities,
    Role,
    TextBlock,
    ToolResultBlock,
    assistant,
    system,
    tool_result,
    user,
)
from interlingua_contract.json_paths import Path, find_path, format_path, leaves, stands_after, strings, texts, value_at
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import READ, assistant_turn, call, offered_tools
from interlingua_contract.subject import Aim, Subject

AWKWARD = "line\r\nnext\x1b[0m e\u0301 \u202eabc\u202c \u200b \t\x7f <b>&amp; \\n \u2028 \U0001f469\u200d\U0001f4bb"
"""CRLF, a control character, a decomposed letter, right-to-left text, and signs that mean something elsewhere."""


@rule(
    "C71",
    "Every text reaches the wire exactly: line ends, control characters, decomposed and right-to-left letters.",
    source="format.md, Canonical JSON; hook to_wire",
    fix="""Write strings unchanged: no `strip`, no normal form of Unicode, no change of line ends, no escape but JSON's.
    A model that is asked to edit a file must see its bytes. If the service refuses a character, report a Loss.""",
)
def texts_arrive_exactly(subject: Subject) -> Iterator[RuleFinding]:
    """One awkward text in the system prompt, a question, an answer, a result, a description, a schema, an argument."""
    for aim in subject.aims:
        offered, wanted = _awkward_tools(aim), ["mkt1q", "mkt2q", "mkt3q"]
        history = [user(f"mkt1q {AWKWARD}"), assistant(f"mkt2q {AWKWARD}"), user(f"mkt3q {AWKWARD}")]
        if aim.capabilities.supports_system_prompt:
            history.insert(0, system(f"mkt0q {AWKWARD}"))
            wanted.append("mkt0q")
        if offered:
            made = attrs.evolve(call(1), input={"path": f"mka1q {AWKWARD}"})
            history += [assistant_turn([made], None), tool_result(made, f"mku1q {AWKWARD}"), user("mkt4q")]
            wanted += ["mka1q", "mku1q", "mkd1q", "mkd2q"]
        request = subject.write(aim, history, offered)
        there = texts(json.loads(request.body))
        for mark in wanted:
            if not any(f"{mark} {AWKWARD}" in leaf for leaf in there) and not request.losses:
                found = next((leaf for leaf in there if mark in leaf), "nothing")
                yield RuleFinding(f"{_place_name(mark)} is {found!r:.200}, expected {f'{mark} {AWKWARD}'!r}", aim.name)


def _awkward_tools(aim: Aim) -> list[Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": f"mkd2q {AWKWARD}"}}}
    made = attrs.evolve(READ, description=f"mkd1q {AWKWARD}", input_schema=schema)
    return [made] if aim.capabilities.supports_tools else []


def _place_name(mark: str) -> str:
    names = {"mkt0q": "the system prompt", "mka1q": "an argument", "mku1q": "a result"}
    return names.get(mark, "a description" if mark.startswith("mkd") else "a text")


@attrs.frozen
class _Medium:
    """One medium to send: how a block of it is made, and the capability with its media types."""

    kind: type
    flag: str
    accepted: str
    usual: tuple[str, ...]


_MEDIA = (
    _Medium(ImageBlock, "supports_images", "accepted_image_media_types", ("image/png", "image/jpeg")),
    _Medium(AudioBlock, "supports_audio", "accepted_audio_media_types", ("audio/wav", "audio/mpeg")),
    _Medium(DocumentBlock, "supports_documents", "accepted_document_media_types", ("application/pdf",)),
)
_OTHER_WORDS = {
    "jpeg": ("jpeg", "jpg"),
    "mpeg": ("mpeg", "mp3"),
    "plain": ("plain", "txt"),
    "markdown": ("markdown", "md"),
    "vnd.openxmlformats-officedocument.wordprocessingml.document": ("wordprocessingml.document", "docx"),
}


def _types_of(medium: _Medium, can: ModelCapabilities) -> tuple[str, ...]:
    """Return two media types of a medium that are sent in base64; one if no more are accepted."""
    accepted = getattr(can, medium.accepted) or medium.usual
    return tuple(
        [one for one in dict.fromkeys((*medium.usual, *accepted)) if one in accepted and _is_binary(one, medium)][:2]
    )


def _is_binary(media_type: str, medium: _Medium) -> bool:
    """Return False for a type that a wire may write as text."""
    return media_type in medium.usual or media_type.startswith("application/vnd.")


def _inline(medium: _Medium, media_type: str, words: str, **facts: Any) -> tuple[ContentBlock, str]:
    data = base64.b64encode(f"contract payload {words} recognised by its words".encode()).decode()
    made: ContentBlock = medium.kind(source=MediaSource(kind="base64", data=data), media_type=media_type, **facts)
    return made, data


@rule(
    "C72",
    "Several media stay in order, each with its own media type, between the same text blocks.",
    source="format.md, Blocks; hook to_wire",
    fix="""Write each block of a message at its place, with the data and the media type of that block: do not collect
    media at the front, do not write one type for all, do not reverse. If the wire takes media only beside the text,
    keep their order.""",
)
def media_keep_order_and_type(subject: Subject) -> Iterator[RuleFinding]:
    """Two media of different types in one message, among text blocks, and the first type in a later one."""
    for aim in subject.aims:
        for medium in _MEDIA:
            if not getattr(aim.capabilities, medium.flag):
                continue
            types = _types_of(medium, aim.capabilities)
            if not types or medium.kind.__name__.lower() in subject.quirks.dropped_kinds:
                continue
            yield from _check_media(subject, aim, medium, types)


def _check_media(subject: Subject, aim: Aim, medium: _Medium, types: tuple[str, ...]) -> Iterator[RuleFinding]:
    made = [_inline(medium, types[at % len(types)], f"number {at}") for at in (0, 1, 2)]
    (one, first), (two, second), (three, third) = made
    content = [TextBlock(text="mkt1q"), one, TextBlock(text="mkt2q"), two, TextBlock(text="mkt3q")]
    history = [user(content), assistant("mkt4q"), user([three, TextBlock(text="mkt5q")])]
    request = subject.write(aim, history)
    body = json.loads(request.body)
    what = f"{medium.kind.__name__} of {' and '.join(types)}"
    places = [find_path(body, data) for data in (first, second, third)]
    if None in places:
        if not request.losses:
            yield RuleFinding(
                f"{what}: of three only {sum(one is not None for one in places)} are in the body", aim.name
            )
        return
    if any(stands_after(a, b) for a, b in pairwise(places)):  # type: ignore[arg-type]
        yield RuleFinding(f"{what}: they are in another order than in the conversation", aim.name)
    sequence = [find_path(body, "mkt1q"), places[0], find_path(body, "mkt2q"), places[1], find_path(body, "mkt3q")]
    if any(one and other and stands_after(one, other) for one, other in pairwise(sequence)):
        yield RuleFinding(f"{what}: one is on the wrong side of a text block", aim.name)
    said = [_type_words(body, place, types) for place in places if place is not None]
    if any(said) and said != [{types[at % len(types)]} for at in (0, 1, 2)]:
        yield RuleFinding(f"{what}: they are sent as {[sorted(each) for each in said]}", aim.name)


def _type_words(body: Any, place: Path, types: tuple[str, ...]) -> set[str]:
    """Return the media types that the element of a payload names, in full or by the word after the slash."""
    leaf = str(value_at(body, place))
    words = [leaf[:120] if leaf.startswith("data:") else ""]
    for depth in range(1, 4):
        holder = value_at(body, place[:-depth]) if len(place) > depth else None
        if isinstance(holder, dict):
            words += [value for value in holder.values() if isinstance(value, str) and len(value) < 120]
        elif isinstance(holder, list):
            break
    text = " ".join(words)
    return {one for one in types if any(word in text for word in _words_of(one))}


def _words_of(media_type: str) -> tuple[str, ...]:
    word = media_type.partition("/")[2]
    return _OTHER_WORDS.get(word, (word,))


@rule(
    "C73",
    "A document's title and an image's detail reach the wire beside their data, or a loss reports that they do not.",
    source="format.md, Blocks",
    fix="""Write `DocumentBlock.title` to the wire's field for a title or a file name, and `ImageBlock.detail` to its
    field for the resolution, in the element of that block. If the wire has no such field, add the fact to
    quirks.dropped_kinds with the reason: `document title`, `image detail`, or `API image detail` for one API.""",
    needs=("dropped_kinds",),
)
def titles_and_details_arrive(subject: Subject) -> Iterator[RuleFinding]:
    """Two documents with titles; two images with different details."""
    for aim in subject.aims:
        can, excused = aim.capabilities, subject.quirks.dropped_kinds
        documents, images = _MEDIA[2], _MEDIA[0]
        if (
            can.supports_documents
            and not _is_excused(excused, aim, "document title")
            and (types := _types_of(documents, can))
        ):
            made = [_inline(documents, types[0], word, title=f"mk{word} file.pdf") for word in ("one", "two")]
            yield from _check_beside(subject, aim, made, ("mkone", "mktwo"), "the title of a document")
        if can.supports_images and not _is_excused(excused, aim, "image detail") and (types := _types_of(images, can)):
            made = [_inline(images, types[0], word, detail=word) for word in ("low", "high")]
            yield from _check_beside(subject, aim, made, ("low", "high"), "the detail of an image")


def _is_excused(excused: Mapping[str, str], aim: Aim, what: str) -> bool:
    return what in excused or f"{aim.api} {what}" in excused


def _check_beside(
    subject: Subject, aim: Aim, made: list[tuple[ContentBlock, str]], words: tuple[str, str], what: str
) -> Iterator[RuleFinding]:
    request = subject.write(aim, [user([TextBlock(text="q"), *[block for block, _ in made]])])
    body = json.loads(request.body)
    if any(loss.verdict != "dropped" or loss.block_type in ("image", "document") for loss in request.losses):
        return
    for (_, data), word in zip(made, words, strict=True):
        place = find_path(body, data)
        if place is None:
            return  # C72 reports it
        depth = max((at for at, key in enumerate(place, 1) if isinstance(key, int)), default=len(place) - 1)
        found = " ".join(str(leaf) for _, leaf in leaves(value_at(body, place[:depth])) if str(leaf) != data).lower()
        if word not in found:
            yield RuleFinding(f"{what} is not beside its data, and no loss reports it", aim.name)
            return


@rule(
    "C74",
    "A cache marker is at the block with the hint, after nothing else, and has the lifetime of the hint.",
    source="format.md, Blocks; hook to_wire",
    fix="""Put the marker of a hint into the element of the block that has it, or directly behind it: one block earlier
    and the block is never cached, one later and what changes is. Write `CacheHint.ttl` in the wire's form: `5m` and
    `1h` are not the same request unless a Loss reports it.""",
)
def cache_markers_are_in_place(subject: Subject) -> Iterator[RuleFinding]:
    """A hint on one block at a time, of every kind; each with both lifetimes."""
    for aim in subject.aims:
        if not (aim.capabilities.supports_prompt_caching and aim.capabilities.max_cache_hints):
            continue
        plain = subject.body(aim, _hinted(aim, ""), offered_tools(aim))
        for name in _hintable(aim):
            bodies = {}
            for ttl in (None, "5m", "1h"):
                request = subject.write(aim, _hinted(aim, name, ttl), offered_tools(aim))
                lost = bool(request.losses)
                bodies[ttl] = (json.loads(request.body), lost)
            body, lost = bodies[None]
            if not lost and (why := _misplaced(plain, body, name)):
                yield RuleFinding(f"a hint on {name}: {why}", aim.name)
            if body != plain and bodies["1h"][0] == bodies["5m"][0] and not bodies["1h"][1]:
                yield RuleFinding(f"a hint on {name}: for an hour it is written as for five minutes", aim.name)


_HINTS: Mapping[str, str] = {
    "the system prompt": "mkt0q", "the first text": "mkt1q", "the second text": "mkt2q", "an answer": "mkt3q",
    "a result": "mku1q", "the image": "", "the last text": "mkt5q",
}  # fmt: skip


def _hintable(aim: Aim) -> list[str]:
    can = aim.capabilities
    missing = {"the system prompt": not can.supports_system_prompt, "a result": not can.supports_tools}
    return [name for name in _HINTS if not missing.get(name, name == "the image" and not can.supports_images)]


def _hinted(aim: Aim, name: str, ttl: Any = None) -> list[Message]:
    def hint(place: str) -> CacheHint | None:
        return CacheHint(ttl=ttl) if place == name else None

    first = [
        TextBlock(text="mkt1q", cache=hint("the first text")),
        TextBlock(text="mkt2q", cache=hint("the second text")),
    ]
    content: list[ContentBlock] = [*first]
    if aim.capabilities.supports_images:
        types = _types_of(_MEDIA[0], aim.capabilities)
        content.append(_inline(_MEDIA[0], types[0] if types else "image/png", "cached", cache=hint("the image"))[0])
    content.append(TextBlock(text="mkt6q"))
    history = [user(content)]
    if aim.capabilities.supports_system_prompt:
        history.insert(
            0, Message(role=Role.SYSTEM, content=(TextBlock(text="mkt0q", cache=hint("the system prompt")),))
        )
    history.append(assistant_turn([TextBlock(text="mkt3q", cache=hint("an answer"))], None))
    if aim.capabilities.supports_tools:
        made = call(1)
        result = ToolResultBlock(tool_use_id=made.id, content="mku1q", cache=hint("a result"))
        answered = tool_result(made, "mku1q")
        history += [user("mkt7q"), assistant_turn([made], None), attrs.evolve(answered, content=(result,))]
    return [*history, user([TextBlock(text="mkt4q"), TextBlock(text="mkt5q", cache=hint("the last text"))])]


def _misplaced(plain: Any, body: Any, name: str) -> str:
    """Return what is wrong with the place of the marker: the first leaf that a body has and the plain one has not."""
    if body == plain:
        return ""  # C54 reports a hint without any marker; a wire may have none for this kind of block
    before = [leaf for _, leaf in leaves(plain)]
    there = list(leaves(body))
    at = next((at for at, (one, other) in enumerate(zip(there, before, strict=False)) if one[1] != other), len(before))
    if at >= len(there):
        return ""
    marker = there[at][0]
    mark = _HINTS[name] or base64.b64encode(b"contract payload cached").decode()[:20]
    place = find_path(body, mark)
    if place is None:
        return "the block is not in the body"
    element = _element(place)
    if marker[: len(element)] == element:
        inside = [leaf for path, leaf in strings(value_at(body, element)) if path != place[len(element) :]]
        shared = any(isinstance(leaf, str) and leaf.startswith("mk") for leaf in inside)
        return "the marker is in an element that holds another block too" if shared and len(element) < 3 else ""
    for depth, key in enumerate(
        place
    ):  # an element of the marker alone, directly behind the block, or behind the element that holds it
        behind = (*place[:depth], key + 1) if isinstance(key, int) else ()
        if behind and marker[: depth + 1] == behind and len(texts(value_at(body, behind))) <= 2:
            return "" if not any("mk" in leaf for leaf in texts(value_at(body, behind))) else _elsewhere(marker, place)
    return _elsewhere(marker, place)


def _elsewhere(marker: Path, place: Path) -> str:
    return f"the marker is at {format_path(marker)}, the block at {format_path(place)}"


def _element(place: Path) -> Path:
    """Return the path of the innermost element of a list that a place lies in; without one the place itself."""
    depth = max((at for at, key in enumerate(place, 1) if isinstance(key, int)), default=len(place))
    return place[:depth]
