"""Rules that compare a plugin with `facts.toml`: options, blocks, counts, and the words of ends and failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlingua_contract.facts import FACTS_FILE, observe_facts, read_facts
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject

_FIX = f"""Check the named row against the service's documentation: if the row is right, correct the plugin; if the
    service differs, correct the row in {FACTS_FILE} beside the cassettes. `interlingua check KEY --facts` prints all
    rows as the plugin behaves; it cannot know which are right."""


def _check(subject: Subject, table: str, between: str = " | ") -> Iterator[RuleFinding]:
    """Compare the written rows of a table with those that the plugin shows, for each API.

    `between` separates the parts of a row, whose order is free.

    Raises:
        NotApplicable: there is no file of facts.
    """
    if subject.unwritten:
        raise NotApplicable("facts are compared when every function is written; record answers until then")
    facts = read_facts(subject)
    if facts is None:
        raise NotApplicable(
            f"there is no {FACTS_FILE} beside the recordings: `interlingua check KEY --facts` prints one"
        )
    observed = vars(subject).get("_observed")
    if observed is None:
        observed = vars(subject)["_observed"] = observe_facts(subject)
    for api in subject.apis:
        yield from _compare(facts.get(table, {}).get(api, {}), observed[table].get(api, {}), api, between)


def _compare(written: Mapping[str, str], shown: Mapping[str, str], api: str, between: str) -> Iterator[RuleFinding]:
    for name, fact in shown.items():
        row = written.get(name)
        if row is None:
            yield RuleFinding(f"no row is about {name!r}; the plugin shows {fact!r}", api)
        elif sorted(row.split(between)) != sorted(fact.split(between)):
            yield RuleFinding(f"{name!r} is {row!r} in {FACTS_FILE}; the plugin shows {fact!r}", api)
    for name in written.keys() - shown.keys():
        yield RuleFinding(f"{name!r} is {written[name]!r} in {FACTS_FILE}, and nothing shows it", api)


@rule(
    "C79",
    "Each option changes the request exactly where the service expects it, in the form that the table of facts has.",
    source="format.md, Options and capabilities; hook to_wire",
    fix=_FIX,
)
def options_go_where_they_belong(subject: Subject) -> Iterator[RuleFinding]:
    """Each option, and each of its words, alone: the difference to a request without it, for every model."""
    yield from _check(subject, "options")


@rule(
    "C80",
    "Each reported count adds once to the fields of usage that it is part of, and to no other.",
    source="format.md, Usage",
    fix=_FIX,
)
def counts_mean_what_they_mean(subject: Subject) -> Iterator[RuleFinding]:
    """Each count of each recorded answer one higher and one lower, whole and streamed; tiers and units too."""
    yield from _check(subject, "usage", " ")


@rule(
    "C81",
    "Each word for the end of an answer is read as the stop reason that it means, whole and streamed.",
    source="format.md, Metadata",
    fix=_FIX,
)
def stop_words_keep_their_meaning(subject: Subject) -> Iterator[RuleFinding]:
    """A recorded answer with its word replaced by others that services use, those for errors and filters included."""
    yield from _check(subject, "stops")


@rule(
    "C90",
    "Each kind of block is written exactly as the table of facts has it: its fields, their names and their words.",
    source="format.md, Blocks; hook to_wire",
    fix=_FIX,
)
def blocks_are_written_as_known(subject: Subject) -> Iterator[RuleFinding]:
    """One small request for each kind: media, results, failures, system prompts, cache markers, reasoning."""
    yield from _check(subject, "blocks")


@rule(
    "C104",
    "Each type, code and sentence that names a failure leads to the class of errors that the table of facts has.",
    source="errors.md; hook from_wire_error; hook stream_response",
    fix=f"""{_FIX} A word that only this service uses can be added as a row: it is then tried in every place.""",
)
def words_of_failures_keep_their_class(subject: Subject) -> Iterator[RuleFinding]:
    """Documented words in each field and header that has one, at several statuses and in a stream."""
    yield from _check(subject, "errors")
