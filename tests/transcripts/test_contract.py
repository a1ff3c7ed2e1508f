"""The laws of systems: ours keep them, and a system that breaks one is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import interlingua
from interlingua.types import Message, Role, TextBlock
from interlingua_transcripts import Conversation, MessageGroup, ReadPlan, SessionFormat, Written, read_transcript
from interlingua_transcripts.contract import check_format
from interlingua_transcripts.imported import EPOCH, ImportedIds
from interlingua_transcripts.system import installed_formats
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.samples import needs_samples, samples

ACME = b'{"acme":"user","said":"Hi"}\n{"acme":"assistant","said":"Hello"}\n'


class Acme(SessionFormat):
    """A system of a few lines, as a third party would write it."""

    name = "acme"
    title = "Acme"
    lacks = frozenset({"thinking block", "call", "result", "image", "model name", "token count"})

    def detect(self, head: Sequence[Any]) -> str | None:
        return "1" if isinstance(head[0], dict) and "acme" in head[0] else None

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        said = [at for at, value in enumerate(values) if isinstance(value, dict) and "acme" in value]
        return ReadPlan(session_id="s", groups=[MessageGroup(str(at), (at,)) for at in said])

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        role, text = Role(values[0]["acme"]), values[0]["said"]
        return [
            Message(id=ids.message(EPOCH), session_id="s", role=role, content=[TextBlock(text=text)], created_at=EPOCH)
        ]

    def write(self, conversation: Conversation) -> Iterator[Written]:
        for message in conversation.messages:
            yield Written({"acme": message.role.value, "said": message.text}, (message.id,))


def _install(monkeypatch: pytest.MonkeyPatch, system: SessionFormat) -> SessionFormat:
    known = {"acme": system, **installed_formats()}
    for module in ("files", "system"):
        monkeypatch.setattr(f"interlingua_transcripts.{module}.installed_formats", lambda: known)
    return system


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_our_systems_keep_the_laws(system: SessionFormat) -> None:
    check_format(system, [own_file(system)])


@needs_samples
@pytest.mark.parametrize("name", ["pi", "claude-code", "codex", "atif"])
def test_our_systems_keep_the_laws_with_real_files(name: str) -> None:
    system = installed_formats()[name]
    found = [data for sample, data in samples(name) if sample["kind"] == "session" and len(data) < 100_000]
    files = [data for data in found if read_transcript(data, system).messages]
    check_format(system, files[:8])


def test_a_third_partys_system_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    check_format(_install(monkeypatch, Acme()), [ACME])


class _Forgets(Acme):
    def split(self, data: bytes) -> list[bytes]:
        return super().split(data)[:1]


class _Stumbles(Acme):
    def plan(self, values: Sequence[Any]) -> ReadPlan:
        groups = [
            MessageGroup(str(at), (at,)) for at, value in enumerate(values) if value and value.get("acme", "user")
        ]
        return ReadPlan(session_id="s", groups=groups[:2] if values[-1] and "acme" in values[-1] else groups[:1])


class _Guesses(Acme):
    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        return [interlingua.user(values[0]["said"])]


class _Cuts(Acme):
    def split(self, data: bytes) -> list[bytes]:
        return super().split(data[: data.rfind(b"\n") + 1])


class _Misses(Acme):
    def detect(self, head: Sequence[Any]) -> str | None:
        return "1" if isinstance(head[0], dict) and "acme" in head[0] else None

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        first = {**values[0], "said": values[0]["said"].split()[0]}
        return super().to_messages(group, [first], plan, ids)


class _StaysBehind(Acme):
    def write(self, conversation: Conversation) -> Iterator[Written]:
        return iter(list(super().write(conversation))[:-1])


@pytest.mark.parametrize(
    ("system", "fault"),
    [
        (_Forgets(), "its entries put together are another file"),
        (_Stumbles(), "at its end the file produces another conversation"),
        (_StaysBehind(), "a question added after message 2 of 2 produces another conversation"),
        (_Guesses(), "derive ids from the file"),
        (_Cuts(), "with half of a line at its end its entries put together are another file"),
        (_Misses(), "no message has the value of said"),
    ],
)
def test_a_broken_law_is_named(system: SessionFormat, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError) as caught:
        check_format(_install(monkeypatch, system), [ACME.replace(b"Hello", b"Hello there")])
    assert fault in str(caught.value)


def test_a_file_of_another_system_is_named() -> None:
    with pytest.raises(AssertionError, match="recognised as pi, not as codex"):
        check_format(installed_formats()["codex"], [own_file(installed_formats()["pi"])])
