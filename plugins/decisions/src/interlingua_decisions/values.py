"""The values: one decision for each question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import attrs


class Box(NamedTuple):
    """A rectangle in a picture, in the service's units."""

    left: float
    top: float
    right: float
    bottom: float


@attrs.frozen(kw_only=True)
class _Decided:
    """What decisions share.

    Attributes:
        confidence: the service's own number, or None. Services compute it differently: do not compare it between them.
        raw: the decision as received; of a typed answer, its value.
    """

    confidence: float | None = None
    raw: Any = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class YesNoDecision(_Decided):
    """The decision on a `YesNo`.

    Attributes:
        value: the more probable answer; True for equal ones.
        probability: probability of yes, from 0 to 1, rounded by the service; None for a typed answer of a model.
    """

    value: bool
    probability: float | None = None

    def __bool__(self) -> bool:
        return self.value


@attrs.frozen(kw_only=True)
class ChoiceDecision(_Decided):
    """The decision on a `Choice`.

    Attributes:
        value: the option.
        probabilities: probability of each option, rounded by the service, so their sum may miss 1; None if unknown.
    """

    value: str
    probabilities: Mapping[str, float] | None = None


@attrs.frozen(kw_only=True)
class ScaleDecision(_Decided):
    """The decision on a `Scale`.

    Attributes:
        value: place on the scale, 0 for its first level: the mean of the levels by their probabilities.
        probabilities: probability of each level, in their order, rounded by the service; None if unknown.
    """

    value: float
    probabilities: tuple[float, ...] | None = None

    @property
    def level(self) -> int:
        """The most probable level; without probabilities the nearest one."""
        if not self.probabilities:
            return round(self.value)
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)


@attrs.frozen(kw_only=True)
class LocateDecision(_Decided):
    """The decision on a `Locate`: where in the picture it is."""

    value: Box


@attrs.frozen(kw_only=True)
class Undecided(_Decided):
    """No decision; those on other questions are not affected, and are paid for.

    Attributes:
        value: None.
        reason: `refused`: the service does not answer this question; `blocked`: it did not read the conversation;
            `missing`: its answer has none to this question; `malformed`: what it says to this question cannot be read
            (`raw`); `unknown`: of a kind that this version does not know.
        detail: the service's description of the fault, or "".
    """

    reason: Literal["refused", "blocked", "missing", "malformed", "unknown"]
    detail: str = ""

    @property
    def value(self) -> None:
        """None, for code that reads the value of every decision."""
        return


Decision: TypeAlias = YesNoDecision | ChoiceDecision | ScaleDecision | LocateDecision | Undecided


def read_decision(kind: str, answer: Mapping[str, Any]) -> Decision:
    """Read the answer to a question of a kind, as the hook returns it (docs/reference/hooks.md)."""
    shared: dict[str, Any] = {"confidence": answer.get("confidence"), "raw": answer.get("raw")}
    given = answer["kind"]
    if given == "refused":
        return Undecided(reason="refused", **shared)
    if given == "malformed":
        return Undecided(reason="malformed", detail=answer["detail"], **shared)
    if given != kind:
        return Undecided(reason="unknown", detail=str(given), **shared)
    if kind == "yes_no":
        share = answer["yes"]
        return YesNoDecision(value=share >= 0.5, probability=share, **shared)
    shares = answer.get("probabilities")
    if kind == "choice":
        return ChoiceDecision(value=answer["option"], probabilities=shares, **shared)
    if kind == "scale":
        levels = None if shares is None else tuple(shares)
        return ScaleDecision(value=answer["score"], probabilities=levels, **shared)
    return LocateDecision(value=Box(**answer["box"]), **shared)


def decision_of(kind: str, value: Any) -> Decision:
    """Return the decision of a model that gave a typed answer."""
    if kind == "yes_no":
        return YesNoDecision(value=value, raw=value)
    return ChoiceDecision(value=value, raw=value) if kind == "choice" else ScaleDecision(value=float(value), raw=value)
