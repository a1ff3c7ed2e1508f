"""What pydantic writes into schemas and services refuse: what each is sent instead, held to documents and SDKs."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from anthropic import transform_schema
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic import TypeAdapter

from interlingua import Client
from interlingua.plugins import WireRequest
from interlingua_cli.lint import lint_request
from interlingua_output.plan import SchemaPlan
from interlingua_output.schema import OutputType
from tests.oracle.test_request_bodies import REGISTRY, sdk_errors
from tests.plugins.typed.strange import CHECKED, Bounds, Broad, Deep, Described, Formats, Leaf, Loose, Open
from tests.plugins.typed.test_modes import MODES
from tests.support.counts import chosen
from tests.support.quiet import quiet_ledger

# openai/WIRE.md, Structured outputs; `default` was recorded, `$defs` and `title` are what its SDK sends
STRICT = {
    *("type", "properties", "required", "items", "enum", "const", "anyOf", "$ref", "$defs", "title", "description"),
    *("additionalProperties", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems", "default"),
}
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", None}
# anthropic/WIRE.md, Structured output
CLAUDE = {
    *("type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "title"),
    "description",
}
KEEPING = ("llamacpp", "lmstudio", "vllm", "mistral")  # every keyword stays: their parts of WIRE.md
NAMES = [getattr(one, "__name__", str(one).rpartition(".")[2]) for one in CHECKED]


def _nodes(node: Any) -> list[dict[str, Any]]:
    if not isinstance(node, dict):
        return []
    found = [node]
    for name in ("properties", "$defs"):
        for child in node.get(name, {}).values():
            found += _nodes(child)
    for name in ("anyOf", "allOf", "oneOf", "prefixItems"):
        for child in node.get(name, ()):
            found += _nodes(child)
    return found + _nodes(node.get("items")) + _nodes(node.get("additionalProperties"))


def _sent(request: WireRequest) -> tuple[dict[str, Any] | None, bool]:
    """Return the response schema of a body, and whether it is strict."""
    body = json.loads(request.body)
    if request.api == "responses":
        form = body.get("text", {}).get("format", {})
        return form.get("schema"), form.get("strict", False)
    if request.api == "chat":
        form = body.get("response_format", {}).get("json_schema", {})
        return form.get("schema"), form.get("strict", False)
    found = {
        "messages": lambda: body.get("output_config", {}).get("format", {}).get("schema"),
        "generate": lambda: body["generationConfig"].get("responseJsonSchema"),
        "converse": lambda: json.loads(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]),
        "chat-v2": lambda: body.get("response_format", {}).get("json_schema"),
        "chat-native": lambda: body.get("format"),
    }
    return found[request.api](), False


def _errors(model: str, api: str, request: WireRequest) -> set[str]:
    key = model.partition(":")[0]
    types = {one for one in sdk_errors(key, api, request) if not one.endswith("unknown to Property")}
    return types | {one.rule for one in lint_request(REGISTRY.provider(key), request)}


def _pairs(*, with_value: bool = False) -> list[Any]:
    """Return types with models: a third of all pairs, in which each type and each model appears, or all in full."""
    return [
        pytest.param(kind, model, id=f"{name}-{model}")
        for name, (kind, value) in zip(NAMES, CHECKED.items(), strict=True)
        for model in MODES
        if chosen(f"{name} {model}", 3) and (value is not None or not with_value)
    ]


def test_each_type_and_each_model_is_tried() -> None:
    kinds, models = zip(*(param.values for param in _pairs()), strict=True)

    assert {*map(id, kinds)} == {*map(id, CHECKED)}
    assert set(models) == set(MODES)


@pytest.mark.parametrize(("kind", "model"), _pairs())
def test_each_is_sent_in_a_form_that_the_service_takes(model: str, kind: Any) -> None:
    key = model.partition(":")[0]
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        api = REGISTRY.provider(key).capabilities(model.partition(":")[2]).api
        plan, request = client.plan_output(kind), client.build_request("go", output=kind)
        assert not _errors(model, api, request) - _errors(model, api, client.build_request("go"))
    if plan.mode != "native":
        assert "asked for by" in plan.losses[0].reason
        return
    schema, strict = _sent(request)
    assert schema is not None
    assert schema["type"] == "object"
    if key == "llamacpp" and kind in (Open, Loose):
        assert not strict  # its grammars have open objects
    elif api in ("chat", "responses"):
        assert strict
        _check_strict(schema, bounded=key not in KEEPING)
    if api in ("messages", "converse"):
        for node in _nodes(schema):
            assert node.keys() <= CLAUDE | {"additionalProperties", "format", "minItems"}
            assert node.get("additionalProperties", False) is False
        if api == "messages":  # the SDK's own form: it changes nothing more
            assert transform_schema(copy.deepcopy(schema)) == schema


def _check_strict(schema: dict[str, Any], *, bounded: bool) -> None:
    assert _ensure_strict_json_schema(copy.deepcopy(schema), path=(), root=copy.deepcopy(schema)) == schema
    for node in _nodes(schema):
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert {*node["required"]} == {*node["properties"]}
        assert node.keys() & {"type", "anyOf", "$ref", "enum"}
        assert node.keys() == {"$ref"} or "$ref" not in node
        if bounded:
            assert node.keys() <= STRICT
            assert node.get("format") in FORMATS or node["type"] == "number"  # recorded 200s
            assert not re.search(r"\(\?<?[=!]", node.get("pattern", ""))


@pytest.mark.parametrize(("kind", "model"), _pairs(with_value=True))
def test_a_value_in_the_form_that_is_sent_is_read(model: str, kind: Any) -> None:
    """Maps as lists of pairs, and the tag of a union, where the service has them so."""
    value = CHECKED[kind]
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        plan: SchemaPlan[Any] = client.plan_output(kind)
        wanted = TypeAdapter(kind).validate_json(json.dumps(value))
    wire = OutputType(kind)
    given = {"value": {"kind_": type(wanted).__name__, **value}} if hasattr(kind, "__args__") else value
    given = {"value": given} if wire.wrapped and not hasattr(kind, "__args__") else given
    if kind in (Open, Loose):
        pairs = {
            name: [{"key": key, "value": one} for key, one in part.items()] if isinstance(part, dict) else part
            for name, part in value.items()
            if name != "what"
        }
        assert wire.read({**value, **pairs})[0] == wanted
    assert wire.read(given) == (wanted, ())
    assert plan.mode in ("native", "tool", "prompt")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Bounds, {"minLength", "maxLength", "uniqueItems"}),
        (Formats, {"format", "minLength"}),
        (Described, set()),
        (Leaf, set()),
    ],
)
def test_what_strict_mode_refuses_is_said_in_words_with_a_row(kind: Any, expected: set[str]) -> None:
    with quiet_ledger(), Client("openai:gpt-5-mini", registry=REGISTRY, environ={}) as client:
        request = client.build_request("go", output=kind)
    moved = {loss.path.rpartition(".")[2] for loss in request.losses if "moved into the description" in loss.reason}
    schema, strict = _sent(request)
    assert strict
    assert moved == expected
    words = " ".join(node.get("description", "") for node in _nodes(schema))
    assert all(name in words for name in expected)


def test_open_values_and_limits_leave_native_mode_before_anything_is_sent() -> None:
    with quiet_ledger():
        for model in ("openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "xai:grok-4", "azure:gpt-5"):
            with Client(model, registry=REGISTRY, environ={}) as client:
                plan = client.plan_output(Loose)
                assert (plan.mode, "leaves open" in plan.losses[0].reason) == ("tool", True)
        with Client("openai:gpt-5-mini", registry=REGISTRY, environ={}) as client:
            assert "13 depth" in client.plan_output(Deep).losses[0].reason
            assert client.plan_output(Leaf).mode == "native"
            assert client.plan_output(Broad).mode == "native"
        with Client("anthropic:claude-haiku-4-5", registry=REGISTRY, environ={}) as client:
            assert "refers to itself" in client.plan_output(Leaf).losses[0].reason
            assert "120 optional" in client.plan_output(Broad).losses[0].reason


RAW: dict[str, Any] = {
    "$ref": "#/$defs/Pet",
    "$defs": {
        "Pet": {
            "type": "object",
            "properties": {
                "kind": {"oneOf": [{"const": "cat", "type": "string"}, {"const": "dog", "type": "string"}]},
                "name": {"allOf": [{"type": "string", "minLength": 1}], "description": "its name"},
                "owner": {"$ref": "#/$defs/Person", "description": "whose it is"},
                "place": {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
                "late": {"type": ["object", "null"], "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            },
            "required": ["kind", "name", "owner", "place", "late"],
        },
        "Person": {
            "type": "object",
            "properties": {
                "mail": {"type": "string", "pattern": "^(?!x).*$"},
                "seen": {"type": "number", "format": "double"},
            },
            "required": ["mail", "seen"],
        },
    },
}


@pytest.mark.parametrize(
    ("model", "api"),
    [("openai:gpt-5-mini", "responses"), ("openai:gpt-5-mini", "chat"), ("groq:openai/gpt-oss-120b", None)],
)
def test_a_schema_of_the_callers_own_is_fitted_as_well(model: str, api: str | None) -> None:
    before = copy.deepcopy(RAW)
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        request = client.build_request("go", response_schema=RAW, api=api)
    schema, strict = _sent(request)
    assert strict
    assert schema is not None
    _check_strict(schema, bounded=True)
    assert schema["properties"]["owner"]["description"] == "whose it is"
    assert schema["properties"]["place"]["type"] == "object"
    for name in ("place", "late"):  # neither stays open (openai/openai-agents-python#4114)
        assert schema["properties"][name]["additionalProperties"] is False
    assert schema["properties"]["name"] == {"type": "string", "description": "its name; minLength: 1"}
    assert before == RAW
    assert {loss.path.rpartition(".")[2] for loss in request.losses} >= {
        "oneOf",
        "allOf",
        "minLength",
        "pattern",
        "owner",
    }
