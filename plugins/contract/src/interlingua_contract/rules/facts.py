"""Rules that compare a plugin with `facts.toml`: where options go, what counts mean, which words end an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlingua_contract.facts import FACTS_FILE, observe_facts, read_facts
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject

_FIX = f"""Check the named row against the service's documentation: if the row is right, correct the plugin; if the
    service differs, correct the row in {FACTS_FILE} beside the cassettes. `interlingua check KEY --facts` prints all
    rows as the plugin behaves; it cannot know which are right."""


def _tables(subject: Subject, table: str) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """Yield each API with the rows of a table that are written, and those that the plugin shows.

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
        yield api, facts.get(table, {}).get(api, {}), observed[table].get(api, {})


def _compare(written: Mapping[str, str], shown: Mapping[str, str], api: str) -> Iterator[RuleFinding]:
    for name, fact in shown.items():
        row = written.get(name)
        if row is None:
            yield RuleFinding(f"no row is about {name!r}; the plugin shows {fact!r}", api)
        elif set(row.split(" | ")) != set(fact.split(" | ")):
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
    for api, written, shown in _tables(subject, "options"):
        yield from _compare(written, shown, api)


@rule(
    "C80",
    "Each reported count adds once to the fields of usage that it is part of, and to no other.",
    source="format.md, Usage",
    fix=_FIX,
)
def counts_mean_what_they_mean(subject: Subject) -> Iterator[RuleFinding]:
    """Each count of each recorded answer one higher and one lower, whole and streamed; tiers and units too."""
    for api, written, shown in _tables(subject, "usage"):
        yield from _compare(_in_order(written), _in_order(shown), api)


def _in_order(rows: Mapping[str, str]) -> dict[str, str]:
    return {name: " ".join(sorted(fields.split())) for name, fields in rows.items()}


@rule(
    "C81",
    "Each word for the end of an answer is read as the stop reason that it means, whole and streamed.",
    source="format.md, Metadata",
    fix=_FIX,
)
def stop_words_keep_their_meaning(subject: Subject) -> Iterator[RuleFinding]:
    """A recorded answer with its word replaced by others that services use, those for errors and filters included."""
    for api, written, shown in _tables(subject, "stops"):
        yield from _compare(written, shown, api)


@rule(
    "C90",
    "Each kind of block is written exactly as the table of facts has it: its fields, their names and their words.",
    source="format.md, Blocks; hook to_wire",
    fix=_FIX,
)
def blocks_are_written_as_known(subject: Subject) -> Iterator[RuleFinding]:
    """One small request for each kind: media, results, failures, system prompts, cache markers, reasoning."""
    for api, written, shown in _tables(subject, "blocks"):
        yield from _compare(written, shown, api)
