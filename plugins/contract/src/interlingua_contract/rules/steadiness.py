"""Rules on what stays as it is: options and cache hints leave the conversation alone, and nothing unasked is said.

Never asks whether an option is said (options do).
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.types.blocks import CacheHint, TextBlock
from interlingua.types.factories import assistant, system, user
from interlingua.types.messages import Message
from interlingua_contract.json_paths import at, leaves, nodes, shown
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.losses import warnings
from interlingua_contract.rules.prefix import grown_path
from interlingua_contract.scenes import READ
from interlingua_contract.subject import Aim, Subject

_SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"stream": True}, {"max_tokens": 4321}, {"temperature": 0.7}, {"top_p": 0.5}, {"top_k": 7}, {"seed": 1},
    {"stop": ("mkstop",)}, {"user_id": "mkuser"}, {"tool_choice": "required"}, {"effort": "low"},
)  # fmt: skip


@rule(
    "C54",
    "Cache hints add markers and change nothing else; without a hint there is no marker, and none where undeclared.",
    source="DESIGN 8; REGRESSIONS 33",
    fix="""Write an element in the same way with and without a hint and put the wire's marker beside it, for at most
    `max_cache_hints` of them. Declare `supports_prompt_caching` with `max_cache_hints=0` where the wire caches by
    itself and has no markers.""",
)
def cache_hints_only_mark(subject: Subject) -> Iterator[Finding]:
    """Eight texts, with hints and without."""
    for aim in subject.aims:
        plain, one, many = (subject.body(aim, _hinted(number)) for number in (0, 1, 8))
        most = aim.capabilities.max_cache_hints if aim.capabilities.supports_prompt_caching else 0
        added = [len(list(leaves(body))) - len(list(leaves(plain))) for body in (one, many)]
        if not _within(_strings(plain), _strings(one)) or not _within(_strings(plain), _strings(many)):
            yield Finding(why="with a cache hint the words are other words", where=aim.name)
        elif most and not added[0]:
            yield Finding(why=f"{most} cache hints are declared, and a hint leaves no marker", where=aim.name)
        elif not most and (one != plain or many != plain):
            yield Finding(why="no cache hints are declared, and a hint changes the body", where=aim.name)
        elif most and added[1] > added[0] * most:
            yield Finding(why=f"8 hints leave more markers than the {most} that are declared", where=aim.name)


def _hinted(most: int) -> list[Message]:
    texts = [TextBlock(text=f"mkt{at}q", cache=CacheHint() if at < most else None) for at in range(8)]
    history = [system("Be brief.")]
    for number, text in enumerate(texts):
        history += [user([text]), *([assistant(f"mka{number}q")] if number < 7 else [])]
    return history


def _strings(body: Any) -> list[str]:
    return [leaf for _, leaf in leaves(body) if isinstance(leaf, str)]


def _within(words: list[str], others: list[str]) -> bool:
    """True when the words come in this order among the others."""
    left = iter(others)
    return all(word in left for word in words)


@rule(
    "C55",
    "Settings leave the conversation alone, and what nobody asked for is not said: no null, no empty field.",
    source="DESIGN 8; REGRESSIONS 12, 32",
    fix="""Write the messages without a look at the options: caches are prefix caches, and another temperature or the
    wish for a stream must not cost the prefix. Leave a field out where there is nothing to say: services refuse
    `null` and empty lists.""",
)
def settings_change_no_message(subject: Subject) -> Iterator[Finding]:
    """Each setting by itself against the request without it."""
    history = [system("mkt1q"), user("mkt2q"), assistant("mkt3q"), user("mkt4q")]
    for aim in subject.aims:
        yield from _unasked(subject, aim)
        path = grown_path(subject, aim)
        if path is None:
            continue
        offered = [READ] if aim.capabilities.supports_tools else []
        plain = json.dumps(at(subject.body(aim, history, offered), path))
        for asked in _SETTINGS:
            try:
                with warnings():
                    body = subject.body(aim, history, offered, **asked)
            except CapabilityError:
                continue
            if json.dumps(at(body, path)) != plain:
                yield Finding(why=f"{asked} changes {shown(path)}", where=aim.name)


def _unasked(subject: Subject, aim: Aim) -> Iterator[Finding]:
    body = subject.body(aim, [user("q")])
    empty = [path for path, leaf in leaves(body) if leaf is None or leaf == ""]
    empty += [path for path, node in nodes(body) if not node and path]
    if empty:
        yield Finding(why=f"{shown(empty[0])} is sent with nothing in it", where=aim.name)
