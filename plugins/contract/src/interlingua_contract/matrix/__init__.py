"""The swap matrix: histories started on one provider, continued on another, and brought back."""

from __future__ import annotations

from interlingua_contract.matrix.crossing import Cell, CrossingRun
from interlingua_contract.matrix.grid import Grid, Matrix
from interlingua_contract.matrix.histories import HISTORIES, History
from interlingua_contract.matrix.reports import as_json, html_page, markdown_page, served_page, served_totals, totals
from interlingua_contract.matrix.serving import ServedApiCase, ServedCell, serve_histories, served_apis
from interlingua_contract.matrix.sides import Side, sides

__all__ = [
    "HISTORIES",
    "Cell",
    "CrossingRun",
    "Grid",
    "History",
    "Matrix",
    "ServedApiCase",
    "ServedCell",
    "Side",
    "as_json",
    "html_page",
    "markdown_page",
    "serve_histories",
    "served_apis",
    "served_page",
    "served_totals",
    "sides",
    "totals",
]
