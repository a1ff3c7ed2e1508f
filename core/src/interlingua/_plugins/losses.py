"""The loss ledger: one row for each thing that a target did not receive unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import attrs

from interlingua.types.options import Effort

Verdict = Literal["rewritten", "dropped", "blocked"]
_EFFORTS = get_args(Effort)


@attrs.frozen(kw_only=True)
class Loss:
    """One row of the loss ledger: something a target did not receive unchanged (format.md, Projection and losses).

    Attributes:
        path: place in the conversation, `messages[3].content[1]` or `tools[0].input_schema…`.
        block_type: the block's `type`, or `tool`, `message`, `option`.
        verdict: rewritten (sent in another form), dropped, or blocked (the request failed because of it).
        reason: one sentence for people.
        message_id: id of the message, or None.
    """

    path: str
    block_type: str
    verdict: Verdict
    reason: str
    message_id: str | None = None


class BlockLoss(NamedTuple):
    """A loss of one block whose message has no place in the conversation yet.

    Attributes:
        block: index of the block in its message.
        block_type: the block's `type`.
        verdict: rewritten, dropped or blocked.
        reason: one sentence for people.
    """

    block: int
    block_type: str
    verdict: Verdict
    reason: str

    def at(self, index: int, message_id: str) -> Loss:
        """Return the row, given the index of the message in the conversation and its id."""
        place, block_type, verdict, reason = self
        path = f"messages[{index}].content[{place}]"
        return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason, message_id=message_id)


def placeholder_text(rows: Iterable[BlockLoss | Loss]) -> str:
    """Return the placeholder for a user message of which no block can be sent: a turn of the user never vanishes."""
    lines = [f"[{row.block_type} not sent: {row.reason}]" for row in rows if row.block_type != "text"]
    return "\n".join(lines) or "[empty message]"


def option_loss(name: str, verdict: Verdict, reason: str) -> Loss:
    """Return the row of an option, named as in `RequestKwargs`."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def nearest_effort(wanted: str, accepted: Sequence[str], losses: list[Loss], option: str = "effort") -> str | None:
    """Return the effort to send: the wanted one, or the nearest one that the model accepts, with a row in `losses`.

    Of two equally near efforts the lower one is chosen. A model that cannot stop thinking gets its lowest effort
    instead of `none`; `none` never replaces another effort.

    Args:
        wanted: the requested effort.
        accepted: the efforts of the model.
        losses: the ledger, to append to.
        option: the option that requested it.

    Returns:
        None if the model accepts no effort at which it thinks.
    """
    if wanted in accepted:
        return wanted
    place = _EFFORTS.index(wanted)
    steps = [effort for effort in _EFFORTS[1:] if effort in accepted]
    found = min(steps, key=lambda effort: abs(_EFFORTS.index(effort) - place), default=None)
    verdict: Verdict = "dropped" if found is None else "rewritten"
    losses.append(option_loss(option, verdict, f"this model has no effort {wanted!r}; {found or 'nothing'} is sent"))
    return found


def message_loss(index: int, reason: str, message_id: str | None = None, *, block_type: str = "message") -> Loss:
    """Return the row of a message that is sent in another form, or with something prepended or appended."""
    path = f"messages[{index}]"
    return Loss(path=path, block_type=block_type, verdict="rewritten", reason=reason, message_id=message_id)
