"""A history carried from one side to another and back, and all that is checked on the way.

Never chooses a history or a model (the grid does) and never prints.
The grid comes in.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.errors import InterlinguaError
from interlingua.plugins.wire import Loss
from interlingua.types.blocks import ContentBlock, ThinkingBlock
from interlingua_contract.matrix.cell import Run
from interlingua_contract.matrix.script import Script
from interlingua_contract.matrix.speaker import Speaker
from interlingua_contract.matrix.written_request import WrittenRequest

_LONG = 100


class Crossing:
    """A history on its way: begun on `a`, swapped to `b`, and back."""

    def __init__(self, history: str, begun: Script, a: Speaker) -> None:
        self.history, self.begun, self.a = history, begun, a
        self.unswapped = WrittenRequest(a, begun.messages)
        self.last = WrittenRequest(a, begun.messages[: begun.asked[-1]])

    def run(self, b: Speaker) -> Run:
        """Carry it across and back."""
        script = self.begun.fork()
        swapped = WrittenRequest(b, script.messages)
        call = script.call(b)
        said: list[ContentBlock] = [script.text("I go on."), *([call] if b.calls else [])]
        if b.signs:
            said.insert(0, ThinkingBlock(text=script.mark("I think."), signature=script.opaque("signature")))
        script.answer(b, *said)
        if b.calls:
            script.result(call)
        else:
            script.user()
        again = WrittenRequest(b, script.messages)
        script.answer(b, script.text("So it is."))
        script.user()
        back = WrittenRequest(self.a, script.messages)
        losses: tuple[tuple[Loss, ...], ...] = ((), ())
        looked_at = [self.unswapped, swapped, back]
        if len(again.messages) < _LONG:  # its two messages more are the same in every history
            looked_at.append(again)
        findings = list(dict.fromkeys(finding for asked in looked_at for finding in asked.findings))
        try:
            losses = swapped.request.losses, back.request.losses
            findings += [*self._prefixes(swapped, again, back), *self._own_ids(back)]
        except InterlinguaError as error:
            findings = findings or [f"refused: {type(error).__name__}: {error}"]
        models = (self.a.model, b.model)
        return Run(history=self.history, models=models, losses=losses[0], back=losses[1], findings=tuple(findings))

    def _prefixes(self, swapped: WrittenRequest, again: WrittenRequest, back: WrittenRequest) -> Iterator[str]:
        for what, early, late in (
            ("its own next request", self.last, self.unswapped),
            ("the request after the return", self.unswapped, back),
            ("the next request to the other side", swapped, again),
        ):
            if not early.messages:
                continue
            if not early.elements and early.speaker.side.grown_path is None:
                yield f"{early.speaker.side.name}: no array of the body grows with the conversation"
            elif not _begins(late.elements, early.elements):
                yield f"{early.speaker.side.name}: its request is no element prefix of {what}"
            elif early.frame != late.frame:
                yield f"{early.speaker.side.name}: a field beside the conversation changed in {what}"

    def _own_ids(self, back: WrittenRequest) -> Iterator[str]:
        for place, wire in self.unswapped.call_ids.items():
            issued = self.begun.messages[place[0]].content[place[1]].provider_id  # type: ignore[union-attr]
            if back.call_ids[place] != wire or (issued is not None and wire != issued):
                yield f"{self.a.side.name}: the call it named {issued!r} comes back as {back.call_ids[place]!r}"


def _begins(late: list[str], early: list[str]) -> bool:
    """Tell whether elements stand at the beginning of others, byte by byte; the last one's own list may have grown."""
    if late[: len(early)] == early:
        return True
    at = len(early) - 1
    if late[:at] != early[:at] or len(late) <= at:
        return False
    end = len(early[at].rstrip("]}"))
    lists = [place for place in range(end, len(early[at])) if early[at][place] == "]"]
    return any(late[at].startswith(early[at][:place] + ",") for place in lists)
