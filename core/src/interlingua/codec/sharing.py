"""Values that many messages of a history have alike, made once.

Never shares what could be told apart: the data is equal, and what is made of it cannot change. `fast_reading` comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.codec.shapes import fields_of, is_always_written
from interlingua.types.messages import NO_METADATA, MessageMetadata, RoutingDecisionRecord

Read = Callable[[Any], Any]


def _metadata(read: Read) -> Read:
    """Most messages nobody generated know nothing about themselves: they share one value."""
    nothing = {
        field.name: getattr(NO_METADATA, field.name)
        for field in fields_of(MessageMetadata)
        if is_always_written(MessageMetadata, field)
    }

    def read_metadata(data: Any) -> Any:
        return NO_METADATA if data == nothing else read(data)

    return read_metadata


def _routing(read: Read) -> Read:
    """Most answers of a session were chosen for one reason: equal records one after the other share one value."""
    last: tuple[Any, Any] = (None, None)

    def read_routing(data: Any) -> Any:
        nonlocal last
        known, record = last
        if data != known:
            record = read(data)
            if record.confidence is None:  # as a number it might be equal and another: 1, 1.0, True
                last = data, record
        return record

    return read_routing


_SHARED: dict[type, Callable[[Read], Read]] = {MessageMetadata: _metadata, RoutingDecisionRecord: _routing}


def sharing(cls: type, read: Read) -> Read:
    """Return what reads values of a class: `read`, or for some classes one that gives equal data one value."""
    return _SHARED[cls](read) if cls in _SHARED else read
