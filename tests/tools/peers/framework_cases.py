"""Cases of six libraries: text, tools, typed answers, JSON, streams. PEERS has the addresses, PEERS_KEY the key."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

PEERS, KEY = json.loads(os.environ["PEERS"]), os.environ["PEERS_KEY"]
_HELLO, _SUNNY = "scripted service", "sunny"


class Weather(BaseModel):
    """A typed answer."""

    place: str
    degrees: int


def get_weather(place: str) -> str:
    """Return the weather of a place.

    Args:
        place: the place.
    """
    return f"sunny in {place}"


_SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
_TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "the weather", "parameters": _SCHEMA}}
]


# -- openai-agents


def _agents_model(kind: str, url: str, model: str) -> Any:
    agents, openai = pytest.importorskip("agents"), pytest.importorskip("openai")
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY)
    made = agents.OpenAIChatCompletionsModel if kind == "chat" else agents.OpenAIResponsesModel
    return agents, made(model=model, openai_client=client)


def _run_agent(kind: str, url: str, model: str, **facts: Any) -> Any:
    agents, asked = _agents_model(kind, url, model)
    if facts.pop("tool", False):
        facts["tools"] = [agents.function_tool(get_weather)]
    if facts.pop("required", False):
        facts["model_settings"] = agents.ModelSettings(tool_choice="required")
    agent = agents.Agent(name="A", instructions="Answer.", model=asked, **facts)
    return asyncio.run(agents.Runner.run(agent, "What is the weather in Oslo?")).final_output


def _agents_stream(kind: str, url: str, model: str) -> str:
    agents, asked = _agents_model(kind, url, model)

    async def run() -> str:
        tool = agents.function_tool(get_weather)
        agent = agents.Agent(name="A", instructions="Answer.", model=asked, tools=[tool])
        streamed = agents.Runner.run_streamed(agent, "What is the weather in Oslo?")
        async for _event in streamed.stream_events():
            pass
        return str(streamed.final_output)

    return asyncio.run(run())


def _agents_cases(kind: str) -> dict[str, Callable[[str, str], None]]:
    return {
        "text": lambda url, model: _has(_run_agent(kind, url, model), _HELLO),
        "tool": lambda url, model: _has(_run_agent(kind, url, model, tool=True), _SUNNY),
        "required": lambda url, model: _has(_run_agent(kind, url, model, tool=True, required=True), _SUNNY),
        "typed": lambda url, model: _is_weather(_run_agent(kind, url, model, output_type=Weather)),
        "stream": lambda url, model: _has(_agents_stream(kind, url, model), _SUNNY),
    }


# -- pydantic-ai


def _pydantic_model(kind: str, url: str, model: str) -> Any:
    if kind in ("chat", "responses"):
        models, providers = "pydantic_ai.models.openai", "pydantic_ai.providers.openai"
        name = "OpenAIChatModel" if kind == "chat" else "OpenAIResponsesModel"
        provider = pytest.importorskip(providers).OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
        return getattr(pytest.importorskip(models), name)(model, provider=provider)
    if kind == "anthropic":
        provider = pytest.importorskip("pydantic_ai.providers.anthropic").AnthropicProvider(api_key=KEY, base_url=url)
        return pytest.importorskip("pydantic_ai.models.anthropic").AnthropicModel(model, provider=provider)
    provider = pytest.importorskip("pydantic_ai.providers.google").GoogleProvider(api_key=KEY, base_url=url)
    return pytest.importorskip("pydantic_ai.models.google").GoogleModel(model, provider=provider)


def _run_pydantic(kind: str, url: str, model: str, *, tool: bool = False, stream: bool = False, **facts: Any) -> Any:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    agent = pydantic_ai.Agent(_pydantic_model(kind, url, model), tools=[get_weather] if tool else [], **facts)
    if not stream:
        return agent.run_sync("What is the weather in Oslo?").output

    async def run() -> Any:
        async with agent.run_stream("What is the weather in Oslo?") as result:
            return await result.get_output()

    return asyncio.run(run())


def _pydantic_cases(kind: str) -> dict[str, Callable[[str, str], None]]:
    ai = "pydantic_ai"
    return {
        "text": lambda url, model: _has(_run_pydantic(kind, url, model), _HELLO),
        "stream": lambda url, model: _has(_run_pydantic(kind, url, model, stream=True), _HELLO),
        "tool": lambda url, model: _has(_run_pydantic(kind, url, model, tool=True), _SUNNY),
        "tool_output": lambda url, model: _is_weather(_run_pydantic(kind, url, model, output_type=Weather)),
        "native_output": lambda url, model: _is_weather(
            _run_pydantic(kind, url, model, output_type=pytest.importorskip(ai).NativeOutput(Weather))
        ),
    }


# -- instructor


def _run_instructor(kind: str, mode: str, url: str, model: str) -> Any:
    instructor = pytest.importorskip("instructor")
    asked = [{"role": "user", "content": "What is the weather in Oslo?"}]
    if kind == "anthropic":
        client = instructor.from_anthropic(
            pytest.importorskip("anthropic").Anthropic(base_url=url, api_key=KEY),
            mode=getattr(instructor.Mode, mode),
        )
    else:
        client = instructor.from_openai(
            pytest.importorskip("openai").OpenAI(base_url=f"{url}/v1", api_key=KEY),
            mode=getattr(instructor.Mode, mode),
        )
    more = {"max_tokens": 500} if kind == "anthropic" else {}
    return client.chat.completions.create(model=model, messages=asked, response_model=Weather, max_retries=0, **more)


def _instructor_cases(kind: str) -> dict[str, Callable[[str, str], None]]:
    modes = ["ANTHROPIC_TOOLS"] if kind == "anthropic" else ["TOOLS", "JSON", "JSON_SCHEMA"]
    return {mode.lower(): _instructor_case(kind, mode) for mode in modes}


def _instructor_case(kind: str, mode: str) -> Callable[[str, str], None]:
    return lambda url, model: _is_weather(_run_instructor(kind, mode, url, model))


# -- litellm and dspy


def _litellm_facts(prefix: str, url: str, model: str) -> dict[str, Any]:
    base = {"openai": f"{url}/v1", "gemini": f"{url}/v1beta"}.get(prefix, url)
    return {"model": f"{prefix}/{model}", "api_base": base, "api_key": KEY}


def _litellm(prefix: str, url: str, model: str, messages: list[Any] | None = None, **more: Any) -> Any:
    litellm = pytest.importorskip("litellm")
    asked = messages or [{"role": "user", "content": "What is the weather in Oslo? Reply in JSON with `place`."}]
    return litellm.completion(messages=asked, **_litellm_facts(prefix, url, model), **more)


def _litellm_tool(prefix: str, url: str, model: str) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
    answer = _litellm(prefix, url, model, asked, tools=_TOOLS).choices[0].message
    (call,) = answer.tool_calls
    assert call.function.name == "get_weather"
    asked += [answer.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny in Oslo"}]
    _has(_litellm(prefix, url, model, asked, tools=_TOOLS).choices[0].message.content, _SUNNY)


def _litellm_cases(prefix: str) -> dict[str, Callable[[str, str], None]]:
    def stream(url: str, model: str) -> None:
        chunks = list(_litellm(prefix, url, model, stream=True))
        _has("".join([chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]), _HELLO)

    def as_json(url: str, model: str) -> None:
        given = _litellm(prefix, url, model, response_format={"type": "json_object"})
        assert "place" in json.loads(given.choices[0].message.content)

    return {
        "text": lambda url, model: _has(_litellm(prefix, url, model).choices[0].message.content, _HELLO),
        "stream": stream,
        "tool": lambda url, model: _litellm_tool(prefix, url, model),
        "json": as_json,
    }


def _dspy_cases(prefix: str) -> dict[str, Callable[[str, str], None]]:
    def run(adapter: str, url: str, model: str) -> None:
        dspy = pytest.importorskip("dspy")
        facts = _litellm_facts(prefix, url, model)
        engine = "auto" if prefix == "gemini" else "litellm"  # its own clients ask unknown models in words only
        lm = dspy.LM(facts.pop("model"), cache=False, num_retries=0, engine=engine, **facts)
        with dspy.context(lm=lm, adapter=getattr(dspy, adapter)()):
            assert dspy.Predict("question -> answer")(question="What is 'two' and two?").answer

    return {"json_adapter": lambda url, model: run("JSONAdapter", url, model)}


# -- llama-index


def _llama_cases(_kind: str) -> dict[str, Callable[[str, str], None]]:
    def llm(url: str, model: str) -> Any:
        made = pytest.importorskip("llama_index.llms.openai_like").OpenAILike
        return made(
            model=model, api_base=f"{url}/v1", api_key=KEY, is_chat_model=True, is_function_calling_model=True,
            max_retries=0,
        )  # fmt: skip

    def stream(url: str, model: str) -> None:
        _has([each.text for each in llm(url, model).stream_complete("Hi")][-1], _HELLO)

    return {
        "text": lambda url, model: _has(llm(url, model).complete("Hi").text, _HELLO),
        "stream": stream,
        "typed": lambda url, model: _is_weather(llm(url, model).as_structured_llm(Weather).complete("Weather?").raw),
    }


def _has(text: Any, part: str) -> None:
    assert part in str(text), text


def _is_weather(value: Any) -> None:
    assert isinstance(value, Weather), value


_LIBRARIES: dict[str, tuple[Callable[[str], dict[str, Callable[[str, str], None]]], tuple[str, ...]]] = {
    "agents": (_agents_cases, ("chat", "responses")),
    "pydantic_ai": (_pydantic_cases, ("chat", "responses", "anthropic", "google")),
    "instructor": (_instructor_cases, ("openai", "anthropic")),
    "litellm": (_litellm_cases, ("openai", "anthropic", "gemini", "ollama_chat")),
    "llama_index": (_llama_cases, ("openai",)),
    "dspy": (_dspy_cases, ("openai", "ollama_chat", "gemini")),
}


def _class(cases: dict[str, Callable[[str, str], None]], url: str, model: str) -> dict[str, Any]:
    def method(case: Callable[[str, str], None]) -> Callable[[Any], None]:
        return lambda _self: case(url, model)

    return {f"test_{name}": method(case) for name, case in cases.items()}


for _library, (_cases, _kinds) in _LIBRARIES.items():
    for _kind in _kinds:
        for _place, (_url, _model) in PEERS.items():
            _name = f"Test_{_library}_{_kind}_at_{_place}"
            globals()[_name] = type(_name, (), _class(_cases(_kind), _url, _model))
