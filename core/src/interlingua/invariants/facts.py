"""Rules on what is known about a message: origin, routing, usage, linkage, times and versions.

Never looks at another message, and is asked only about COMPLETE ones (seed 003 §5). The check module comes in.
Origin, routing and usage bind generated messages only: a hand-written or imported history is valid (DESIGN 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from interlingua.blocks import ToolResultBlock
from interlingua.invariants.violation import Violation, broken, rule
from interlingua.messages import SCHEMA_VERSION, Message, Provenance, Role

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def is_generated(message: Message) -> bool:
    """Say whether a model of ours made this message: said so, or has a model and is not said to be otherwise."""
    metadata = message.metadata
    if metadata.provenance is None:
        return message.role is Role.ASSISTANT and metadata.model is not None
    return metadata.provenance is Provenance.GENERATED and message.role is Role.ASSISTANT


@rule
def i09_generated_names_its_model(message: Message) -> Iterator[Violation]:
    """A generated message names model and provider, the model as `<provider>:<name>` (seed 003 §5, §6.2)."""
    if not is_generated(message):
        return
    this, metadata = i09_generated_names_its_model, message.metadata
    if not metadata.provider:
        yield broken(this, "metadata.provider", "a generated message does not say which provider made it")
    if not metadata.model:
        yield broken(this, "metadata.model", "a generated message does not say which model made it")
    elif metadata.provider and not metadata.model.startswith(f"{metadata.provider}:"):
        text = f"model {metadata.model!r} is not one of provider {metadata.provider!r}"
        yield broken(this, "metadata.model", text)


@rule
def i10_generated_has_routing(message: Message) -> Iterator[Violation]:
    """A generated message says why this model was picked, and that record echoes the model (seed 003 §4.3, §5)."""
    if not is_generated(message):
        return
    this, routing = i10_generated_has_routing, message.metadata.routing
    if routing is None:
        yield broken(this, "metadata.routing", "a generated message has no routing record", repairable=True)
    elif message.metadata.model and routing.chosen_model != message.metadata.model:
        text = f"{routing.chosen_model!r} is not the message's model {message.metadata.model!r}"
        yield broken(this, "metadata.routing.chosen_model", text, repairable=True)


@rule
def i11_generated_has_usage(message: Message) -> Iterator[Violation]:
    """A generated message has a usage, if only one in which nothing was reported (seed 003 §5)."""
    if is_generated(message) and message.metadata.usage is None:
        text = "a generated message has no usage"
        yield broken(i11_generated_has_usage, "metadata.usage", text, repairable=True)


@rule
def i12_cost_names_its_prices(message: Message) -> Iterator[Violation]:
    """A cost says which price table it was computed from (seed 003 §4.4, §6.3)."""
    usage = message.metadata.usage
    if usage is not None and usage.cost_usd is not None and usage.pricing_version is None:
        text = "a cost without its pricing_version"
        yield broken(i12_cost_names_its_prices, "metadata.usage.pricing_version", text, repairable=True)


@rule
def i13_tool_messages_name_their_call(message: Message) -> Iterator[Violation]:
    """A tool message's `parent_tool_use_id` is set, and is the call that its result answers (seed 003 §4.3, §5)."""
    if message.role is not Role.TOOL:
        return
    this, parent = i13_tool_messages_name_their_call, message.metadata.parent_tool_use_id
    if parent is None:
        yield broken(this, "metadata.parent_tool_use_id", "a tool message does not say which call it answers")
        return
    for index, block in enumerate(message.content):
        if type(block) is ToolResultBlock and block.tool_use_id != parent:
            text = f"answers {block.tool_use_id!r}, the message says {parent!r}"
            yield broken(this, f"content[{index}].tool_use_id", text)


@rule
def i14_generated_ids_are_ulids(message: Message) -> Iterator[Violation]:
    """The id of a generated message is a ULID, since core minted it (seed 003 §6.1). No wire sees it."""
    if is_generated(message) and not ULID.fullmatch(message.id):
        yield broken(i14_generated_ids_are_ulids, "id", f"{message.id!r} is not a ULID", repairable=True)


@rule
def i15_created_at_is_utc(message: Message) -> Iterator[Violation]:
    """`created_at` is a UTC time (seed 003 §4.1)."""
    offset = message.created_at.utcoffset()
    if offset != timedelta(0):
        text = "has no time zone" if offset is None else f"is {offset} from UTC"
        yield broken(i15_created_at_is_utc, "created_at", text)


@rule
def i16_schema_version_is_known(message: Message) -> Iterator[Violation]:
    """`schema_version` is one this code knows; a newer one is tolerated (seed 003 §4.1, §10)."""
    version = message.schema_version
    if not 1 <= version <= SCHEMA_VERSION:
        text = f"version {version}; this code knows 1 to {SCHEMA_VERSION}"
        yield broken(i16_schema_version_is_known, "schema_version", text, repairable=version > SCHEMA_VERSION)
