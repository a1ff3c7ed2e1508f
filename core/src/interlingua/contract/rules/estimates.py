"""The rule on estimates: near enough to what the provider counted.

Never needs a tokenizer.
The rules room comes in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from interlingua.contract.rule import Finding, NotApplicable, rule
from interlingua.contract.rules.losses import warnings
from interlingua.contract.rules.returning import aim_of, answers
from interlingua.contract.subject import Subject
from interlingua.contract.trees import leaves
from interlingua.errors import PluginError
from interlingua.messages import user
from interlingua.options import AdapterOptions

_SETTINGS = {"model", "stream", "stream_options"}
_ENOUGH = 40
"""Below so many tokens what a template adds outweighs what was said."""


@rule(
    "C42",
    "The estimate of input tokens lies within the band that the quirks state, around what was counted.",
    source="seed 003 §7.1; DESIGN 4",
    fix="""Count characters by kind of text (about four to a token for English prose) plus a few tokens per message
    and tool, and images by their known cost; widen quirks.estimate_band only with measurements.""",
)
def estimates_are_near(subject: Subject) -> Iterator[Finding]:
    """The words of each recorded request, estimated, against the recorded count; more words are never fewer tokens."""
    low, high = subject.quirks.estimate_band
    seen = 0
    for exchange, message in answers(subject):
        usage = message.metadata.usage
        counted = usage.input_tokens if usage else None
        if usage and (usage.cached_input_tokens or usage.cache_creation_input_tokens):
            continue  # a cached prefix may have been shortened in the cassette
        if counted is None or counted < _ENOUGH or not isinstance(exchange.request, dict):
            continue
        if "tools" in exchange.request:
            continue  # what a template makes of definitions is not to be seen
        body = {name: value for name, value in exchange.request.items() if name not in _SETTINGS}
        if any(isinstance(leaf, str) and len(leaf) > 2000 for _, leaf in leaves(body)):
            continue  # inline media
        seen += 1
        aim = aim_of(subject, exchange)
        text = "\n".join(_words(body))
        try:
            with warnings():
                options = AdapterOptions(model=aim.model, api=aim.api)
                found = subject.provider.estimate_input_tokens([user(text)], [], options)
                more = subject.provider.estimate_input_tokens([user(text + " and more words" * 20)], [], options)
        except PluginError:
            yield Finding(why="estimate_input_tokens is not answered", where=aim.name)
            return
        if not low <= found / counted <= high:
            yield Finding(why=f"estimated {found}, counted {counted}", where=exchange.cassette)
        if more <= found:
            yield Finding(why=f"sixty more words are estimated at {more - found} tokens", where=exchange.cassette)
    if not seen:
        raise NotApplicable(f"no cassette reports {_ENOUGH} input tokens or more")


def _words(body: object) -> Iterator[str]:
    for path, leaf in leaves(body):
        if isinstance(leaf, str):
            yield leaf
        if "tools" in path and path and isinstance(path[-1], str):
            yield json.dumps(path[-1])
