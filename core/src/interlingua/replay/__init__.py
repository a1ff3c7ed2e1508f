"""Recorded traffic through the installed adapters: which adapter, which road, what came out, and the tally.

Never sends anything and never judges what a message says; that is for tests with a reader of their own.
The command line and the contract suite come in.
"""

from __future__ import annotations

from interlingua.replay.entry import Entry
from interlingua.replay.exchange import Outcome, replay
from interlingua.replay.match import Match, Matcher
from interlingua.replay.report import Report, emitted
from interlingua.replay.source import Recording, open_recording

__all__ = ["Entry", "Match", "Matcher", "Outcome", "Recording", "Report", "emitted", "open_recording", "replay"]
