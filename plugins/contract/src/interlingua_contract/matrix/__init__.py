"""The swap matrix: histories begun on one provider, continued on another, and brought back.

Never sends anything and never knows a provider: it sees the hooks through core's façade.
The command `matrix` comes in, and the tests that hold its pages.
"""

from __future__ import annotations

from interlingua_contract.matrix.cell import Cell, Run
from interlingua_contract.matrix.grid import Grid, Matrix
from interlingua_contract.matrix.histories import HISTORIES, History
from interlingua_contract.matrix.html_report import html_page
from interlingua_contract.matrix.json_report import as_json
from interlingua_contract.matrix.markdown_report import markdown_page
from interlingua_contract.matrix.side import Side
from interlingua_contract.matrix.sides import sides

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



