"""JSON text and frozen JSON; the oracle is Python's json module."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua._json import FrozenDict, FrozenList, dumps, freeze, loads, repair_surrogates, thaw
from tests.core.codec.values import json_values


@given(json_values)
def test_reading_agrees_with_json(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value).encode()):
        assert repr(loads(text)) == repr(json.loads(text))  # repr tells 1 from 1.0 and True


def _outcome(text: str | bytes) -> str:
    try:
        return repr(loads(text))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


@given(st.data(), json_values, st.booleans())
def test_a_large_text_is_read_like_a_small_one(data: st.DataObject, value: Any, is_ascii: bool) -> None:
    """Also if it is broken, repeats keys, or has NaN: the same result, or the same error."""
    text = json.dumps({"a": value, "b": [value, value]}, ensure_ascii=is_ascii)
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.sampled_from(["", "", ",", '"', "\\", "]", "NaN", "-", "1" * 30, '"a": 1, ', "\ud800", "\n", "\0", "é"])
    )
    text = text[:at] + put + text[at + data.draw(st.integers(0, 2)) :]
    for form in (text, text.encode("utf-8", "surrogatepass")):
        small = _outcome(form)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("interlingua._json._LARGE", 0)
            assert _outcome(form) == small


def test_other_threads_run_while_a_large_text_is_read() -> None:
    text = json.dumps([{"a": at} for at in range(400_000)])
    ended, gaps = threading.Event(), list[float]()

    def watch() -> None:
        while not ended.is_set():
            begin = time.perf_counter()
            time.sleep(0.0005)
            gaps.append(time.perf_counter() - begin)

    watcher = threading.Thread(target=watch)
    watcher.start()
    gc.disable()
    begin = time.perf_counter()
    loads(text)
    took = time.perf_counter() - begin
    gc.enable()
    ended.set()
    watcher.join()
    assert max(gaps) < took / 2  # read in one step, the longest gap is almost all of it


@given(json_values)
def test_writing_is_read_back_the_same_and_keeps_key_order(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    assert dumps(freeze(value)) == dumps(value)
    assert dumps({"b": 1, "a": 2}) == b'{"b":1,"a":2}'


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, -(2**70), 10**40])
def test_integers_of_any_size(number: int) -> None:
    assert loads(dumps({"n": number})) == {"n": number}
    assert type(loads(str(number))) is int


@pytest.mark.parametrize(
    ("text", "clean"),
    [("a\ud83d", "a\ufffd"), ("\udc00a", "\ufffda"), ("\ud83d\ude00", "\U0001f600"), ("😀", "😀"), ("é\0", "é\0")],
)
def test_lone_surrogates_become_replacement_characters(text: str, clean: str) -> None:
    """Case 22: a pair made of two halves is the character they mean."""
    assert repair_surrogates(text) == clean
    assert json.loads(dumps({"k": [text]})) == {"k": [clean]}


def test_a_surrogate_escape_is_read() -> None:
    assert loads(b'"\\ud83d"') == "\ud83d"
    assert loads(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_a_byte_order_mark_is_ignored() -> None:
    """RFC 8259 §8.1: a parser may ignore one; recorders and proxies put it there."""
    assert loads(b'\xef\xbb\xbf{"a": 1}') == loads('\ufeff{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("text", ["1e400", "-1e400", '{"n": [1e309]}', "1" + "0" * 400 + ".0"])
def test_a_number_beyond_all_floats_is_not_read_as_infinity(text: str) -> None:
    """Infinity is no JSON value and could not be kept."""
    with pytest.raises(ValueError, match="is not JSON"):
        loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nan", "'x'", "[" * 100_000])
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the class is the promise
        loads(text)


CHANGES = [
    lambda value: value["a"].append(1),
    lambda value: value["a"].__setitem__(0, 1),
    lambda value: value["a"].sort(),
    lambda value: value["a"].extend([1]),
    lambda value: value["a"][1].update(x=1),
    lambda value: value["a"][1].__setitem__("x", 1),
    lambda value: value["a"][1].pop("d"),
    lambda value: value["a"][1].setdefault("z", 1),
    lambda value: value.clear(),
    lambda value: value.__delitem__("a"),
    lambda value: value.__ior__({"x": 1}),
    lambda value: value["a"].__iadd__([1]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_frozen_json_cannot_be_changed_at_any_depth(change: Any) -> None:
    source = {"a": [1, {"d": [2]}]}
    frozen = freeze(source)

    with pytest.raises(TypeError, match="immutable message"):
        change(frozen)
    assert frozen == source == {"a": [1, {"d": [2]}]}


def test_a_frozen_copy_does_not_follow_its_source() -> None:
    source: dict[str, Any] = {"a": [1, {"d": [2]}]}
    frozen = freeze(source)
    source["a"][1]["d"].append(3)

    assert frozen == {"a": [1, {"d": [2]}]}
    assert freeze(frozen) is frozen
    assert copy.deepcopy(frozen) is frozen


@given(json_values)
def test_thaw_gives_a_plain_copy_and_hashes_agree(value: Any) -> None:
    frozen = freeze(value)

    assert thaw(frozen) == value
    assert type(thaw(frozen)) not in (FrozenDict, FrozenList)
    assert hash(frozen) == hash(freeze(thaw(frozen)))


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=3))
def test_pickling_keeps_frozenness(value: dict[str, Any]) -> None:
    back = pickle.loads(pickle.dumps(freeze(value)))  # noqa: S301

    assert back == value
    with pytest.raises(TypeError):
        back["x"] = 1
