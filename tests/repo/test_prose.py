"""The prose keeps to its limits, and the checker finds what it should: each rule on a planted sentence."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path

import pytest

from tests.tools import prose

BROKEN = {  # rule -> sentences that break it
    "be-had": ["the mode asked for is not to be had"],
    "who-relative": ["Write the request, for who decides when it is sent."],
    "whoever": ["It is closed by whoever made it."],
    "nobody": ["so that nobody need fetch them"],
    "none-of": ["side_effects {} is none of {}", "or the service has no word and there is none", "None is needed."],
    "a-text": ["a model is named as a text", "expected a list of texts"],
    "named-by": ["a connection names one of {}", "a model is named by its provider"],
    "is-to-be": ["its provider is to be imported"],
    "stands": ["a text that says so stands there"],
    "what-is": ["What a plugin puts there.", "It is a span. What is\nasked for follows."],
    "comes": ["the answer comes late", "what came is read"],
    "such": ["record such a pair"],
    "of-its-own": ["it has a loop of its\nown"],
    "those-of": ["its words are those of the service"],
    "likewise": ["the stream likewise"],
    "besides": ["and nothing besides"],
    "in-place": ["its address stands in the place of its data"],
    "as-it-is": ["the file is left as it is."],
    "gives": ["thaw() gives a copy", "no key: set {}, or give api_key="],
    "where-if": ["None where it is missing"],
    "for-because": ["refused, for it breaks a schema", "refused, for the schema is too deep"],
    "puts": ["what plugins put around it"],
    "look-at": ["look at HTTP_PROXY"],
    "goes": ["the stream goes on"],
    "is-said": ["and the answer says so"],
    "one-that": ["an httpx client, or one that is made like it"],
    "worked-out": ["the price is worked out later"],
    "begun": ["a block that was begun before"],
}
PLAIN = [
    "Return the text of the message; a text block stays unchanged.",
    "What is sent, and by whom? What does the service answer?",
    "It is read for the caller, for example by a proxy, for a list of models.",
    "Never give up; the `stands` field and [the page](where-it-is.md) are code.",
    "Find where it is defined, and go out of your way.",
    "The standard, a stand-in, understanding.",
]


def _rules(text: str) -> set[str]:
    return {hit.rule for hit in prose.hits_of(Path("a.md"), prose.texts_of_page(text))}


def test_the_prose_keeps_to_its_limits() -> None:
    over = prose.over(prose.counts(prose.hits(prose.ROOT)), prose.limits())

    assert not over, f"{over}\n`python tests/tools/prose.py FOLDER` prints each phrase with the plain word"


def test_every_rule_has_sentences_that_break_it() -> None:
    assert set(BROKEN) == {name for name, _, _ in prose.RULES}


@pytest.mark.parametrize("rule", list(BROKEN))
def test_a_rule_finds_what_breaks_it(rule: str) -> None:
    for sentence in BROKEN[rule]:
        assert rule in _rules(sentence), sentence


@pytest.mark.parametrize("sentence", PLAIN)
def test_plain_sentences_pass(sentence: str) -> None:
    assert not _rules(sentence)


def test_docstrings_comments_and_messages_are_read_and_code_is_not() -> None:
    source = textwrap.dedent('''
        """What stands first."""
        # a comment, which stands
        # on two lines
        TABLE = {"stands": f(`x`) if 0 else 1}  # it stands
        def stands(stands):
            """Do it.

            Where it stands in `what stands`.
            """
            raise CallerError(f"{stands} stands in no {place} of it")
        QUERY = "what stands"
        ''').replace("`x`", "1")
    found = list(prose.hits_of(Path("a.py"), prose.texts_of_python(source)))

    assert Counter((hit.line, hit.kind, hit.rule) for hit in found) == {
        (2, "docstring", "what-is"): 1,
        (2, "docstring", "stands"): 1,
        (3, "comment", "stands"): 1,
        (5, "comment", "stands"): 1,
        (9, "docstring", "stands"): 1,
        (11, "error", "stands"): 1,
    }
    read_as_test = {(hit.line, hit.kind) for hit in prose.hits_of(Path("a.py"), prose.texts_of_test(source))}
    assert read_as_test == {(2, "docstring"), (3, "comment"), (5, "comment"), (9, "docstring")}


def test_a_planted_sentence_is_over_the_limit() -> None:
    planted = list(prose.hits_of(Path("core/a.py"), prose.texts_of_python('raise CallerError("it is none of these")')))
    counted = prose.counts(planted)
    none, one = prose.Limit(before=3, most=0), prose.Limit(before=3, most=1)

    assert counted == {"prose": {"core": 1}, "errors": {"core": 1}}
    assert len(prose.over(counted, {"prose": {"core": none}, "errors": {"core": none}})) == 2
    assert len(prose.over(counted, {"prose": {}, "errors": {"core": one}})) == 1
    assert not prose.over(counted, {"prose": {"core": one}, "errors": {"core": one}})


def test_limits_fall_and_never_rise(tmp_path: Path) -> None:
    (tmp_path / prose.ALLOW).parent.mkdir(parents=True)
    start = {"prose": Counter(core=5, docs=2), "errors": Counter(core=1)}
    prose.write_limits(tmp_path, start, start)
    prose.write_limits(tmp_path, {"prose": Counter(core=3, docs=9), "errors": Counter()}, None)

    assert prose.limits(tmp_path) == {
        "prose": {"core": prose.Limit(before=5, most=3), "docs": prose.Limit(before=2, most=2)},
        "errors": {"core": prose.Limit(before=1, most=0)},
    }
