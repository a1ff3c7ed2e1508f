"""The shelf of deliberately broken adapters: each one realistic defect, with the rule that must catch it.

Nothing here is shipped. `tests/contract/test_shelf.py` comes in; `python -m tests.contract.broken` prints the matrix.
"""

from __future__ import annotations

from tests.contract.broken.answers import ANSWERS
from tests.contract.broken.declarations import DECLARATIONS
from tests.contract.broken.distributions import DISTRIBUTIONS, BrokenDistribution
from tests.contract.broken.field_answers import FIELD_ANSWERS
from tests.contract.broken.field_requests import FIELD_REQUESTS
from tests.contract.broken.hash_order import HASH_ORDER
from tests.contract.broken.machine import Mutant
from tests.contract.broken.other_wires import OTHER_WIRES
from tests.contract.broken.requests import REQUESTS
from tests.contract.broken.streams import STREAMS

SHELF: tuple[Mutant | BrokenDistribution, ...] = (
    *REQUESTS, *ANSWERS, *STREAMS, *DECLARATIONS, *FIELD_REQUESTS, *FIELD_ANSWERS, *OTHER_WIRES, *HASH_ORDER,
    *DISTRIBUTIONS,
)  # fmt: skip
