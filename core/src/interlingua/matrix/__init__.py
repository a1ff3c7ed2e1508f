"""The swap matrix: histories begun on one provider, continued on another, and brought back.

Never sends anything and never knows a provider: it sees the hooks through core's façade.
The command `matrix` comes in, and the tests that hold its pages.
"""

from __future__ import annotations

from interlingua.matrix.cell import Cell, Run
from interlingua.matrix.grid import Grid, Matrix
from interlingua.matrix.histories import HISTORIES, History
from interlingua.matrix.html_report import html_page
from interlingua.matrix.json_report import as_json
from interlingua.matrix.markdown_report import markdown_page
from interlingua.matrix.side import Side
from interlingua.matrix.sides import sides

__all__ = [
    "HISTORIES",
    "Cell",
    "Grid",
    "History",
    "Matrix",
    "Run",
    "Side",
    "as_json",
    "html_page",
    "markdown_page",
    "sides",
]
