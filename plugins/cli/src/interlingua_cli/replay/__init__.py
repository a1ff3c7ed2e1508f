"""Recorded traffic through the installed adapters: which adapter, which road, what came out, and the tally.

Never sends anything and never judges what a message says; that is for tests with a reader of their own.
The command line and the contract suite come in.
"""

from __future__ import annotations

from interlingua_cli.replay.exchange import Match, Matcher, Outcome, replay
from interlingua_cli.replay.report import Report, outcome_to_json
from interlingua_cli.replay.source import Entry, Recording, open_recording

__all__ = ["Entry", "Match", "Matcher", "Outcome", "Recording", "Report", "outcome_to_json", "open_recording", "replay"]


