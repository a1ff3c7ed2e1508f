"""Rules on the prefix that providers cache: each turn's request begins with the previous one, unchanged."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.types import CacheHint, DocumentBlock, MediaSource, Message, TextBlock, assistant, system, user
from interlingua_contract import json_paths
from interlingua_contract.json_paths import (
    Path,
    format_path,
    leads_somewhere,
    leaves,
    nodes,
    strings,
    value_at,
    without,
)
from interlingua_contract.rule import RuleFinding, rule
from interlingua_contract.scenes import PICTURE, READ, LawBroken, check_law, mixed_histories, offered_tools
from interlingua_contract.strategies import request_points
from interlingua_contract.subject import Aim, Subject


@rule(
    "C04",
    "The elements of turn n are a prefix of those of turn n+1, and nothing before them changes.",
    source="format.md, Projection and losses (stable prefixes)",
    fix="""Write each message from that message alone: no field that depends on being last or first, no renumbering,
    no merging into an element that was sent before, nothing hoisted from the middle of a conversation. Fields
    beside the message array (system, tools, settings) must not depend on the length of the conversation; a setting
    that a service demands for what the conversation holds has a row in the ledger. If the rule does not find the
    array that grows, set quirks.elements.""",
    needs=("elements",),
)
def prefix_is_stable(subject: Subject) -> Iterator[RuleFinding]:
    """Over growing conversations with swaps, parallel calls and repairs."""
    paths = {aim.api: growing_path(subject, aim) for aim in subject.aims}
    for api, path in paths.items():
        if path is None:
            yield RuleFinding("no array of the body grows with the conversation; name it in quirks.elements", api)

    def law(aim: Aim, history: list[Message]) -> None:
        path = paths[aim.api]
        lists: dict[Path, list[Any]] = {other: [] for other in paths_beside(subject, aim)}
        earlier: list[Any] = []
        frame: str | None = None
        for point in request_points(history) if path is not None else ():
            request = subject.write(aim, point, [READ])
            body = json.loads(request.body)
            now = value_at(body, path or ())
            rest = _without_lists(without(body, path or ()), lists)
            kept = json.dumps(rest, sort_keys=True)
            if not _is_prefix(now, earlier):
                raise LawBroken(
                    f"element {_first_change(earlier, now)} of {format_path(path or ())} changed when the history grew:"
                    " `to_wire` must write a message alike whatever follows it"
                )
            told = any(row.path.startswith("options.") for row in request.losses)
            if frame is not None and kept != frame and not told:
                raise LawBroken(
                    f"{_first_difference(frame, kept)} changed when the history grew: only"
                    f" {format_path(path or ())} may grow with the conversation, or what quirks.elements names"
                )
            earlier, frame = now, frame if told else kept

    yield from check_law(subject, law, mixed_histories(subject, marked=True, cached=False))
    for aim in subject.aims:
        if aim.capabilities.supports_images:  # the element that is most often dropped once it is old
            try:
                law(aim, [user([TextBlock(text="mkt0q"), PICTURE]), *_small_talk(5)])
            except LawBroken as broken:
                yield RuleFinding(str(broken), aim.name)
        if aim.capabilities.supports_documents:  # of which a wire may keep a list beside the messages
            media_type = next(iter(aim.capabilities.accepted_document_media_types), "application/pdf")
            try:
                law(aim, [*_with_document("one", media_type), *_with_document("two", media_type)])
            except LawBroken as broken:
                yield RuleFinding(str(broken), aim.name)


def _with_document(words: str, media_type: str) -> list[Message]:
    source = MediaSource(kind="base64", data=base64.b64encode(words.encode()).decode())
    return [user([TextBlock(text="mkt0q"), DocumentBlock(source=source, media_type=media_type)]), assistant("mka0q")]


def _without_lists(body: Any, lists: dict[Path, list[Any]]) -> Any:
    """Return a body without the lists that grow beside the messages, which `lists` remembers; each may only grow."""
    for path, known in lists.items():
        if leads_somewhere(body, path):
            lists[path] = value_at(body, path)
            body = without(body, path)
        elif known:
            lists[path] = []
        if not _is_prefix(lists[path], known):
            raise LawBroken(f"{format_path(path)} changed when the history grew: it may only be added to")
    return body


def _first_difference(before: str, after: str) -> str:
    """Return the path of the first leaf that differs."""
    was, now = (dict(leaves(json.loads(text))) for text in (before, after))
    paths = [path for path in (*now, *was) if now.get(path, was) != was.get(path, now)]
    return format_path(paths[0]) if paths else "a field"


def _small_talk(turns: int) -> list[Message]:
    return [one for at in range(turns) for one in (assistant(f"mka{at}q"), user(f"mkt{at}q"))]


def growing_path(subject: Subject, aim: Aim) -> Path | None:
    """Return the path of the array that grows with the conversation, or None."""
    named = subject.quirks.elements.get(aim.api)
    if named is not None:
        return tuple(named.split()[0].split("."))
    short = subject.body(aim, [user("one")])
    return json_paths.find_growing_array(short, subject.body(aim, [user("one"), assistant("two"), user("three")]))


def paths_beside(subject: Subject, aim: Aim) -> list[Path]:
    """Return the paths of other arrays that grow with it, in the form of `quirks.elements`."""
    return [tuple(named.split(".")) for named in subject.quirks.elements.get(aim.api, "").split()[1:]]


def _is_prefix(now: list[Any], earlier: list[Any]) -> bool:
    """True when the earlier elements, members in order, are there again; the last one's lists may have grown.

    Consecutive messages of one role may share a turn, so the rule is about content elements.
    """
    if not earlier:
        return True
    last = len(earlier) - 1
    same = len(now) > last and json.dumps(now[:last]) == json.dumps(earlier[:last])
    return same and _has_grown(earlier[last], now[last])


def _has_grown(earlier: Any, now: Any) -> bool:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return list(earlier) == list(now) and all(_has_grown(earlier[key], now[key]) for key in earlier)
    if isinstance(earlier, list) and isinstance(now, list):
        return _is_prefix(now, earlier)
    return json.dumps(earlier) == json.dumps(now)


def _first_change(earlier: list[Any], now: list[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(earlier, now, strict=False)) if a != b), len(now))


_SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"stream": True}, {"max_tokens": 4321}, {"temperature": 0.7}, {"top_p": 0.5}, {"top_k": 7}, {"seed": 1},
    {"stop": ("mkstop",)}, {"user_id": "mkuser"}, {"tool_choice": "required"}, {"effort": "low"},
)  # fmt: skip


@rule(
    "C54",
    "Cache hints add markers and change nothing else; without a hint, or undeclared, there is no marker.",
    source="format.md, Blocks; format.md, Projection and losses",
    fix="""Write an element the same way with and without a hint, and add the wire's marker beside it, for at most
    `max_cache_hints` of them. If the service caches by itself and has no markers, declare `supports_prompt_caching`
    with `max_cache_hints=0`.""",
)
def cache_hints_only_mark(subject: Subject) -> Iterator[RuleFinding]:
    """Eight text blocks, with hints and without."""
    for aim in subject.aims:
        plain, one, many = (subject.body(aim, _with_hints(number)) for number in (0, 1, 8))
        most = aim.capabilities.max_cache_hints if aim.capabilities.supports_prompt_caching else 0
        added = [len(list(leaves(body))) - len(list(leaves(plain))) for body in (one, many)]
        words, *marked = ([leaf for _, leaf in strings(body)] for body in (plain, one, many))
        if not all(_is_subsequence(words, others) for others in marked):
            yield RuleFinding("a cache hint changes the text", aim.name)
        elif most and not added[0]:
            yield RuleFinding(f"{most} cache hints are declared, and a hint leaves no marker", aim.name)
        elif not most and (one != plain or many != plain):
            yield RuleFinding("no cache hints are declared, and a hint changes the body", aim.name)
        elif most and added[1] > added[0] * most:
            yield RuleFinding(f"8 hints leave more markers than the {most} that are declared", aim.name)


def _with_hints(most: int) -> list[Message]:
    texts = [TextBlock(text=f"mkt{at}q", cache=CacheHint() if at < most else None) for at in range(8)]
    history = [system("Be brief.")]
    for number, text in enumerate(texts):
        history += [user([text]), *([assistant(f"mka{number}q")] if number < 7 else [])]
    return history


def _is_subsequence(words: list[str], others: list[str]) -> bool:
    """True when the words occur in this order among the others."""
    left = iter(others)
    return all(word in left for word in words)


@rule(
    "C55",
    "Settings do not change the messages, and an unset option is not sent: no null, no empty field.",
    source="format.md, Projection and losses (stable prefixes)",
    fix="""Write the messages without reading the options: prompt caches match prefixes, and another temperature or
    streaming must not change the prefix. Omit a field that has no value: services reject `null` and empty lists.""",
)
def settings_change_no_message(subject: Subject) -> Iterator[RuleFinding]:
    """Each setting by itself against the request without it."""
    history = [system("mkt1q"), user("mkt2q"), assistant("mkt3q"), user("mkt4q")]
    for aim in subject.aims:
        yield from _check_empty_fields(subject, aim)
        path = growing_path(subject, aim)
        if path is None:
            continue
        offered = offered_tools(aim)
        plain = json.dumps(value_at(subject.body(aim, history, offered), path))
        for setting in _SETTINGS:
            try:
                body = subject.body(aim, history, offered, **setting)
            except CapabilityError:
                continue
            if json.dumps(value_at(body, path)) != plain:
                yield RuleFinding(f"{setting} changes {format_path(path)}", aim.name)


def _check_empty_fields(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    body = subject.body(aim, [user("q")])
    empty = [path for path, leaf in leaves(body) if leaf is None or leaf == ""]
    empty += [path for path, node in nodes(body) if not node and path]
    if empty:
        yield RuleFinding(f"{format_path(empty[0])} is sent with nothing in it", aim.name)
