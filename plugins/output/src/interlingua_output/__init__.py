"""Typed answers for interlingua: `Client.send(..., output=SomeType)`.

Answers, partial answers and errors are classes of `interlingua.output`.
"""

from __future__ import annotations

from interlingua_output.wanted import Output

__all__ = ["Output"]
