"""Serve the providers' own APIs over any provider."""

from __future__ import annotations

from interlingua_gateway.config import GatewayConfig, ModelRoute, config_of, read_config
from interlingua_gateway.gateway import create_app
from interlingua_gateway.guards import Caller, Guard, GuardError

__all__ = ["Caller", "GatewayConfig", "Guard", "GuardError", "ModelRoute", "config_of", "create_app", "read_config"]
