"""The product's readers against second readers: missing, doubled, wrong role, wrong order, over every sample.

`python -m tests.transcripts.test_second_readers` prints the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytest

from interlingua.types import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_transcripts import SessionFormat, detect_format, read_transcript
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.samples import needs_samples, samples
from tests.transcripts.second_readers import READERS, Item
from tests.transcripts.test_documents import FILES


class Difference(NamedTuple):
    """How the readings of one file differ, in items."""

    items: int
    missing: Sequence[Item]
    doubled: Sequence[Item]
    role: Sequence[Item]
    order: int

    @property
    def count(self) -> int:
        """The sum."""
        return len(self.missing) + len(self.doubled) + len(self.role) + self.order


def items_of(messages: Iterable[Message]) -> Iterator[Item]:
    """Yield the items of canonical messages."""
    for message in messages:
        role = message.role.value
        for block in message.content:
            if isinstance(block, TextBlock):
                yield Item(role, "text", block.text)
            elif isinstance(block, ThinkingBlock):
                yield Item(role, "thinking", block.text)
            elif isinstance(block, ToolUseBlock):
                yield Item(role, "call", f"{block.name} {json.dumps(dict(block.input), sort_keys=True)}")
            elif isinstance(block, ToolResultBlock):
                texts = [part.text for part in block.content if isinstance(part, TextBlock)]
                yield Item(role, "result", "\n".join(texts))


def compare(expected: Sequence[Item], found: Sequence[Item]) -> Difference:
    """Compare two readings: items by kind and value, then the roles and the order of those that both have."""
    wanted = [item for item in expected if item.kind != "within" and item.value.strip()]
    within = [item for item in expected if item.kind == "within" and item.value.strip()]
    have = [item for item in found if item.value.strip()]
    left = Counter((item.kind, item.value) for item in have)
    lacking = Counter((item.kind, item.value) for item in wanted) - left
    extra = left - Counter((item.kind, item.value) for item in wanted)
    roles = Counter(wanted) - Counter(have)
    misread = [item for item in roles if (item.kind, item.value) not in lacking]
    missing = [Item("", *key) for key in lacking.elements()]
    doubled = [Item("", *key) for key in extra.elements()]
    for item in within:  # inside a longer text
        at = next((at for at, one in enumerate(doubled) if item.value in one.value), None)
        doubled.pop(at) if at is not None else missing.append(item)
    both = Counter((item.kind, item.value) for item in wanted) & left
    first, second = (_kept(items, Counter(both)) for items in (wanted, have))
    order = sum(one != other for one, other in zip(first, second, strict=True))
    return Difference(len(wanted) + len(within), missing, doubled, misread, order)


def _kept(items: Sequence[Item], both: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    kept = []
    for item in items:
        key = (item.kind, item.value)
        if both[key] > 0:
            both[key] -= 1
            kept.append(key)
    return kept


def differences(name: str) -> Iterator[tuple[str, Difference]]:
    """Yield each sample of a format with the difference of its two readings."""
    for sample, data in samples(name):
        found = detect_format(data)
        if found is not None and found[0].name != "qwen-code":  # two among Claude Code's
            yield sample["id"], compare(READERS[name](data), list(items_of(read_transcript(data).messages)))


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_both_readers_agree_on_our_own_files(system: SessionFormat) -> None:
    data = own_file(system)
    found = compare(READERS[system.name](data), list(items_of(read_transcript(data).messages)))
    assert found.count == 0, found
    assert found.items >= 12


@pytest.mark.parametrize("name", FILES)
def test_both_readers_agree_on_the_documents_examples(name: str) -> None:
    found = compare(READERS[name.partition(",")[0]](FILES[name]), list(items_of(read_transcript(FILES[name]).messages)))
    assert found.count == 0, found
    assert found.items >= 4


SAMPLED = tuple(name for name in READERS if name not in ("attocode", "openclaw-lines", "operator-use", "wolo"))


# format -> what differs at most (missing, doubled, wrong role, wrong order), and why the product is right
REASONS = {
    "claude-code": ((37, 0, 0, 0), "abandoned branches; fixtures of invented lines; results that no call names"),
    "codex": ((0, 0, 2, 0), "a fixture's role `function`, which the program never writes: a user's text"),
    "mini-swe-agent": ((0, 0, 3, 0), "the program's role `exit`, which no model has: a user's text"),
    "openclaw": ((0, 13, 0, 0), "fixtures whose parents are ids of calls: the entry before is taken, with a note"),
    "pi": (
        (1, 62, 0, 0),
        "a fixture's result without a call's id; a cut line, over which the tree is continued with a note",
    ),
}


@needs_samples
@pytest.mark.parametrize("name", SAMPLED)
def test_both_readers_agree_on_every_sample(name: str) -> None:
    found = [one for _, one in differences(name)]
    most, why = REASONS.get(name, ((0, 0, 0, 0), "nothing differs"))
    counts = (
        sum(len(one.missing) for one in found),
        sum(len(one.doubled) for one in found),
        sum(len(one.role) for one in found),
        sum(one.order for one in found),
    )
    assert sum(one.items for one in found) >= 50
    assert all(count <= limit for count, limit in zip(counts, most, strict=True)), (counts, why)


def _print_table() -> None:
    print("| format | files | items | missing | doubled | wrong role | wrong order |\n|---|---|---|---|---|---|---|")
    for name in SAMPLED:
        found = [one for _, one in differences(name)]
        counts = [len(found), sum(one.items for one in found), sum(len(one.missing) for one in found)]
        counts += [sum(len(one.doubled) for one in found), sum(len(one.role) for one in found)]
        print(f"| {name} | {' | '.join(f'{count:,}' for count in [*counts, sum(one.order for one in found)])} |")


if __name__ == "__main__":
    _print_table()
