"""Batch jobs: a file of requests, answered in files at half the price (WIRE.md, Batches)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import BatchAnswer, BatchStatus, WireRequest, WireResponse, dumps, loads
from interlingua_chat_completions.dialect import API
from interlingua_chat_completions.provider import upload_batch_request

_JOBS = "/batch/jobs"
_RUNNING = frozenset({"QUEUED", "RUNNING", "CANCELLATION_REQUESTED"})
_VERSION = "/v1"  # part of the base URL and of the endpoint of a job
_NAME = "name"  # of the label, in the metadata


def batch_request(kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
    """Return the request for a kind of batches (docs/reference/hooks.md); None for another kind."""
    if kind == "batch_upload":
        return _upload(arguments["requests"], arguments["name"])
    if kind == "batch_create":
        first: WireRequest = arguments["requests"][0][1]
        body = {
            "input_files": [arguments["file"]],
            "endpoint": _VERSION + first.path,
            "model": loads(first.body)["model"],
            "metadata": {_NAME: arguments["name"]},
        }
        return _post(_JOBS, dumps(body))
    if kind == "batch_status":
        return _get(f"{_JOBS}/{arguments['id']}")
    if kind == "batch_cancel":
        return _post(f"{_JOBS}/{arguments['id']}/cancel", b"")
    if kind == "batch_list":
        return _get(f"{_JOBS}?page_size=100")
    if kind == "batch_results":
        return _get(f"/files/{arguments['result']}/content", stream=arguments.get("lines", False))
    return None


def read_batch(kind: str, response: WireResponse) -> Any:
    """Read the answer to an auxiliary request of a batch."""
    if kind == "batch_results":
        return [_answer(loads(line)) for line in response.body.splitlines() if line.strip()]
    body = loads(response.body)
    if kind == "batch_upload":
        return body["id"]
    return [_status(job) for job in body.get("data") or ()] if kind == "batch_list" else _status(body)


def _get(path: str, *, stream: bool = False) -> WireRequest:
    return WireRequest(method="GET", path=path, body=b"", api=API, stream=stream)


def _post(path: str, body: bytes) -> WireRequest:
    return WireRequest(path=path, headers={"content-type": "application/json"}, body=body, api=API)


def _upload(requests: Sequence[tuple[str, WireRequest]], name: str) -> WireRequest:
    lines = b"".join(dumps({"custom_id": row, "body": _without_model(request)}) + b"\n" for row, request in requests)
    return upload_batch_request(lines, name, API)


def _without_model(request: WireRequest) -> dict[str, Any]:
    """Return a body without its model, which is a field of the job."""
    return {name: value for name, value in loads(request.body).items() if name != "model"}


def _status(job: Mapping[str, Any]) -> BatchStatus:
    ended = job["status"] not in _RUNNING
    files = (job.get("output_file"), job.get("error_file"))
    error = "; ".join(f"{fault.get('message')} ({fault.get('count', 1)} times)" for fault in job.get("errors") or ())
    return BatchStatus(
        id=job["id"],
        state="ended" if ended else "running",
        raw_state=job["status"],
        name=(job.get("metadata") or {}).get(_NAME),
        created_at=job.get("created_at"),
        total=job.get("total_requests"),
        succeeded=job.get("succeeded_requests"),
        failed=job.get("failed_requests"),
        results=tuple(file for file in files if file) if ended else (),
        error=error or None,
    )


def _answer(line: Mapping[str, Any]) -> BatchAnswer:
    response, name = line.get("response"), line.get("custom_id") or ""
    if not response:
        return BatchAnswer(name, None, str(line.get("error") or "no answer"))
    return BatchAnswer(name, WireResponse(status=response["status_code"], body=dumps(response["body"])))
