"""Serve the providers' own APIs over any provider."""

from __future__ import annotations

from interlingua_gateway.config import GatewayConfig, ModelRoute, config_of, read_config
from interlingua_gateway.gateway import create_app

__all__ = ["GatewayConfig", "ModelRoute", "config_of", "create_app", "read_config"]
