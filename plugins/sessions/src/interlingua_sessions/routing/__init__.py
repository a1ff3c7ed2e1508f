"""Routing: which model answers a turn, by the policy chain, and why, on record."""

from __future__ import annotations

from interlingua_sessions.routing.policy import (
    ChainPolicy,
    NoRouteError,
    RoutingPolicy,
    Rule,
    SwapRefusedError,
    When,
    decode_policy,
    encode_policy,
)
from interlingua_sessions.routing.router import (
    Chain,
    Decision,
    Delegation,
    PatternStore,
    Recommendation,
    RoutedTurn,
    Router,
)

__all__ = [
    "Chain",
    "ChainPolicy",
    "Decision",
    "Delegation",
    "NoRouteError",
    "PatternStore",
    "Recommendation",
    "RoutedTurn",
    "Router",
    "RoutingPolicy",
    "Rule",
    "SwapRefusedError",
    "When",
    "decode_policy",
    "encode_policy",
]
