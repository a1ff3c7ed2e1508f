"""Routing: which model answers a turn, by the policy chain of seed 003, and why, on record.

Never sends, stores or changes a session. The session comes in, and applications for the values of a policy.
"""

from __future__ import annotations

from interlingua_sessions.routing.chain import Chain
from interlingua_sessions.routing.constraints import Failure
from interlingua_sessions.routing.decision import Decision
from interlingua_sessions.routing.policy import ChainPolicy, RoutingPolicy, Rule, When
from interlingua_sessions.routing.refusal import Candidate, NoRoute, Refused, SwapRefused
from interlingua_sessions.routing.router import Router
from interlingua_sessions.routing.stored import decode_policy, encode_policy
from interlingua_sessions.routing.turn import Delegation, PatternStore, Recommendation, Turn

__all__ = [
    "Candidate",
    "Chain",
    "ChainPolicy",
    "Decision",
    "Delegation",
    "Failure",
    "NoRoute",
    "PatternStore",
    "Recommendation",
    "Refused",
    "Router",
    "RoutingPolicy",
    "Rule",
    "SwapRefused",
    "Turn",
    "When",
    "decode_policy",
    "encode_policy",
]
