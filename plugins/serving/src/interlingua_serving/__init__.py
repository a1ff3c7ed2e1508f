"""Serve the APIs of providers: the hooks of serving plugins, and how they are found and called."""

from __future__ import annotations

from interlingua_serving.answers import AnswerState, State, answer_events, dumps_line, restore_answer
from interlingua_serving.hookspecs import OLDEST_SERVING, SERVING_VERSION, hookimpl
from interlingua_serving.plugins import FoundApi, ServingPlugin, find_apis, find_serving_plugin
from interlingua_serving.stream_writer import BaseStreamWriter, read_call
from interlingua_serving.values import (
    InboundRequest,
    RequestMessages,
    ServeContext,
    ServedApi,
    ServedModel,
    ServedRoute,
    ServiceTool,
    StreamWriter,
    read_body,
    require_objects,
    require_string,
)

__all__ = [
    "OLDEST_SERVING",
    "SERVING_VERSION",
    "AnswerState",
    "BaseStreamWriter",
    "FoundApi",
    "InboundRequest",
    "RequestMessages",
    "ServeContext",
    "ServedApi",
    "ServedModel",
    "ServedRoute",
    "ServiceTool",
    "ServingPlugin",
    "State",
    "StreamWriter",
    "answer_events",
    "dumps_line",
    "find_apis",
    "find_serving_plugin",
    "hookimpl",
    "read_body",
    "read_call",
    "require_objects",
    "require_string",
    "restore_answer",
]
