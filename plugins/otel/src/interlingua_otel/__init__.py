"""OpenTelemetry traces, metrics and events for interlingua, by the GenAI semantic conventions."""

from __future__ import annotations

from interlingua_otel.content import CaptureContent
from interlingua_otel.plugin import OpenTelemetry, plugin

__all__ = ["CaptureContent", "OpenTelemetry", "plugin"]
