"""Questions, and how a service or a model is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from interlingua.errors import CallerError, CapabilityError
from interlingua.output import Answer, Attempt, OutputFormat, OutputPlan, OutputProblem
from interlingua.plugins import Loss, WireRequest, dumps
from interlingua.types import Message, ModelCapabilities, RequestOptions, StopReason, TextBlock, ToolDefinition, Usage
from interlingua_decisions.values import Decision, Undecided, decision_of, read_decision
from interlingua_output.plan import SchemaPlan

_KIND = "decide"
_FAILED = 300  # statuses from here on
_NOT_THERE = (404, 405, 501)  # statuses of a server whose build or model decides nothing
_COST = ("cost_usd", "cost", "pricing_version", "cost_note")
_ROW = "asked for as a typed answer, without probabilities: this model has no decision API, or not for this request"


@attrs.frozen
class YesNo:
    """A question with the answers yes and no.

    Attributes:
        text: the thing to find.
        yes: the meaning of yes, or None.
        no: the meaning of no, or None.
    """

    kind: ClassVar[str] = "yes_no"
    text: str
    yes: str | None = attrs.field(default=None, kw_only=True)
    no: str | None = attrs.field(default=None, kw_only=True)

    def as_json(self) -> dict[str, Any]:
        """Return the question as hooks get it."""
        return {"text": self.text, "yes": self.yes, "no": self.no}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a typed answer."""
        meanings = [f"{word}: {text}" for word, text in (("true", self.yes), ("false", self.no)) if text]
        return {"type": "boolean", "description": "\n".join([self.text, *meanings])}


def _options(value: Mapping[str, str | None] | Sequence[str]) -> dict[str, str | None]:
    made: dict[str, str | None] = dict(value) if isinstance(value, Mapping) else dict.fromkeys(value)
    if isinstance(value, str) or len(made) < 2 or (not isinstance(value, Mapping) and len(made) < len(value)):
        raise CallerError(f"a Choice needs two different options or more, not {value!r}")
    return made


@attrs.frozen
class Choice:
    """A question whose answer is one of several options.

    Attributes:
        text: the thing to find.
        options: the options, each with its description or None; or a list of options.

    Raises:
        CallerError: there are fewer than two options, or an option is listed twice.
    """

    kind: ClassVar[str] = "choice"
    text: str
    options: Mapping[str, str | None] = attrs.field(converter=_options)

    def as_json(self) -> dict[str, Any]:
        """Return the question as hooks get it."""
        return {"text": self.text, "options": dict(self.options)}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a typed answer."""
        described = [f"{name}: {text}" for name, text in self.options.items() if text]
        return {"type": "string", "enum": list(self.options), "description": "\n".join([self.text, *described])}


def _levels(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or len(value) < 2:
        raise CallerError(f"a Scale needs a list of two levels or more, not {value!r}")
    return tuple(value)


@attrs.frozen
class Scale:
    """A question whose answer is a place on a scale.

    Attributes:
        text: the thing to find.
        levels: descriptions of the levels, from the lowest; ten are the most that every service takes.

    Raises:
        CallerError: there are fewer than two levels.
    """

    kind: ClassVar[str] = "scale"
    text: str
    levels: tuple[str, ...] = attrs.field(converter=_levels)

    def as_json(self) -> dict[str, Any]:
        """Return the question as hooks get it."""
        return {"text": self.text, "levels": list(self.levels)}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a typed answer."""
        described = [f"{at}: {text}" for at, text in enumerate(self.levels)]
        levels = list(range(len(self.levels)))
        return {"type": "integer", "enum": levels, "description": "\n".join([self.text, *described])}


