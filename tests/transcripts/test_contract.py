"""The laws of systems: ours keep them, and a system that breaks one is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import interlingua
from interlingua.types import Message, Role, TextBlock
from interlingua_transcripts import Conversation, MessageGroup, ReadPlan, SessionFormat, Written, read_transcript
from interlingua_transcripts.contract import check_format
from interlingua_transcripts.formats.pi import Pi
from interlingua_transcripts.imported import EPOCH, ImportedIds
from interlingua_transcripts.system import installed_formats
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.samples import needs_samples, samples

ACME = b'{"acme":"user","said":"Hi"}\n{"acme":"assistant","said":"Hello"}\n'


class Acme(SessionFormat):
    """A system of a few lines, as a third party would write it."""

    name = "acme"
    title = "Acme"
    lacks = frozenset(
        {"thinking block", "call", "result", "image", "model name", "token count", "stop reason", "time", "session id"}
    )

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
    for module in ("contract", "files", "system"):
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


class _Changed(Pi):
    """Write entries of pi with a fault."""

    def __init__(self, change: Callable[[dict[str, Any]], object]) -> None:
        self._change = change

    def write(self, conversation: Conversation) -> Iterator[Written]:
        for one in super().write(conversation):
            value = json.loads(json.dumps(one.value))
            self._change(value)
            yield Written(value, one.messages)


def _parts(value: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = value.get("message", {}).get("content")
    return [part for part in content if part["type"] == kind] if isinstance(content, list) else []


def _changes_parts(kind: str, name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def made(value: dict[str, Any]) -> None:
        for part in _parts(value, kind):
            part[name] = change(part[name])

    return made


def _keeps_one_text(value: dict[str, Any]) -> None:
    for part in _parts(value, "text")[1:]:
        value["message"]["content"].remove(part)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_changes_parts("text", "text", str.strip), "tool result toolu_01"),
        (_changes_parts("text", "text", lambda text: text[:2_000]), "tool result toolu_01"),
        (_changes_parts("toolCall", "arguments",
                        lambda given: {name: str(one) for name, one in given.items()}), "'lines': '"),
        (_changes_parts("image", "mimeType", lambda _: "image/jpeg"), "user image image/png was written"),
        (_keeps_one_text, "tool result toolu_01"),
        (lambda value: value.update(timestamp="2026-02-01T10:00:00Z") or value.get("message", {}).update(timestamp=0),
         "system time 1970"),
        (lambda value: value.get("message", {}).pop("stopReason", None), "stop reason tool_use was written"),
        (lambda value: value.update(id="s") if value["type"] == "session" else None, "is read as s"),
        (lambda value: [part.pop("name") for part in _parts(value, "toolCall")], "entry 4: not understood"),
    ],
)  # fmt: skip
def test_a_fault_of_a_writer_is_named(change: Callable[[dict[str, Any]], object], fault: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_format(_Changed(change), [])
    assert fault in str(caught.value)


def test_a_format_that_takes_files_of_others_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy(Acme):
        def detect(self, head: Sequence[Any]) -> str | None:
            return "1" if isinstance(head[0], dict) else None

    with pytest.raises(AssertionError, match="a file of claude-code is recognised as acme"):
        check_format(_install(monkeypatch, Greedy()), [ACME])


def test_a_file_of_another_system_is_named() -> None:
    with pytest.raises(AssertionError, match="recognised as pi, not as codex"):
        check_format(installed_formats()["codex"], [own_file(installed_formats()["pi"])])
