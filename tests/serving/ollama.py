"""Two forms of the same in requests of Ollama's chat."""

from __future__ import annotations

from typing import Any

from tests.serving.compare import Form


def _nothing(body: dict[str, Any]) -> bool:
    changed = False
    for name in [name for name, value in body.items() if value is None or value in ("", [], {})]:
        del body[name]
        changed = True
    return changed


FORMS = (Form("null, an empty text, list or object is no value", _nothing),)
OPTIONS: dict[str, str] = {}