@attrs.frozen
class Locate:
    """A question where in a picture something is; only services with such questions answer it.

    Attributes:
        text: the thing to find.
    """

    kind: ClassVar[str] = "locate"
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return the question as hooks get it."""
        return {"text": self.text}

    def schema(self) -> dict[str, Any]:
        """Refuse: a typed answer has no coordinates that mean the same to every model.

        Raises:
            CapabilityError: always.
        """
        raise CapabilityError("this model does not locate: ask one with a decision API that has it", path="output")


Question = YesNo | Choice | Scale | Locate


def _questions(value: Mapping[str, Question]) -> dict[str, Question]:
    made = dict(value) if isinstance(value, Mapping) else {}
    wrong = [name for name, one in made.items() if not (isinstance(name, str) and name and isinstance(one, Question))]
    if not made or wrong:
        raise CallerError(f"Questions takes a dict of names and questions; wrong: {wrong or value!r}")
    return made


@attrs.frozen
class Questions(OutputFormat[dict[str, Decision]]):
    """Questions about one conversation: an argument of `client.decide`, or `output=` of `send`, `map` and `stream`.

    The value of the answer has a decision for each name, in the order of the questions.

    Attributes:
        questions: name -> question.

    Raises:
        CallerError: there is no question, or a name or a question is invalid.
    """

    questions: Mapping[str, Question] = attrs.field(converter=_questions)

    def plan(
        self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities
    ) -> OutputPlan[dict[str, Decision]]:
        """Return how one request asks for a typed answer with all decisions."""
        return _DecisionPlan(self, tools, options, can)

    async def ask(
        self, begin: Callable[[], Awaitable[Any]], complete: Callable[..., Any]
    ) -> Answer[dict[str, Decision]] | None:
        """Ask the decision API of a service that has one; return None if a typed answer is asked for instead."""
        preview = await begin()
        try:
            if self._request(preview, preview.write(None)) is None:
                return None
        except CapabilityError:  # also of the conversation, which a typed answer reports as well
            return None
        request = _DecisionRequest(self)
        try:
            message, _ = await complete(await begin(), request.attempt)
        except CapabilityError:
            return None
        return Answer(
            message=message, messages=(message,), attempts=(Attempt(message),), usage=message.usage, mode="native",
            losses=message.metadata.losses, value=request.decisions,
        )  # fmt: skip

    def _request(self, exchange: Any, conversation: WireRequest) -> WireRequest | None:
        """Return the request to the decision API; None if it would not read all of the conversation."""
        asked = [{"id": name, "kind": one.kind, **one.as_json()} for name, one in self.questions.items()]
        arguments = {"request": conversation, "questions": asked}
        made: WireRequest = exchange.request.provider.auxiliary_request(_KIND, arguments)
        lost = [row for row in made.losses if row.severity == "content" and row not in conversation.losses]
        return None if lost and not exchange.request.options.allow_loss else made

    def read(self, found: Mapping[str, Any]) -> dict[str, Decision]:
        """Return the decisions in what the hook read: by their names, and without names in their order."""
        answers = found["answers"]
        named = {answer["id"]: answer for answer in answers if answer["id"] is not None}
        made: dict[str, Decision] = {}
        for at, (name, question) in enumerate(self.questions.items()):
            unnamed = answers[at] if at < len(answers) and answers[at]["id"] is None else None
            answer = named.get(name, unnamed)
            if answer is not None:
                made[name] = read_decision(question.kind, answer)
            elif found.get("blocked"):
                made[name] = Undecided(reason="blocked", detail=found["blocked"])
            else:
                made[name] = Undecided(reason="missing")
        return made


class _DecisionRequest:
    """A request to a decision API, sent as the client sends those of conversations."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.decisions: dict[str, Decision] = {}
        self._made: WireRequest | None = None

    async def attempt(self, exchange: Any, io: Any) -> Message:
        """Send the request once and return the answer as a message."""
        request, response = exchange.request, exchange.response
        if request.wire is not self._made:
            self._made = request.wire = self.questions._request(exchange, request.wire)
            if self._made is None:
                raise CapabilityError("this decision API does not read all of the conversation")
        body = await exchange.send(io)
        exchange.headers = body.headers
        answered = await body.read()
        if answered.status in _NOT_THERE:
            raise CapabilityError(
                f"the decision API answered with HTTP {answered.status}", provider=request.provider.key
            )
        if answered.status >= _FAILED:
            return response.read(answered)  # type: ignore[no-any-return]  # raises the error
        found = request.provider.from_wire_auxiliary(_KIND, answered)
        self.decisions = self.questions.read(found)
        usage: Usage | None = found["usage"]
        refused = all(isinstance(one, Undecided) for one in self.decisions.values())
        made: Message = request.context.message(
            [TextBlock(text=dumps({name: one.value for name, one in self.decisions.items()}).decode())],
            stop_reason=StopReason.REFUSAL if refused else StopReason.END_TURN,
            usage=usage and attrs.evolve(usage, output_tokens=0),  # which costs nothing here
            trace=found["trace"],
        )
        message: Message = response.finalize(made)
        if usage is not None:
            counted = attrs.evolve(message.usage, output_tokens=usage.output_tokens)
            if usage.cost_usd is not None:
                counted = attrs.evolve(counted, **{name: getattr(usage, name) for name in _COST})
            message = attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=counted))
        response.report(message)
        return message


class _DecisionPlan(SchemaPlan[dict[str, Decision]]):
    """One request for a typed answer with all decisions, and how it is read."""

    def __init__(
        self,
        questions: Questions,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        can: ModelCapabilities,
    ) -> None:
        self._questions = questions.questions
        properties = {name: question.schema() for name, question in self._questions.items()}
        schema = {
            "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False
        }  # fmt: skip
        super().__init__(schema, tools, options, can, name="decisions")
        row = Loss(path="output", block_type="option", verdict="rewritten", reason=_ROW)
        self.losses = (row, *self.losses)

    def read(self, message: Message) -> tuple[dict[str, Decision], tuple[OutputProblem, ...]]:
        """Return the decisions of an answer and its problems."""
        value: Any
        value, problems = super().read(message)
        if problems:
            return value, problems
        return {name: decision_of(one.kind, value[name]) for name, one in self._questions.items()}, ()
