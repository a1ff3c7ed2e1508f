"""docs/reference/format.md names everything that the canonical values have, and its example is canonical."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import get_args

import attrs
import pytest

from interlingua.codec import decode_message, encode_message
from interlingua.types.blocks import ContentBlock
from interlingua.types.events import StreamEvent
from interlingua.types.messages import (
    CostParts,
    Message,
    MessageMetadata,
    MessageStatus,
    Provenance,
    Role,
    RoutingDecision,
    RoutingMode,
    StopReason,
    Usage,
)
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition, ToolKind
from tests.support import tree

PAGE = (tree.ROOT / "docs" / "reference" / "format.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
BLOCKS, EVENTS = get_args(ContentBlock), get_args(StreamEvent)
CLASSES = (*BLOCKS, *EVENTS, Message, MessageMetadata, Usage, CostParts, RoutingDecision, ToolDefinition,
           ModelCapabilities, RequestOptions)  # fmt: skip


def test_every_block_and_event_is_named() -> None:
    assert {cls.type for cls in (*BLOCKS, *EVENTS)} <= WORDS


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_is_named(cls: type) -> None:
    fields = {field.name for field in attrs.fields(cls) if field.init and not field.name.startswith("_")}

    assert fields <= WORDS


@pytest.mark.parametrize(
    "enum",
    [Role, MessageStatus, Provenance, StopReason, RoutingMode, SideEffects, ToolKind],
    ids=lambda enum: enum.__name__,
)
def test_every_word_of_an_enum_is_named(enum: type[StrEnum]) -> None:
    assert {member.value for member in enum} <= WORDS


def test_the_example_is_canonical() -> None:
    found = re.search(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    example = json.loads(found[1])

    assert encode_message(decode_message(example)) == example


def test_every_citation_leads_to_a_section() -> None:
    sections = "|".join([*re.findall(r"^## (.+)$", PAGE, re.MULTILINE), "Projection", "Section", r"Rules? [\dN{]"])
    cited = re.compile(rf"format\.md, (?!(?:{sections}))[A-Z][^\n]{{0,40}}")
    found = [
        f"{path.relative_to(tree.ROOT)}: {text}"
        for path in tree.tracked()
        if path.suffix in {".py", ".md", ".toml"} and path.name != "test_format_page.py"
        for text in cited.findall(path.read_text(encoding="utf-8"))
    ]

    assert not found, "docs/reference/format.md has no such section:\n" + "\n".join(found)
