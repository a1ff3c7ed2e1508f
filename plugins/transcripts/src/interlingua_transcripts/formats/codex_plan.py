"""Which entries of a Codex rollout make which message, and what a compaction kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from interlingua.plugins import dumps
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.system import pick
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan

ENVELOPES = {
    "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "rollout_reference",
    "inter_agent_communication", "inter_agent_communication_metadata",
}  # fmt: skip
OPAQUE = {
    "web_search_call", "image_generation_call", "tool_search_call", "tool_search_output", "compaction",
    "compaction_summary", "context_compaction",
}  # fmt: skip
CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
OUTPUTS = {"function_call_output", "custom_tool_call_output"}
MAIL = "agent_message"  # from another agent of the session, which the model reads
BY_MODEL = {"reasoning", *CALLS, *OPAQUE}
_ITEMS = {"message", MAIL, *BY_MODEL, *OUTPUTS}
_PLANNED = ("type", "info", "model", "num_turns", "thread_name")  # what a plan needs of settings and events


class _Digest(str):
    """The content of an item, as an outline keeps it."""

    __slots__ = ()


def item_of(value: Any) -> Mapping[str, Any] | None:
    """Return the Responses item of an entry, None if it holds none."""
    if not isinstance(value, dict):
        return None
    if value.get("type") == "response_item":
        payload = value.get("payload")
        return payload if isinstance(payload, dict) else None
    if "payload" in value or value.get("type") in ENVELOPES:
        return None
    return value if value.get("type") in _ITEMS else None


def replacing_items(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items that replaced the history at a compaction; empty if it lists none."""
    items = (value.get("payload") or {}).get("replacement_history")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def instructions_of(meta: Mapping[str, Any]) -> str | None:
    """Return the system prompt that a header names."""
    found = meta.get("base_instructions")
    text = found.get("text") if isinstance(found, dict) else meta.get("instructions")
    return text if isinstance(text, str) and text else None


def outline_of(value: Any) -> Any:
    """Return the kind of an entry; settings and events with what they say of the session."""
    item = item_of(value)
    if item is not None:
        small = _small(item)
        return small if item is value else {"type": "response_item", "payload": small}
    payload = value.get("payload") if isinstance(value, dict) else None
    if not isinstance(payload, dict) or value.get("type") == "session_meta":
        return value
    if value.get("type") == "compacted":
        kept = {
            "message": bool(payload.get("message")),
            "replacement_history": list(map(_small, replacing_items(value))),
        }
        return {"type": "compacted", "payload": kept}
    return {"type": value.get("type"), "payload": pick(payload, *_PLANNED)}


def _small(item: Mapping[str, Any]) -> dict[str, Any]:
    return {**pick(item, "type", "role"), **({"content": _digest(item)} if _is_said(item) else {})}


def _is_said(item: Mapping[str, Any]) -> bool:
    return _type_of(item) == "message" and item.get("role") != "assistant"


def _type_of(item: Mapping[str, Any]) -> Any:
    return item.get("type", "message" if "role" in item else None)


def _digest(item: Mapping[str, Any]) -> _Digest:
    """Return what two items share that say the same."""
    content = item.get("content")
    if isinstance(content, _Digest):
        return content
    text = orjson.dumps([item.get("role"), content], option=orjson.OPT_SORT_KEYS)
    return _Digest(blake2b(text, digest_size=16).hexdigest())


