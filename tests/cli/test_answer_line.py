"""What is said beside an answer has a line of its own on a terminal, and changes nothing of text that is piped."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from interlingua.types import StreamEvent, TextDelta, ThinkingDelta
from interlingua_cli.output import print_stream
from interlingua_cli.root import print_warnings
from interlingua_cli.state import State


class Screen(io.StringIO):
    """A file that notes what is written on `shown`, too, as two files share a terminal."""

    def __init__(self, shown: list[str], *, terminal: bool = True) -> None:
        super().__init__()
        self._shown = shown
        self._terminal = terminal

    def write(self, text: str) -> int:
        count = super().write(text)  # first: click tries with bytes
        self._shown.append(text)
        return count

    def isatty(self) -> bool:
        return self._terminal


def answer() -> Iterator[StreamEvent]:
    yield ThinkingDelta(text="hm", index=0)
    yield TextDelta(text="one ", index=1)
    yield TextDelta(text="two", index=1)
    logging.getLogger("interlingua").warning("the catalogue does not know x:y")


def test_a_warning_does_not_share_the_answers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(sys, "stdout", Screen(shown))
    monkeypatch.setattr(sys, "stderr", Screen(shown))
    with print_warnings(State()):
        print_stream(answer())

    lines = "".join(shown).replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()
    assert lines == ["hm", "one two", "warning: the catalogue does not know x:y"]


def test_piped_text_is_only_what_the_model_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, screen = Screen([], terminal=False), Screen([])
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.setattr(sys, "stderr", screen)

    def talk() -> Iterator[StreamEvent]:
        yield from answer()
        yield TextDelta(text=" three", index=1)

    with print_warnings(State()):
        print_stream(talk())

    assert pipe.getvalue() == "one two three\n"
