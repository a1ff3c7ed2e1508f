"""Wire linters: what each service is known to refuse, as readable rule files, and the small engine that reads them.

Never sends anything, never changes a request, and knows no service; those facts are data that plugins hand over.
The façade comes in, the contract suite, and plugins that test their own rule files.
"""

from __future__ import annotations

from interlingua_cli.lint.reader import covers_request, lint_request, load_rules, provider_rules
from interlingua_cli.lint.rules import LintFinding, LintRule, LintRules

__all__ = [
    "LintFinding",
    "LintRule",
    "LintRules",
    "covers_request",
    "lint_request",
    "load_rules",
    "provider_rules",
]
