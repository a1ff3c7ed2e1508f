"""The table of status and body to error class, and what else an error tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import ContentRefusedError, OverloadedError, RateLimitError, ServerError, StreamInterruptedError
from interlingua.plugins import WireResponse
from interlingua.types.messages import StopReason
from tests.plugins.google.wire import GOOGLE, chunk, context, read, streamed
from tests.support import driving
from tests.support.error_table import check, name_of, rows_of

TABLE = rows_of(Path(__file__).parent / "errors.toml")


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_status_and_body_give_the_class(row: dict[str, Any]) -> None:
    check(row, GOOGLE, context())


def test_case_26_the_delay_asked_for_is_honoured() -> None:
    body = (
        b'{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":'
        b'"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"48.5s"}]}}'
    )
    error = GOOGLE.from_wire_error(WireResponse(status=429, headers={"retry-after": "7"}, body=body), context())
    plain = GOOGLE.from_wire_error(WireResponse(status=429, headers={"retry-after": "7"}, body=b"{}"), context())

    assert type(error) is RateLimitError
    assert (error.retry_after, plain.retry_after) == (48.5, 7)


def test_case_15_a_blocked_prompt_in_a_stream_is_content_refused() -> None:
    with pytest.raises(ContentRefusedError) as caught:
        streamed({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})

    assert not caught.value.retryable
    assert caught.value.code == "SAFETY"


def test_case_15_a_malformed_call_keeps_what_was_said() -> None:
    said = {"text": "Let me look."}
    ending = {"finish": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: x("}
    with pytest.raises(ServerError) as whole:
        read(chunk(said, **ending))
    with pytest.raises(ServerError) as empty:
        streamed(chunk(**ending))

    for error, text in ((whole.value, "Let me look."), (empty.value, "")):
        assert error.retryable
        assert "Malformed function call: x(" in str(error)
        assert error.code == "MALFORMED_FUNCTION_CALL"
        assert error.partial is not None
        assert error.partial.text == text
        assert error.partial.metadata.stop_reason is StopReason.ERROR


def test_case_15_an_error_in_a_stream_keeps_the_text() -> None:
    failed = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    with pytest.raises(OverloadedError) as caught:
        streamed(chunk({"text": "They are "}), failed)

    assert caught.value.partial.text == "They are "
    assert caught.value.retryable


def test_case_15_an_error_body_without_data_lines_is_read_too() -> None:
    """As the SDK does: raw lines that form a JSON error."""
    raw = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n{"error": {"code": 500, "message": "no",\n'
    raw += b'  "status": "INTERNAL"}}\n'
    with pytest.raises(ServerError) as caught:
        driving.streamed(GOOGLE, raw, context())

    assert caught.value.partial.text == "a"


def test_case_16_a_stream_without_a_finish_reason_is_interrupted() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(chunk({"text": "half"}, usage={"promptTokenCount": 3}))

    assert caught.value.partial.text == "half"
    assert caught.value.partial.metadata.usage.input_tokens == 3


def test_case_16_an_array_without_a_finish_reason_is_interrupted_too() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        read([chunk({"text": "half"})])

    assert caught.value.partial.text == "half"
