"""The rule on estimates: near enough to what the provider counted.

Never needs a tokenizer.
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from interlingua.errors import PluginError
from interlingua.plugins import estimate_input_tokens
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua_contract.generated import Broken, holds, own
from interlingua_contract.json_paths import leaves
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.losses import warnings
from interlingua_contract.rules.returning import aim_of, answers
from interlingua_contract.scenes import FOREIGN, READ, answered, call, media_scenes
from interlingua_contract.strategies.conversations import conversations
from interlingua_contract.subject import Aim, Subject

_SETTINGS = {"model", "stream", "stream_options", "include"}


_MEDIA = ("data:", "http:", "https:", "file:")


_PROSE = "Every call is answered right after it, in the order of the calls, whatever order they came in. "


_ENOUGH = 30


"""Below so many tokens what a template adds outweighs what was said."""


@rule(
    "C42",
    "The estimate of input tokens lies within the band that the quirks state, around what was counted.",
    source="seed 003 §7.1; DESIGN 4",
    fix="""Count characters by kind of text (about four to a token for English prose) plus a few tokens per message and
    tool, and images by their known cost; widen quirks.estimate_band only with measurements.""",
)
def estimates_are_near(subject: Subject) -> Iterator[Finding]:
    """English prose, at four characters a token; more of it, and tools; then the words of each recorded request."""
    for aim in subject.aims[:1]:
        try:
            yield from _grows(subject, aim)
        except PluginError:
            yield Finding(why="estimate_input_tokens is not answered, or fails", where=aim.name)
            return
    yield from _any_history(subject)
    low, high = subject.quirks.estimate_band
    for exchange, message in answers(subject):
        usage = message.metadata.usage
        counted = usage.input_tokens if usage else None
        if usage is None or counted is None or counted < _ENOUGH or not isinstance(exchange.request, dict):
            continue
        if usage.cached_input_tokens or usage.cache_creation_input_tokens:
            continue  # a cached prefix may have been shortened in the cassette
        body = {name: value for name, value in exchange.request.items() if name not in _SETTINGS}
        words = [leaf for _, leaf in leaves(body) if isinstance(leaf, str)]
        if "tools" in body or any(len(leaf) > 2000 or leaf.startswith(_MEDIA) for leaf in words):
            continue  # what a template makes of tools, or a model of a picture, is not to be seen
        found = _estimate(subject, aim_of(subject, exchange), "\n".join(words))
        if not low <= found / counted <= high:
            yield Finding(why=f"estimated {found}, counted {counted}", where=exchange.cassette)


def _grows(subject: Subject, aim: Aim) -> Iterator[Finding]:
    short, long = (_estimate(subject, aim, _PROSE * times) for times in (20, 40))
    low, high = subject.quirks.estimate_band
    expected = len(_PROSE) * 20 / 4
    if not low <= (long - short) / expected <= high:
        why = f"{len(_PROSE) * 20} more characters of prose are estimated at {long - short} tokens"
        yield Finding(why=why, where=aim.name)
    if aim.capabilities.supports_tools and _estimate(subject, aim, _PROSE, tools=1) <= _estimate(subject, aim, _PROSE):
        yield Finding(why="a tool adds nothing to the estimate", where=aim.name)
    for what, history in _places(aim).items():
        with warnings():
            found = [
                estimate_input_tokens(subject.provider, told, [], AdapterOptions(model=aim.model, api=aim.api))
                for told in (history(""), history(_PROSE * 20))
            ]
        if not low <= (found[1] - found[0]) / expected <= high:
            why = f"{len(_PROSE) * 20} characters of {what} are estimated at {found[1] - found[0]} tokens"
            yield Finding(why=why, where=aim.name)


def _places(aim: Aim) -> dict[str, Callable[[str], list[Message]]]:
    """Where words may stand, each in a history that takes some more of them there."""
    asked = call(1)
    made: dict[str, Callable[[str], list[Message]]] = {
        "an answer": lambda text: [user("q"), answered([TextBlock(text=f"a {text}")], None), user("n")]
    }
    if aim.capabilities.supports_system_prompt:
        made["a system prompt"] = lambda text: [system(f"s {text}"), user("q")]
    if aim.capabilities.supports_tools:
        made["a result"] = lambda text: [user("q"), answered([asked], None), tool_result(asked, f"r {text}")]
        made["arguments"] = lambda text: [
            user("q"), answered([attrs.evolve(asked, input={"path": f"p {text}"})], None), tool_result(asked, "r")
        ]  # fmt: skip
    return made


def _any_history(subject: Subject) -> Iterator[Finding]:
    def law(aim: Aim, history: list[Message]) -> None:
        options = AdapterOptions(model=aim.model, api=aim.api)
        found = estimate_input_tokens(subject.provider, history, [READ], options)
        if type(found) is not int or found < 0:
            raise Broken(f"the estimate is {found!r}")

    for aim in subject.aims:
        for scene in media_scenes():
            try:
                law(aim, list(scene.history))
            except Exception as error:  # a hook may fail in any way
                yield Finding(why=f"{scene.name}: {type(error).__name__}: {error}", where=aim.name)
    yield from holds(subject, law, lambda aim: conversations((own(subject, aim), FOREIGN), turns=2), share=3)


def _estimate(subject: Subject, aim: Aim, text: str, tools: int = 0) -> int:
    with warnings():
        options = AdapterOptions(model=aim.model, api=aim.api)
        return estimate_input_tokens(subject.provider, [user(text)], [READ] * tools, options)
