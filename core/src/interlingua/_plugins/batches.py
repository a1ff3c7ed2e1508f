"""Values of batches: many requests sent at once and answered later.

A batch is handled by the hooks `auxiliary_request` and `from_wire_auxiliary` with these kinds, if
`Connection.batch_limits` is set:

- `batch_upload` with `requests` (pairs of an id and a `WireRequest`) and `name`: the id of the uploaded file. The
  request is None if the service needs no file.
- `batch_create` with `requests`, `name`, and `file` after an upload: a `BatchStatus`.
- `batch_status` and `batch_cancel` with `id`: a `BatchStatus`.
- `batch_list`: the newest batches, a list of `BatchStatus`.
- `batch_results` with `result`, one of `BatchStatus.results`: a list of `BatchAnswer`, in any order.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import attrs

from interlingua._plugins.wire import WireResponse


@attrs.frozen(kw_only=True)
class BatchStatus:
    """The progress of a batch.

    Attributes:
        id: id of the batch at the service.
        state: `ended` also if the batch failed, expired or was cancelled.
        raw_state: the state in the words of the service.
        name: label that the batch was created with, if the service keeps one.
        created_at: seconds since 1970, or None if unknown.
        total: number of requests, or None while unknown.
        succeeded: number of requests with an answer, or None while unknown.
        failed: number of requests without an answer, or None while unknown.
        results: arguments for `batch_results`, one request each; empty if no results are available.
        error: why the whole batch failed.
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
    """The outcome of one request of a batch.

    Attributes:
        id: id of the request; "" if the service lost it.
        response: the answer, or the failure in the form of an answer to a single request; None if there is neither.
        reason: why there is no response, such as `expired`.
    """

    id: str
    response: WireResponse | None
    reason: str = ""
