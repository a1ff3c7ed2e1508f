"""Decisions for interlingua: `client.decide(messages, Questions({...}))`, one typed decision for each question."""

from __future__ import annotations

from interlingua_decisions.questions import Choice, Locate, Question, Questions, Scale, YesNo
from interlingua_decisions.values import (
    Box,
    ChoiceDecision,
    Decision,
    LocateDecision,
    ScaleDecision,
    Undecided,
    YesNoDecision,
)

__all__ = [
    "Box",
    "Choice",
    "ChoiceDecision",
    "Decision",
    "Locate",
    "LocateDecision",
    "Question",
    "Questions",
    "Scale",
    "ScaleDecision",
    "Undecided",
    "YesNo",
    "YesNoDecision",
]
