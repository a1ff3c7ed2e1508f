"""The Responses wire format, both directions and its stream (sheet openai_responses).

Never knows a host or a key (the service does), so a compatible service can use it as it is.
The plugin object and its auxiliary exchanges come in.
"""

from __future__ import annotations

__all__: list[str] = []
