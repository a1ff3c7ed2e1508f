"""The invariants of the canonical format, as numbered functions that return every violation (seed 003 §5).

Never raises and never repairs: the client decides, and projection repairs what is repairable.
The client, stores, the command line and the contract suite come in, by this door only.
"""

from __future__ import annotations

from interlingua.invariants.check import check_conversation, check_message
from interlingua.invariants.sending import check_sendable, extraordinary
from interlingua.invariants.violation import RULES, Violation

__all__ = ["RULES", "Violation", "check_conversation", "check_message", "check_sendable", "extraordinary"]
