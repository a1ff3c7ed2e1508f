"""Secrets in session files, found by their form: agents read key files, and their sessions keep what they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

_END = rb"(?![A-Za-z0-9_-])"
_INSIDE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")

# Letters that each holds, which are searched for quickly, and its form.
_PATTERNS: Mapping[str, tuple[bytes, re.Pattern[bytes]]] = {
    name: (letters, re.compile(pattern))
    for name, (letters, pattern) in {
        "private key": (
            b"PRIVATE KEY-----",
            rb'-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^"]{20,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----',
        ),
        "Anthropic key": (b"sk-ant-", rb"sk-ant-[A-Za-z0-9_-]{20,}"),
        "OpenRouter key": (b"sk-or-", rb"sk-or-[A-Za-z0-9_-]{20,}"),
        "OpenAI key": (b"sk-", rb"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}"),
        "GitHub token": (b"gh", rb"gh(?:[pousr]_[A-Za-z0-9]{36,})"),
        "GitHub fine-grained token": (b"github_pat_", rb"github_pat_[A-Za-z0-9_]{50,}"),
        "GitLab token": (b"glpat-", rb"glpat-[A-Za-z0-9_-]{20,}"),
        "AWS access key": (b"AKIA", rb"AKIA[A-Z0-9]{16}" + _END),
        "temporary AWS access key": (b"ASIA", rb"ASIA[A-Z0-9]{16}" + _END),
        "Google key": (b"AIza", rb"AIza[A-Za-z0-9_-]{35}" + _END),
        "Google token": (b"ya29.", rb"ya29\.[A-Za-z0-9_-]{40,}"),
        "Slack token": (b"xox", rb"xox[abeprs]-[A-Za-z0-9-]{10,}"),
        "Hugging Face token": (b"hf_", rb"hf_[A-Za-z0-9]{30,}"),
        "npm token": (b"npm_", rb"npm_[A-Za-z0-9]{36}" + _END),
        "PyPI token": (b"pypi-", rb"pypi-[A-Za-z0-9_-]{60,}"),
        "Stripe key": (b"k_live_", rb"[rs]k_live_[A-Za-z0-9]{20,}"),
        "Telegram token": (b":AA", rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}" + _END),
        "JSON web token": (b"eyJ", rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        "password in a URL": (
            b"://",
            rb"://[A-Za-z0-9._~%-]{1,64}:[^\s\"'\\@/:<>${}*]{3,128}@(?=[A-Za-z0-9])",
        ),
    }.items()
}


class SecretSearch:
    """Counts the different secrets of each kind in a file that passes through it.

    Args:
        redact: replace each secret by its kind in brackets; JSON stays JSON.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self._redact = redact
        self._found: dict[str, set[bytes]] = {}

    def through(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file, which end at line ends; secrets are replaced if requested."""
        for piece in pieces:
            replaced = _replace(piece, lambda kind, secret: self._found.setdefault(kind, set()).add(secret))
            yield replaced if self._redact else piece

    @property
    def found(self) -> Mapping[str, int]:
        """The kinds of secrets, and how many different ones of each."""
        return {kind: len(secrets) for kind, secrets in self._found.items()}


def _replace(data: bytes, report: Callable[[str, bytes], object]) -> bytes:
    for name, (letters, pattern) in _PATTERNS.items():
        if letters not in data:
            continue
        in_url = pattern.pattern.startswith(b"://")

        def replaced(match: re.Match[bytes], kind: str = name, in_url: bool = in_url) -> bytes:
            start = match.start()
            if start and not in_url and match.string[start - 1] in _INSIDE:
                return match[0]  # in the middle of base64
            report(kind, match[0])
            return b"://[" + kind.encode() + b"]@" if in_url else b"[" + kind.encode() + b"]"

        data = pattern.sub(replaced, data)
    return data
