"""The target of a projection: which provider, api and model, and what they can carry.

Never names a provider: everything it decides comes from the capabilities declared.
The other projection modules may come in.
"""

from __future__ import annotations

import re

import attrs

from interlingua.capabilities import AdapterCapabilities
from interlingua.messages import Origin


@attrs.frozen(kw_only=True, eq=False)
class Target:
    """Compared by identity: the façade keeps one per distinct profile, and memos are keyed by it.

    Attributes:
        provider: provider key.
        model: model name.
        capabilities: what it declares.
        demote_thinking: the caller allowed foreign reasoning to become text.
        id_pattern: call ids of this wire, compiled.
        name_pattern: tool names of this wire, compiled.
    """

    provider: str
    model: str
    capabilities: AdapterCapabilities
    demote_thinking: bool = False
    id_pattern: re.Pattern[str] = attrs.field(
        init=False, default=attrs.Factory(lambda self: re.compile(self.capabilities.tool_id_pattern), takes_self=True)
    )
    name_pattern: re.Pattern[str] = attrs.field(
        init=False, default=attrs.Factory(lambda self: re.compile(self.capabilities.tool_name_pattern), takes_self=True)
    )

    def shares_provider(self, origin: Origin | None) -> bool:
        """True when the origin is this provider, with whatever api or model."""
        return origin is not None and origin.provider == self.provider

    def takes_state_of(self, origin: Origin | None) -> bool:
        """True when opaque state of this origin may be sent back, at the grain the capabilities declare."""
        if origin is None or origin.provider != self.provider:
            return False
        scope = self.capabilities.thinking_scope
        if scope == "provider":
            return True
        if origin.api != self.capabilities.api:
            return False
        return scope == "api" or (scope == "model" and _same_model(origin.model, self.model))


_SNAPSHOT = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def _same_model(left: str, right: str) -> bool:
    """A dated snapshot of a model is that model."""
    return left == right or _SNAPSHOT.sub("", left) == _SNAPSHOT.sub("", right)
