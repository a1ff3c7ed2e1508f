"""Deliberately broken adapters: each one realistic defect, with the rule that must catch it.

`python -m tests.contract.broken` prints which rule catches which.
"""

from __future__ import annotations

from tests.contract.broken.answers import ANSWERS
from tests.contract.broken.arrival import ARRIVAL
from tests.contract.broken.aside import ASIDE
from tests.contract.broken.binary import BINARY
from tests.contract.broken.declarations import DECLARATIONS, DISTRIBUTIONS, BrokenDistribution
from tests.contract.broken.details import DETAILS
from tests.contract.broken.facts import FACTS
from tests.contract.broken.later import LATER
from tests.contract.broken.machine import Mutant
from tests.contract.broken.memory import MEMORY
from tests.contract.broken.other_wires import OTHER_WIRES
from tests.contract.broken.requests import REQUESTS
from tests.contract.broken.serving import SERVED_INTERACTIONS, SERVING
from tests.contract.broken.streams import STREAMS
from tests.contract.broken.surroundings import SURROUNDINGS

SHELF: tuple[Mutant | BrokenDistribution, ...] = (
    *REQUESTS, *ANSWERS, *STREAMS, *DECLARATIONS, *OTHER_WIRES, *BINARY, *SERVING, *SERVED_INTERACTIONS, *FACTS, *ASIDE,
    *MEMORY, *SURROUNDINGS, *ARRIVAL, *DETAILS, *LATER, *DISTRIBUTIONS,
)  # fmt: skip
