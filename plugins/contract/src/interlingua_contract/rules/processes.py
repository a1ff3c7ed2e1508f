"""The rule that another process writes the same bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import Registry
from interlingua.types import Message, system, tool_result, user
from interlingua_contract.guard import record_warnings
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import assistant_turn, call, offered_tools
from interlingua_contract.subject import Aim, Subject

_PROBE = """
import sys
from interlingua_contract.rules.processes import run_probe
sys.stdout.write(run_probe(sys.stdin.read()))
"""


@rule(
    "C58",
    "Another process writes the same bytes: nothing depends on the interpreter's hash seed.",
    source="format.md, Identity; hook to_wire",
    fix="""Do not iterate over a set, and do not write `hash()` or `id()`: Python orders sets of strings differently
    in each process. Use a dict or a list; `dict.fromkeys` removes duplicates in order. Otherwise a session that
    another process resumes loses its cached prefix.""",
)
def other_processes_write_the_same(subject: Subject) -> Iterator[RuleFinding]:
    """One conversation with tools for each aim, in this interpreter and in two with other seeds."""
    mine = _request_digests(subject)
    aims = [[aim.api, aim.model] for aim in subject.aims]
    work = json.dumps({"key": subject.key, "plugin": _pickle_plugin(subject), "aims": aims})
    for seed in ("1", "2"):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _PROBE],
            input=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if done.returncode:
            raise NotApplicable(f"the provider cannot be made in another process: {done.stderr.strip()[-200:]}")
        for name, digest in json.loads(done.stdout).items():
            if mine.get(name) != digest:
                yield RuleFinding(f"with PYTHONHASHSEED={seed} the request is another", name)


def _pickle_plugin(subject: Subject) -> str:
    """Return a provider that was registered in code, pickled as a string; empty for an installed provider.

    Raises:
        NotApplicable: it cannot be pickled.
    """
    found = subject.registry.found()[subject.key]
    if found.kind in ("preset", "provider"):
        return ""
    try:
        return base64.b64encode(pickle.dumps(found.load())).decode()
    except Exception as error:
        raise NotApplicable(f"the provider was registered in code and cannot be pickled: {error}") from error


def run_probe(work: str) -> str:
    """Write the requests of a subject in this process; the other end of the rule."""
    wanted: dict[str, Any] = json.loads(work)
    plugin = pickle.loads(base64.b64decode(wanted["plugin"])) if wanted["plugin"] else None  # noqa: S301  our own
    registry = Registry(providers={wanted["key"]: plugin}, entry_points=[]) if plugin else Registry()
    subject = Subject(wanted["key"], registry=registry)
    return json.dumps(_request_digests(subject, {tuple(aim) for aim in wanted["aims"]}))


def _request_digests(subject: Subject, wanted: set[Any] | None = None) -> dict[str, str]:
    found: dict[str, str] = {}
    for aim in subject.aims:
        if wanted is not None and (aim.api, aim.model) not in wanted:
            continue
        try:
            with record_warnings():
                request = subject.write(aim, _history(aim), offered_tools(aim))
        except InterlinguaError:
            continue
        losses = [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in request.losses]
        content = repr((request.path, dict(request.headers), request.body, losses))
        found[aim.name] = hashlib.sha256(content.encode()).hexdigest()
    return found


def _history(aim: Aim) -> list[Message]:
    history = [system("Be brief."), user("Read both.")]
    if aim.capabilities.supports_tools:
        calls = [call(1, "a.txt"), call(2, "b.txt")]
        history += [assistant_turn([*calls], None), *[tool_result(one, "text") for one in calls], user("Go on.")]
    return history
