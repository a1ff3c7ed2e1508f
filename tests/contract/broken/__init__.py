"""The shelf of deliberately broken adapters: each one realistic defect, with the rule that must catch it.

Nothing here is shipped. `tests/contract/test_shelf.py` comes in; `python -m tests.contract.broken` prints the matrix.
"""

from __future__ import annotations

from tests.contract.broken.answers import ANSWERS
from tests.contract.broken.declarations import DECLARATIONS
from tests.contract.broken.requests import REQUESTS
from tests.contract.broken.streams import STREAMS

SHELF = (*REQUESTS, *ANSWERS, *STREAMS, *DECLARATIONS)
