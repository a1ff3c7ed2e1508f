"""What came of one cell of the matrix: its ledgers and what is wrong with it, history by history.

Never checks anything (the crossing does).
The other modules of this room come in, and whoever reads a matrix.
"""

from __future__ import annotations

import attrs

from interlingua.plugins.wire import Loss


@attrs.frozen(kw_only=True)
class Run:
    """One history across one pair.

    Attributes:
        history: its name.
        models: whom it was begun on and swapped to, by model name.
        losses: what the swap costs: the ledger of the first request to the other side.
        back: the ledger of the request after the return.
        findings: what is wrong; empty is green.
    """

    history: str
    models: tuple[str, str]
    losses: tuple[Loss, ...] = ()
    back: tuple[Loss, ...] = ()
    findings: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Cell:
    """One ordered pair of sides."""

    begun: str
    swapped: str
    runs: tuple[Run, ...]

    @property
    def green(self) -> bool:
        """True when nothing is wrong."""
        return not any(run.findings for run in self.runs)
