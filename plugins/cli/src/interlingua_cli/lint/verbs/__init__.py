"""The verbs a rule may use, by what they look at; importing this room registers them all.

Never knows a service: everything that is particular stands in the rule files.
The reader comes in.
"""

from __future__ import annotations

from interlingua_cli.lint.verbs import calls, fields, lists, schema, values
from interlingua_cli.lint.verbs.table import VERBS, expression, texts

__all__ = ["MODULES", "VERBS", "expression", "texts"]

MODULES = (fields, values, lists, calls, schema)