class Planner:
    """One pass over the entries: which of them make up which message."""

    def __init__(self, values: Sequence[Any]) -> None:
        head: Mapping[str, Any] = next((value for value in values if isinstance(value, dict)), {})
        meta = head.get("payload") if head.get("type") == "session_meta" else head
        if not isinstance(meta, dict) or "payload" in meta or item_of(meta) is not None:  # the header is broken
            meta = {}
        self._meta: Mapping[str, Any] = meta
        self.plan = ReadPlan(
            session_id=str(self._meta.get("id") or ""),
            version=str(self._meta.get("cli_version") or ("" if "payload" in head else "legacy")),
            cwd=self._meta.get("cwd") if isinstance(self._meta.get("cwd"), str) else None,
        )
        self._model: str | None = None
        self._provider = str(self._meta.get("model_provider") or "openai")
        self._answer: list[int] = []
        self._answer_model: str | None = None  # as the settings before its first item name it
        self._last: int | None = None  # the group of the newest answer
        self._total: Any = None
        self._prompts: list[int] = []  # the groups of system prompts
        self._turns: list[int] = []  # the group each user turn begins with
        self._said: list[tuple[int, Mapping[str, Any]]] = []  # group and item of each message that no model made
        self._compactions: list[tuple[int, list[int | tuple[int, int]] | None]] = []  # group, and the context before it
        for at, value in enumerate(values):
            if isinstance(value, dict):
                self._take(at, value)
        self._close()

    def _take(self, at: int, value: Mapping[str, Any]) -> None:
        item = item_of(value)
        if item is not None:
            self._take_item(at, item)
            return
        kind, payload = value.get("type"), value.get("payload")
        if not isinstance(payload, dict):
            return
        if kind == "compacted":
            self._close()
            self._compact(at, value)
        elif kind == "event_msg":
            self._take_event(at, str(payload.get("type")), payload)
        elif kind == "turn_context":
            self._model = payload.get("model") or self._model
        elif kind == "session_meta" and not self.plan.groups and instructions_of(payload):
            self._prompts.append(len(self.plan.groups))
            self._add(at, f"prompt{at}")

    def _take_item(self, at: int, item: Mapping[str, Any]) -> None:
        kind = _type_of(item)
        if kind in BY_MODEL or (kind == "message" and item.get("role") == "assistant"):
            if not self._answer:
                self._answer_model = self._model
            self._answer.append(at)
        elif kind in OUTPUTS or kind in ("message", MAIL):
            self._close()
            if item.get("role") == "user":
                self._turns.append(len(self.plan.groups))
            if _is_said(item):
                self._said.append((len(self.plan.groups), item))
            self._add(at, str(at))
        elif kind != "ghost_snapshot":
            self.plan.notes.append(Note(at, f"an item of an unknown kind {kind!r}; kept unchanged"))

    def _take_event(self, at: int, kind: str, payload: Mapping[str, Any]) -> None:
        if kind == "token_count" and isinstance(payload.get("info"), dict):
            self._close()
            total = payload["info"].get("total_token_usage")
            if self._last is not None:  # a count may repeat; it is dropped with its answer
                group = self.plan.groups[self._last]
                said = (
                    {}
                    if total is not None and total == self._total
                    else {"usage": payload["info"].get("last_token_usage")}
                )
                self.plan.groups[self._last] = MessageGroup(
                    group.key, (*group.entries, at), {**(group.facts or {}), **said}
                )
            self._total = total
        elif kind == "turn_aborted" and self._answer:
            self._close()
            if self._last is not None:
                group = self.plan.groups[self._last]
                self.plan.groups[self._last] = MessageGroup(
                    group.key, group.entries, {**(group.facts or {}), "aborted": True}
                )
        elif kind == "thread_rolled_back":
            self._roll_back(int(payload.get("num_turns") or 0))
        elif kind == "thread_name_updated" and isinstance(payload.get("thread_name"), str):
            self.plan.title = payload["thread_name"]

    def _compact(self, at: int, value: Mapping[str, Any]) -> None:
        """Set the context to what replaces the history: the existing messages, and the compaction's own.

        Without a list of items the program keeps what the user said, and the summary.
        """
        number = len(self.plan.groups)
        before, seen = self.plan.context, list[int | tuple[int, int]](self._prompts)
        items = replacing_items(value)
        runs: list[list[int]] = []
        repeats: dict[int, int] = {}  # place of an item -> group of the message that it repeats
        if items:
            known = {_digest(item): group for group, item in self._said}
            open_run = False  # several items of one answer make one message
            for place, item in enumerate(items):
                earlier = known.get(_digest(item)) if _is_said(item) else None
                by_model = not _is_said(item) and _type_of(item) not in OUTPUTS
                if earlier is not None:
                    seen.append(earlier)
                    repeats[place] = earlier
                elif open_run and by_model:
                    runs[-1].append(place)
                else:
                    seen.append((number, len(runs)))
                    runs.append([place])
                open_run = earlier is None and by_model
        elif value["payload"].get("message"):
            seen += [*self._turns, (number, 0)]
        self._compactions.append((number, before))
        self._add(at, f"compacted{at}", facts={"runs": runs, "repeats": repeats})
        self.plan.context = seen

    def _roll_back(self, turns: int) -> None:
        self._close()
        if turns <= 0:
            return
        first = self._turns[-turns] if turns <= len(self._turns) else 0
        for group in self.plan.groups[first:]:
            self.plan.branches.update(dict.fromkeys(group.entries, "rolled back"))
        del self.plan.groups[first:]
        del self._turns[-turns:]
        while self._compactions and self._compactions[-1][0] >= first:
            self.plan.context = self._compactions.pop()[1]
        if self.plan.context is not None:
            self.plan.context = [one for one in self.plan.context if (one if isinstance(one, int) else one[0]) < first]
        self._said = [one for one in self._said if one[0] < first]
        self._prompts = [one for one in self._prompts if one < first]
        self._last = None

    def _close(self) -> None:
        """End the answer that is open."""
        if not self._answer:
            return
        facts = {"model": self._answer_model, "provider": self._provider}
        entries, self._answer = tuple(self._answer), []
        self._last = len(self.plan.groups)
        self._add(entries[0], str(entries[0]), entries, facts)

    def _add(self, at: int, key: str, entries: tuple[int, ...] = (), facts: Any = None) -> None:
        if self.plan.context is not None:
            self.plan.context.append(len(self.plan.groups))
        self.plan.groups.append(MessageGroup(key, entries or (at,), facts))


def own_items(value: Mapping[str, Any], runs: Sequence[Sequence[int]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the items of each message that a compaction itself brought."""
    items = replacing_items(value)
    for run in runs:
        yield [items[place] for place in run]


def change_repeats(
    entries: Sequence[bytes], groups: Sequence[MessageGroup], changes: Mapping[int, bytes | None]
) -> dict[int, bytes | None]:
    """Return the compactions whose items repeat messages that changed, with these items changed as well."""
    found: dict[int, bytes | None] = {}
    for group in groups:
        at, repeats = group.entries[0], (group.facts or {}).get("repeats", {})
        if changes.get(at, b"") is None or not any(groups[one].entries[0] in changes for one in repeats.values()):
            continue
        value = load_entry(changes.get(at) or entries[at])
        items = []
        for place, item in enumerate(replacing_items(value)):
            changed = changes.get(groups[repeats[place]].entries[0], b"") if place in repeats else b""
            if changed is not None:
                items.append((item_of(load_entry(changed)) if changed else None) or item)
        payload = {**value["payload"], "replacement_history": items}
        found[at] = dumps({**value, "payload": payload}) if items else None
    return found
