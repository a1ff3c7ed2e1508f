"""Secrets in session files, found by their form: agents read key files, and their sessions keep what they read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

_END = rb"(?![A-Za-z0-9_-])"
_INSIDE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")

# Each begins with letters that are searched for quickly.
_PATTERNS: Mapping[str, re.Pattern[bytes]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "private key": rb'-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^"]{20,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----',
        "Anthropic key": rb"sk-ant-[A-Za-z0-9_-]{20,}",
        "OpenRouter key": rb"sk-or-[A-Za-z0-9_-]{20,}",
        "OpenAI key": rb"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}",
        "GitHub token": rb"gh(?:[pousr]_[A-Za-z0-9]{36,})",
        "GitHub fine-grained token": rb"github_pat_[A-Za-z0-9_]{50,}",
        "GitLab token": rb"glpat-[A-Za-z0-9_-]{20,}",
        "AWS access key": rb"AKIA[A-Z0-9]{16}" + _END,
        "temporary AWS access key": rb"ASIA[A-Z0-9]{16}" + _END,
        "Google key": rb"AIza[A-Za-z0-9_-]{35}" + _END,
        "Google token": rb"ya29\.[A-Za-z0-9_-]{40,}",
        "Slack token": rb"xox[abeprs]-[A-Za-z0-9-]{10,}",
        "Hugging Face token": rb"hf_[A-Za-z0-9]{30,}",
        "npm token": rb"npm_[A-Za-z0-9]{36}" + _END,
        "PyPI token": rb"pypi-[A-Za-z0-9_-]{60,}",
        "Stripe key": rb"[rs]k_live_[A-Za-z0-9]{20,}",
        "Telegram token": rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}" + _END,
        "JSON web token": rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        "password in a URL": rb"://[A-Za-z0-9._~%-]{1,64}:[^\s\"'\\@/:<>${}*]{3,128}@(?=[A-Za-z0-9])",
    }.items()
}


def find_secrets(data: bytes) -> Counter[str]:
    """Return the kinds of secrets that a file's text holds, and how many different ones of each."""
    kinds: dict[str, set[bytes]] = {}
    _replace(data, lambda kind, secret: kinds.setdefault(kind, set()).add(secret))
    return Counter({kind: len(secrets) for kind, secrets in kinds.items()})


def redact_secrets(data: bytes) -> bytes:
    """Return the text with each secret replaced by its kind in brackets; JSON stays JSON."""
    return _replace(data, lambda _kind, _secret: None)


def _replace(data: bytes, report: Callable[[str, bytes], object]) -> bytes:
    for name, pattern in _PATTERNS.items():
        in_url = pattern.pattern.startswith(b"://")

        def replaced(match: re.Match[bytes], kind: str = name, in_url: bool = in_url) -> bytes:
            start = match.start()
            if start and not in_url and match.string[start - 1] in _INSIDE:
                return match[0]  # in the middle of base64
            report(kind, match[0])
            return b"://[" + kind.encode() + b"]@" if in_url else b"[" + kind.encode() + b"]"

        data = pattern.sub(replaced, data)
    return data
