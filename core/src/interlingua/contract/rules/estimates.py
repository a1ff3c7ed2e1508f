"""The rule on estimates: near enough to what the provider counted.

Never needs a tokenizer.
The rules room comes in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.contract.rule import Finding, rule
from interlingua.contract.rules.losses import warnings
from interlingua.contract.rules.returning import aim_of, answers
from interlingua.contract.scenes import READ
from interlingua.contract.subject import Aim, Subject
from interlingua.errors import PluginError
from interlingua.messages import user
from interlingua.options import AdapterOptions
from interlingua.trees import leaves

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
            yield Finding(why="estimate_input_tokens is not answered", where=aim.name)
            return
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


def _estimate(subject: Subject, aim: Aim, text: str, tools: int = 0) -> int:
    with warnings():
        options = AdapterOptions(model=aim.model, api=aim.api)
        return subject.provider.estimate_input_tokens([user(text)], [READ] * tools, options)
