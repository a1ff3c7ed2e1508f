"""A repeated request gets the kept answer: exactly the same one, of the same key, if its route keeps answers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.apis import APIS, Api
from tests.gateway.conftest import Upstream, gateway, new_store, refuse, say, wait_for_metric

ROUTE = {"match": "*", "to": ["llamacpp:up-1"], "retries": 0, "cache_seconds": 60.0}


def _kept(upstream: Upstream, tmp_path: Path, **config: Any) -> Any:
    return gateway(upstream, **({"routes": [ROUTE], "store": f"sqlite:///{tmp_path}/gateway.db"} | config))


def _texts(answer: httpx.Response, api: Api) -> bool:
    return answer.status_code == 200 and api.finished in answer.content and b"Hello" in answer.content


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_repeated_stream_is_answered_once_by_a_service(api: Api, upstream: Upstream, tmp_path: Path) -> None:
    with _kept(upstream, tmp_path) as url:
        first = httpx.post(url + api.path, json=api.body)
        again = httpx.post(url + api.path, json=api.body)
        other = httpx.post(url + api.path, json=api.asking("What?"))
        wait_for_metric(url, "interlingua_gateway_cached_answers_total{")

    assert [_texts(answer, api) for answer in (first, again, other)] == [True, True, True]
    assert [answer.headers.get("x-interlingua-cache") for answer in (first, again, other)] == [None, "hit", None]
    assert len(upstream.requests) == 2
    assert again.headers["content-type"] == first.headers["content-type"]


def test_no_answer_is_kept_unless_the_route_says_so(upstream: Upstream, tmp_path: Path) -> None:
    api = APIS[1]
    with gateway(upstream, store=f"sqlite:///{tmp_path}/gateway.db") as url:
        answers = [httpx.post(url + api.path, json=api.body) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(upstream.requests) == 2


def test_failures_are_not_kept(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [refuse(500), say("Hello")]
    with _kept(upstream, tmp_path) as url:
        statuses = [httpx.post(url + APIS[1].path, json=APIS[1].body).status_code for _ in range(3)]

    assert statuses[0] >= 500
    assert statuses[1:] == [200, 200]
    assert len(upstream.requests) == 2


def test_an_answer_belongs_to_its_key_and_costs_it_once(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/gateway.db"
    store = new_store(place)
    (ann, ann_secret), (bob, bob_secret) = store.add_key("Ann"), store.add_key("Bob")
    asked = [ann_secret, ann_secret, bob_secret]
    with _kept(upstream, tmp_path, auth="keys") as url:
        for secret in asked:
            headers = {"authorization": f"Bearer {secret}"}
            assert httpx.post(url + APIS[1].path, json=APIS[1].body, headers=headers).status_code == 200

    assert len(upstream.requests) == 2
    assert (store.spent(ann).requests, store.spent(bob).requests) == (1, 1)
    stored = (tmp_path / "gateway.db").read_bytes()
    with suppress(FileNotFoundError):
        stored += (tmp_path / "gateway.db-wal").read_bytes()
    assert b"Hello" not in stored  # it is sealed


def test_an_expired_answer_is_not_found_and_dropped(tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path}/gateway.db")
    store.keep_answer("ann", "q", "seal", 100.0)

    assert store.find_answer("ann", "q", 99.0) == "seal"
    assert store.find_answer("ann", "q", 100.0) is None
    assert store.find_answer("bob", "q", 99.0) is None
    assert (store.drop_answers(99.0), store.drop_answers(100.0), store.drop_answers(100.0)) == (0, 1, 0)
