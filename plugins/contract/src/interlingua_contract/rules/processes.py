"""Rules that another process writes the same bytes, and that its environment changes nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from interlingua._plugins.registry import PLUGINS
from interlingua.errors import InterlinguaError
from interlingua.plugins import ConnectionSettings, Registry
from interlingua.types import Message, RequestOptions, system, tool_result, user
from interlingua_contract.guard import record_logs
from interlingua_contract.hook_calls import describe, hook_calls, some_exchanges
from interlingua_contract.rule import NotApplicable, RuleFinding, around_difference, rule
from interlingua_contract.scenes import assistant_turn, call, offered_tools
from interlingua_contract.subject import Aim, Quirks, Subject

_PROBE = """
import sys
from interlingua_contract.rules.processes import run_probe
sys.stdout.write(run_probe(sys.stdin.read()))
"""

_OWN_VARIABLES = ("PYTHON", "INTERLINGUA_", "PATH", "LD_", "VIRTUAL_ENV")
_VARIABLE = re.compile(r"""["']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)["']""")
_LOCALE = {"TZ": "Asia/Tokyo", "LANG": "tr_TR.UTF-8", "LC_ALL": "C", "USER": "contract", "HOSTNAME": "contract"}


@rule(
    "C58",
    "Another process writes and reads the same: nothing depends on the interpreter's hash seed.",
    source="format.md, Identity; hook to_wire",
    fix="""Do not iterate over a set, and do not write `hash()` or `id()`: Python orders sets of strings differently
    in each process. Use a dict or a list; `dict.fromkeys` removes duplicates in order. Otherwise a session that
    another process resumes loses its cached prefix.""",
)
def other_processes_write_the_same(subject: Subject) -> Iterator[RuleFinding]:
    """One conversation with tools for each aim, and calls of every hook, in two interpreters with other seeds."""
    for seed in ("1", "2"):
        yield from _differences(subject, seed, f"with PYTHONHASHSEED={seed} it is another")


@rule(
    "C68",
    "Another environment changes nothing: variables, home, time zone and folder are not read at import.",
    source="hook connection",
    fix="""Read the environment only from `settings.environ` inside `connection`. A module that reads `os.environ`
    when it is imported keeps the values of that moment: every tenant then uses the first one's address, region
    or organisation, and tests and `settings=` of a client cannot change it.""",
)
def other_environments_change_nothing(subject: Subject) -> Iterator[RuleFinding]:
    """The same in a process in which each variable that the plugin names has a value."""
    why = "with other environment variables, in another folder and time zone, it is another"
    yield from _differences(subject, "environment", why)


def _differences(subject: Subject, process: str, why: str) -> Iterator[RuleFinding]:
    """Compare the results of another process with those of this one, and show where they differ."""
    found = _probed(subject)[process]
    mine = _digests(subject)
    for name, digest in found["digests"].items():
        if mine.get(name) != digest:
            yield RuleFinding(why, name)
    results = {one.name: one for one in hook_calls(subject)} if found["results"] else {}
    for name, text in found["results"].items():
        yield RuleFinding(why, name, **around_difference(results[name].result(), text))


def _probed(subject: Subject) -> dict[str, dict[str, dict[str, str]]]:
    """Return the results of three other processes: with two hash seeds, and with another environment; run once."""
    done: dict[str, dict[str, dict[str, str]]] | None = vars(subject).get("_probed")
    if done is None:
        done = vars(subject)["_probed"] = _run_probes(subject)
    return done


def _run_probes(subject: Subject) -> dict[str, dict[str, dict[str, str]]]:
    work = json.dumps(_work(subject))
    usual = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    usual.pop("INTERLINGUA_PLUGINS", None)  # the registry has them already
    other = usual | _LOCALE | dict.fromkeys(_named_variables(subject), "contract-value")
    with tempfile.TemporaryDirectory() as folder:
        other |= {"HOME": folder, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "1")}
        runs: dict[str, tuple[Mapping[str, str], str | None]] = {
            "1": (usual | {"PYTHONHASHSEED": "1"}, None),
            "2": (usual | {"PYTHONHASHSEED": "2"}, None),
            "environment": (other, folder),
        }
        started = {
            name: subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _PROBE],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd,
            )
            for name, (env, cwd) in runs.items()
        }  # fmt: skip
        done = {name: process.communicate(work, timeout=120) for name, process in started.items()}
    for name, process in started.items():
        if process.returncode:
            why = done[name][1].strip()[-200:]
            raise NotApplicable(f"the provider cannot be made in another process: {why}")
    return {name: json.loads(out) for name, (out, _) in done.items()}


def _named_variables(subject: Subject) -> set[str]:
    """Return the declared environment variables, and every string of the sources that looks like one."""
    names = set(subject.connection.env_vars)
    hooks = subject.provider._hook.to_wire.get_hookimpls()
    for package in {type(each.plugin).__module__.partition(".")[0] for each in hooks}:
        place = getattr(sys.modules.get(package), "__file__", None)
        files = sorted(Path(place).parent.glob("**/*.py")) if place and Path(place).name == "__init__.py" else []
        for file in files if not package.startswith("tests") else ():
            names.update(_VARIABLE.findall(file.read_text(encoding="utf-8", errors="replace")))
    return {name for name in names if not name.startswith(_OWN_VARIABLES)}


