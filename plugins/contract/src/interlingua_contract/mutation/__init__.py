"""Systematic mutation: `interlingua check --mutate PROVIDER` measures what the rules notice.

A *mutant* is one fault of a plugin that occurs wherever it can: a hook, a place, an operation. The place is a pointer
into the hook's result without indexes; elements of a list are told apart by their type, their role or their class:
`/body/messages/*[user]/content/*[image]/source/media_type`. JSON of the user (arguments, schemas) is one place, `**`.

1. *The seam* (`seam`) is a general plugin that wraps every hook of the provider and of its serving plugin, so plugins
   need no change and their own wrappers run below it. It walks what a hook returns (`tree`): request and answer with
   their JSON bodies, messages, events, errors, connection and its functions, capabilities, catalogue.
2. *Discovery* runs each rule once while the seam records: every place, the rules that lead there, the recorded
   exchanges and models in which it is, and samples of its values. A rule that fails, is skipped or deviates without
   any mutant cannot judge. Rules that start processes are left out.
3. *Operations* (`operations`) take all values at a place of one result: drop, alter, swap with a neighbour, double,
   move, reorder, cut, normalise, take from another element or request. One that changes no sample is not a mutant, and
   one that changed nothing while the rules ran is not counted.
4. *Judging* (`run`) arms the seam with one mutant and runs the rules that lead to its place, until one fails: first
   those that noticed similar mutants, and of equally likely ones the quickest; first with the models and exchanges
   in which the place is, and a survivor with all of them. Places are divided among processes.
5. *Free* changes, which no caller can tell, are one list with a reason each (`free`). It may only shrink.

The score is the share of the mutants that are not free and that a rule noticed; `report` counts it by hook, kind of
operation and part of the value. Places that no scene leads to have no mutants: a hook that no rule calls is listed.
"""

from __future__ import annotations

from interlingua_contract.mutation.free import FREE, Free
from interlingua_contract.mutation.report import MutationReport, measure
from interlingua_contract.mutation.run import MutationRun, Verdict
from interlingua_contract.mutation.seam import Mutant, Seam

__all__ = [
    "FREE",
    "Free",
    "Mutant",
    "MutationReport",
    "MutationRun",
    "Seam",
    "Verdict",
    "measure",
]
