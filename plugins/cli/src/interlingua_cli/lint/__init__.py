"""Wire linters: find in a written request what its service is known to refuse, by rule files that plugins ship."""

from __future__ import annotations

from interlingua_cli.lint.reader import covers_request, lint_request, load_rules, provider_rules
from interlingua_cli.lint.rules import LintFinding, LintRule, LintRules

__all__ = ["LintFinding", "LintRule", "LintRules", "covers_request", "lint_request", "load_rules", "provider_rules"]
