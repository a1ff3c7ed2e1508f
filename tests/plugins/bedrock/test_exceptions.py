"""Every exception that botocore's model of Converse names: in a failed answer, and as a frame within a stream."""

from __future__ import annotations

import pytest

from interlingua.errors import (
    BadRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from interlingua.plugins import WireChunk, WireResponse
from interlingua.types import MessageStatus
from interlingua_bedrock.event_stream import EventStreamFramer
from tests.plugins.bedrock.wire import BEDROCK, SERVICE, context, frame, streamed

# the meaning of each by its status and documentation in the model; the SDK retries 424, 429 and above 499
CLASSES: dict[str, type[ProviderError]] = {
    "AccessDeniedException": PermissionDeniedError,
    "InternalServerException": ServerError,
    "ModelErrorException": ServerError,
    "ModelNotReadyException": OverloadedError,
    "ModelStreamErrorException": ServerError,
    "ModelTimeoutException": ServerError,
    "ResourceNotFoundException": ModelNotFoundError,
    "ServiceQuotaExceededException": QuotaExceededError,
    "ServiceUnavailableException": OverloadedError,
    "ThrottlingException": RateLimitError,
    "ValidationException": BadRequestError,
}
_STREAM = SERVICE.operation_model("ConverseStream").output_shape.members["stream"].members
IN_STREAMS = sorted(name for name, shape in _STREAM.items() if shape.metadata.get("exception"))
WHOLE = {
    shape.name: shape for name in ("Converse", "ConverseStream") for shape in SERVICE.operation_model(name).error_shapes
}
BEGUN = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Half"}}),
)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_failed_answer_has_the_class_of_its_exception(name: str) -> None:
    status = WHOLE[name].metadata["error"]["httpStatusCode"]
    headers = {"x-amzn-errortype": f"{name}:http://internal.amazon.com/", "retry-after": "3"}
    answer = WireResponse(status=status, headers=headers, body=b'{"message":"said so"}')
    error = BEDROCK.from_wire_error(answer, context("m"))

    assert (type(error), error.code, error.status, error.retry_after) == (CLASSES[name], name, status, 3.0)
    assert error.retryable is (status in (424, 429) or status >= 500 or name == "ModelTimeoutException")


def test_botocore_names_these_exceptions_within_streams() -> None:
    assert len(IN_STREAMS) == 5


@pytest.mark.parametrize("name", IN_STREAMS)
def test_an_exception_within_a_stream_keeps_the_text(name: str) -> None:
    """The SDK raises it too: tests of cassettes compare the two."""
    said = {"message": "said so", "originalStatusCode": 500, "originalMessage": "of the model"}
    kind = CLASSES[name[:1].upper() + name[1:]]
    with pytest.raises(kind, match="said so") as caught:
        streamed(*BEGUN, frame(name, said, "exception"))

    assert type(caught.value) is kind
    assert caught.value.partial.text == "Half"
    assert caught.value.partial.metadata.status is MessageStatus.ERROR


@pytest.mark.parametrize("name", IN_STREAMS)
def test_an_exception_as_the_first_frame_has_no_text(name: str) -> None:
    with pytest.raises(CLASSES[name[:1].upper() + name[1:]]) as caught:
        streamed(frame(name, {"message": "said so"}, "exception"))
    assert not caught.value.partial.text


def test_an_error_frame_of_the_transport_is_an_error() -> None:
    """The service ends a stream with `:message-type: error` when the fault is not one of the API."""
    headers = {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "said so"}
    with pytest.raises(ServerError, match="said so") as caught:
        streamed(*BEGUN, EventStreamFramer.write(WireChunk("InternalFailure", b"", headers)))
    assert caught.value.partial.text == "Half"


def test_a_stream_without_its_stop_is_interrupted() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(*BEGUN, frame("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1}}))
    assert caught.value.partial.text == "Half"
