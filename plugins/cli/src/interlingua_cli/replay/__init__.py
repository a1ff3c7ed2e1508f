"""Decode recorded exchanges with the installed providers."""

from __future__ import annotations

from interlingua_cli.replay.exchange import Match, Matcher, Outcome, replay
from interlingua_cli.replay.report import Report, outcome_to_json
from interlingua_cli.replay.source import Entry, Recording, open_recording

__all__ = ["Entry", "Match", "Matcher", "Outcome", "Recording", "Report", "open_recording", "outcome_to_json", "replay"]