def _work(subject: Subject) -> dict[str, Any]:
    """Describe the subject for another process: the plugins by name if they have one, else pickled.

    Raises:
        NotApplicable: a plugin that was registered in code cannot be pickled.
    """
    registry = subject.registry
    installed = [entry.value for entry in registry.entry_points(PLUGINS)]
    given = registry.found()[subject.key]
    return {
        "key": subject.key,
        "provider": None if given.kind in ("preset", "provider") else _describe(given.load()),
        "plugins": [_describe(plugin) for plugin in registry.plugins if _name_of(plugin) not in installed],
        "installed": bool(registry.entry_points("interlingua.providers")),
        "aims": [[aim.api, aim.model] for aim in subject.aims],
        "connection": dict(subject.quirks.connection),
        "exchanges": base64.b64encode(pickle.dumps(some_exchanges(subject))).decode(),
        "results": {one.name: _digest(one.result()) for one in hook_calls(subject)},
    }


def _name_of(plugin: Any) -> str:
    """Return `module` or `module:object` under which a plugin can be imported; empty if there is no such name."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    module = sys.modules.get(type(plugin).__module__)
    names = [name for name, value in vars(module).items() if value is plugin] if module is not None else []
    return f"{type(plugin).__module__}:{names[0]}" if names else ""


def _describe(plugin: Any) -> dict[str, str]:
    if (name := _name_of(plugin)) and not name.startswith("__main__"):
        return {"name": name}
    try:
        return {"pickle": base64.b64encode(pickle.dumps(plugin)).decode()}
    except Exception as error:
        raise NotApplicable(f"a plugin was registered in code and cannot be pickled: {error}") from error


def _load(described: Mapping[str, str]) -> Any:
    if "pickle" in described:
        return pickle.loads(base64.b64decode(described["pickle"]))  # noqa: S301  our own
    module, _, name = described["name"].partition(":")
    found = __import__(module, fromlist=["_"])
    return getattr(found, name) if name else found


def run_probe(work: str) -> str:
    """Write the requests of a subject in this process; the other end of the rules."""
    wanted: dict[str, Any] = json.loads(work)
    provider = wanted["provider"]
    registry = Registry(
        [_load(plugin) for plugin in wanted["plugins"]],
        providers={wanted["key"]: _load(provider)} if provider is not None else None,
        entry_points=None if wanted["installed"] else [],
    )
    subject = Subject(wanted["key"], quirks=Quirks(connection=wanted["connection"]), registry=registry)
    aims = []
    for api, model in wanted["aims"]:
        declared = subject.provider.capabilities(model, RequestOptions(model=model, api=api))
        aims.append(subject.aim(api, model, declared))
    vars(subject)["aims"] = tuple(aims)
    vars(subject)["exchanges"] = tuple(pickle.loads(base64.b64decode(wanted["exchanges"])))  # noqa: S301  our own
    digests = _digests(subject, aims, backwards=True)
    calls = [(one.name, one.result()) for one in reversed(hook_calls(subject)) if one.name in wanted["results"]]
    different = {name: result for name, result in calls if _digest(result) != wanted["results"][name]}
    return json.dumps({"digests": digests, "results": different})


def _digests(subject: Subject, aims: list[Aim] | None = None, *, backwards: bool = False) -> dict[str, str]:
    """Return digests of the connection, the catalogue, and of each model's declaration and each aim's request."""
    made = subject.provider.connection(ConnectionSettings())
    found = {
        "the connection": _digest(made.base_url, dict(made.headers), made.env_vars, made.hosts, dict(made.endpoints)),
        "the catalogue": _digest([(attrs.evolve(info, prices=()), *info.prices) for info in subject.provider.models()]),
    }
    for info in subject.provider.models()[:: -1 if backwards else 1]:
        found[f"{info.id}, its capabilities"] = _digest(subject.provider.capabilities(info.id))
    for aim in subject.aims if aims is None else aims:
        found[f"{aim.name}, its capabilities"] = _digest(aim.capabilities)
        try:
            with record_logs():
                request = subject.write(aim, _history(aim), offered_tools(aim))
        except InterlinguaError:
            continue
        losses = [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in request.losses]
        found[aim.name] = _digest(request.path, dict(request.headers), request.body, losses)
    return found


def _digest(*parts: object) -> str:
    return hashlib.sha256(describe(parts).encode()).hexdigest()


def _history(aim: Aim) -> list[Message]:
    history = [system("Be brief."), user("Read both.")]
    if aim.capabilities.supports_tools:
        calls = [call(1, "a.txt"), call(2, "b.txt")]
        history += [assistant_turn([*calls], None), *[tool_result(one, "text") for one in calls], user("Go on.")]
    return history
