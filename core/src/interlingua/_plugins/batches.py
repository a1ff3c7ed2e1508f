"""What crosses the seam where a service takes many requests at once and answers them later.

A batch is handled by auxiliary exchanges (`auxiliary_request`, `from_wire_auxiliary`) of these kinds, where
`Connection.batches` says that the service has them:

- `batch_upload`, given `requests` (pairs of an id and a `WireRequest`) and `name`: the id of a file. None instead of a
  request where the service wants no file.
- `batch_create`, given `requests`, `name`, and `file` where there was an upload: a `BatchStatus`.
- `batch_status` and `batch_cancel`, given `id`: a `BatchStatus`.
- `batch_list`: the newest batches, a list of `BatchStatus`.
- `batch_results`, given `result`, one of `BatchStatus.results`: a list of `BatchAnswer`, in any order.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import attrs

from interlingua._plugins.wire import WireResponse


@attrs.frozen(kw_only=True)
class BatchStatus:
    """How far a batch is.

    Attributes:
        id: the service's.
        state: `ended` also where the batch failed, expired or was cancelled.
        raw_state: the service's word.
        name: the label it was created with, where the service keeps one.
        created_at: seconds since 1970, None where the service does not say.
        total: requests in it; None while the service does not know.
        succeeded: requests with an answer; None likewise.
        failed: requests without, for whatever reason; None likewise.
        results: what `batch_results` is asked for, once for each; empty where there is nothing to be had.
        error: why the batch as a whole failed.
    """

    id: str
    state: Literal["running", "ended"]
    raw_state: str
    name: str | None = None
    created_at: float | None = None
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    results: tuple[str, ...] = ()
    error: str | None = None


class BatchAnswer(NamedTuple):
    """What became of one request of a batch.

    Attributes:
        id: the request's, as it was given; empty where the service lost it.
        response: the answer, or the failure as the service would have answered the request alone; None for neither.
        reason: why there is none, such as `expired`.
    """

    id: str
    response: WireResponse | None
    reason: str = ""
