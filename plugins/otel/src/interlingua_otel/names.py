"""The names of the GenAI semantic conventions, in one place: attributes, metrics, events, operations, providers.

They follow the main branch of https://github.com/open-telemetry/semantic-conventions-genai in November 2026
(docs/gen-ai/client-inference.md at 024a4f9), which has had no release; status: development. `METRICS_1_41` holds the
metrics of the last release in the semantic conventions' own repository, 1.41, which many backends still read.
"""

from __future__ import annotations

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
CONVERSATION: Final = "gen_ai.conversation.id"
COMPACTED: Final = "gen_ai.conversation.compacted"
COMPACTED_MESSAGE: Final = "interlingua.compacted"
"""Key of `metadata.app` on a message that stands for a longer part of the conversation, such as a summary."""
OUTPUT_TYPE: Final = "gen_ai.output.type"

REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_STOP: Final = "gen_ai.request.stop_sequences"
REQUEST_REASONING: Final = "gen_ai.request.reasoning.level"
OPTIONS: Final = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
}
"""Options of a request that are recorded unchanged."""
PROVIDER_OPTIONS: Final = {
    "frequency_penalty": ("gen_ai.request.frequency_penalty", float),
    "presence_penalty": ("gen_ai.request.presence_penalty", float),
    "n": ("gen_ai.request.choice.count", int),
    "previous_response_id": ("gen_ai.request.previous_response.id", str),
}
"""Body fields that several services share, given as `provider_options`."""

RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"

INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE: Final = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_creation_input_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "audio_input_tokens": "gen_ai.usage.audio.input_tokens",
    "cached_audio_input_tokens": "gen_ai.usage.audio.cache_read.input_tokens",
}
EXTRA_UNITS: Final = {
    "audio_output_tokens": "gen_ai.usage.audio.output_tokens",
    "image_output_tokens": "gen_ai.usage.image.output_tokens",
}
"""Counts by modality among `Usage.extra_units`."""
CACHE_WRITE_1_41: Final = "gen_ai.usage.cache_creation.input_tokens"

COST: Final = "interlingua.cost_usd"
LOSSES: Final = "interlingua.losses"
ATTEMPTS: Final = "interlingua.attempts"

TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_DESCRIPTION: Final = "gen_ai.agent.description"

# of a request to a gateway: the conventions for HTTP, status stable
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
URL_PATH: Final = "url.path"
URL_SCHEME: Final = "url.scheme"
HTTP_VERSION: Final = "network.protocol.version"
CLIENT_ADDRESS: Final = "client.address"
USER_AGENT: Final = "user_agent.original"

SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"

EVENT_DETAILS: Final = "gen_ai.client.inference.operation.details"
EVENT_EXCEPTION: Final = "gen_ai.client.operation.exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"

# metrics
TOKEN_MODALITY: Final = "gen_ai.token.modality"  # noqa: S105  a name, not a secret
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  a name, not a secret
METRICS: Final = {
    "duration": "gen_ai.client.inference.duration",
    "time_to_first_chunk": "gen_ai.client.inference.time_to_first_chunk",
    "time_per_output_chunk": "gen_ai.client.inference.time_per_output_chunk",
}
METRICS_1_41: Final = {
    "duration": "gen_ai.client.operation.duration",
    "time_to_first_chunk": "gen_ai.client.operation.time_to_first_chunk",
    "time_per_output_chunk": "gen_ai.client.operation.time_per_output_chunk",
}
TOKEN_USAGE_1_41: Final = "gen_ai.client.token.usage"  # noqa: S105  a name, not a secret
TOKEN_COUNTERS: Final = {
    "input_tokens": "gen_ai.client.inference.usage.input_tokens",
    "output_tokens": "gen_ai.client.inference.usage.output_tokens",
    "cached_input_tokens": "gen_ai.client.inference.usage.cache_read.input_tokens",
    "cache_creation_input_tokens": "gen_ai.client.inference.usage.cache_write.input_tokens",
    "reasoning_tokens": "gen_ai.client.inference.usage.reasoning.output_tokens",
}
TOKEN_HISTOGRAMS: Final = {
    "input_tokens": "gen_ai.client.inference.operation.input_tokens",
    "output_tokens": "gen_ai.client.inference.operation.output_tokens",
}
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
AGENT_INFERENCE_CALLS: Final = "gen_ai.invoke_agent.inference_calls"
AGENT_TOOL_CALLS: Final = "gen_ai.invoke_agent.tool_calls"
SERVER_DURATION: Final = "http.server.request.duration"

SERVER_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
SECONDS: Final = tuple(0.01 * 2**step for step in range(14))  # 0.01 to 81.92
AGENT_SECONDS: Final = tuple(0.1 * 2**step for step in range(13))  # 0.1 to 409.6
TOKENS: Final = tuple(4**step for step in range(14))  # 1 to 67108864
CALLS: Final = tuple(2**step for step in range(8))  # 1 to 128

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}


def provider_name(key: str) -> str:
    """Return the conventions' name of a provider; one they do not list keeps its key."""
    return _PROVIDERS.get(key, key)


def operation_name(key: str, model: str) -> str:
    """Return the conventions' name of a request, which differs for Gemini's own API."""
    return "generate_content" if key == "google" or (key == "vertex" and model.startswith("gemini")) else "chat"
