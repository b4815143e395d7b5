"""Starts that are like the one before: only what differs travels.

Members of an array differ in a few words, and most of a start is its environment. Both
sides of a connection keep the last start that was sent as a whole; a line with the verb
`like` names that one and has what is different. Of environments, notes and tasks those
keys are sent whose values differ.

A keeper before version 5 does not know the verb, and is sent whole starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from grass.keeper.codec import BadMessage, checks_of
from grass.keeper.json_text import to_json
from grass.keeper.protocol import Notes, StartVerb, TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIRST_VERSION = 5
LIKE = "like"
_Changed = dict[str, Any]


def encode_like(start: StartVerb, known: StartVerb) -> bytes | None:
    """Write a start as what differs from another; None: it has to be sent whole."""
    changed = _changed(StartVerb._fields, start, known)
    for name, differ in _NESTED.items():
        if name in changed:
            inner = differ(getattr(start, name), getattr(known, name))
            if inner is None:
                return None
            changed[name] = inner
    document = {"v": LIKE, "to": known.id, "id": start.id, **changed}
    return to_json(document).encode() + b"\n"


def _changed(
    names: tuple[str, ...], values: tuple[Any, ...], known: tuple[Any, ...]
) -> _Changed:
    triples = zip(names, values, known, strict=True)
    return {name: value for name, value, old in triples if value != old}


def _changed_keys(new: dict[str, str], old: dict[str, str]) -> _Changed | None:
    if new.keys() != old.keys():
        return None
    return {name: value for name, value in new.items() if value != old[name]}


def _changed_notes(new: object, old: object) -> _Changed | None:
    if not isinstance(new, Notes) or not isinstance(old, Notes):
        return None
    return _changed(Notes._fields, new, old)


def _changed_task(new: TaskRun | None, old: TaskRun | None) -> _Changed | None:
    if new is None or old is None:
        return None
    changed = _changed(TaskRun._fields, new, old)
    env = _changed_keys(new.env, old.env)
    return None if env is None else {**changed, "env": env}


_NESTED: dict[str, Callable[[Any, Any], _Changed | None]] = {
    "env": _changed_keys,
    "meta": _changed_notes,
    "task": _changed_task,
}


def read_like(message: _Changed, known: StartVerb | None) -> StartVerb:
    """Read what a line with `like` means; raises BadMessage."""
    id = message.get("id")
    if known is None or message.get("to") != known.id or not isinstance(id, str):
        raise BadMessage("`start`: it is like none that is known", id, "start")
    try:
        start = cast("StartVerb", _merged(message, known, _START))
        if not start.argv and start.guest is None:
            raise ValueError("argv is empty")
    except (TypeError, ValueError, OverflowError) as error:
        raise BadMessage(f"`start`: {error}", id, "start") from None
    return start


def _merged(changed: _Changed, known: StartVerb | TaskRun, checks: _Checks) -> object:
    values: dict[str, Any] = {
        name: checks[name](value, getattr(known, name))
        for name, value in changed.items()
        if name in checks
    }
    return known._replace(**values)


def _merged_keys(changed: object, old: object) -> object:
    """Return a mapping with some other values."""
    if not isinstance(changed, dict) or not isinstance(old, dict):
        raise TypeError(f"{changed!r} does not change an object")
    return {**old, **changed}


def _merged_env(changed: object, old: dict[str, str]) -> object:
    return {**old, **cast("Mapping[str, str]", _ENV(changed))}


def _merged_task(changed: object, old: TaskRun | None) -> object:
    if not isinstance(changed, dict) or old is None:
        raise TypeError(f"{changed!r} does not change a task")
    return _merged(changed, old, _TASK)


_Checks = dict[str, "Callable[[Any, Any], object]"]


def _plain(check: Callable[[Any], object]) -> Callable[[Any, Any], object]:
    return lambda value, _old: check(value)


def _checks(kind: type, nested: _Checks) -> _Checks:
    return {name: _plain(one) for name, one in checks_of(kind).items()} | nested


_ENV = checks_of(StartVerb)["env"]
_TASK: _Checks = _checks(TaskRun, {"env": _merged_env})
_START: _Checks = _checks(
    StartVerb, {"env": _merged_env, "meta": _merged_keys, "task": _merged_task}
)
