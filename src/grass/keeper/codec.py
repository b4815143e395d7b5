"""The keeper's protocol as bytes: one encoding, and one checked decoding.

A line that is not a JSON object is a BrokenLine and ends its connection; an object that
cannot be understood is a BadMessage. What leaves this module has the types that
`protocol` declares.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast, get_args

from grass.keeper.json_text import to_json
from grass.keeper.protocol import (
    AdoptVerb,
    Entry,
    ExitEntry,
    HelloEntry,
    Notes,
    StartVerb,
    StateEntry,
    TaskRun,
    Usage,
    Verb,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_Object = dict[str, Any]
_INFINITE = float("inf")
_decode, _raw_decode = json.JSONDecoder().decode, json.JSONDecoder().raw_decode


class BrokenLine(Exception):
    """A line that is not a JSON object."""


class BadMessage(Exception):
    """A JSON object that is not a message of this protocol.

    `id` if it had one; `name` of its kind if that is known.
    """

    def __init__(self, text: str, id: object = None, name: str | None = None) -> None:
        super().__init__(text)
        self.id = id
        self.name = name


def encode(message: Verb | Entry) -> bytes:
    """Write a message as one line."""
    return to_json(_document(message)).encode() + b"\n"


def name_of(kind: type) -> str:
    """Return what a verb or an entry is called on the wire: as its class is here."""
    return kind.__name__.removesuffix("Verb").removesuffix("Entry").lower()


def _part_object(part: object) -> object:
    return part._asdict() if isinstance(part, (Notes, TaskRun)) else part


def _usage_object(used: Usage | None) -> _Object | None:
    if used is None:
        return None
    return {"user_s": used[0], "system_s": used[1], "max_rss": used[2]}


_PARTS: dict[type, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    StartVerb: (("meta", _part_object), ("task", _part_object)),
    AdoptVerb: (("meta", _part_object),),
    ExitEntry: (("rusage", _usage_object),),
    StateEntry: (("rusage", _usage_object), ("meta", _part_object)),
    HelloEntry: (("attempts", lambda states: [_document(one) for one in states]),),
}
"""Values that are tuples themselves: JSON would make lists of them."""


def _shape(
    tag: str,
    kind: Any,  # noqa: ANN401 -- any class of the protocol
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Any, ...]]:
    """Return the keys of a message, the value of its tag if fixed, and its parts."""
    parts = _PARTS.get(kind, ())
    if kind._fields[:1] == (tag,):
        return kind._fields, (), parts
    return (tag, *kind._fields), (name_of(kind),), parts


_SHAPES = {
    **{kind: _shape("v", kind) for kind in get_args(Verb)},
    **{kind: _shape("e", kind) for kind in get_args(Entry)},
}


def _document(message: Verb | Entry) -> dict[str, Any]:
    keys, tag, parts = _SHAPES[type(message)]
    document: dict[str, Any] = dict(zip(keys, tag + message, strict=False))
    for key, part in parts:
        document[key] = part(document[key])
    return document


def decode_verb(line: bytes) -> Verb:
    """Read one line of a worker; raises BrokenLine or BadMessage."""
    return verb_of(decode_object(line))


def verb_of(message: dict[str, Any]) -> Verb:
    """Read the verb of an object; raises BadMessage."""
    name = message.get("v")
    if not isinstance(name, str) or name not in _VERBS:
        raise BadMessage(f"unknown verb {name!r}", message.get("id"))
    verb: Verb = _checked(_VERBS[name], message, name)
    return verb


def decode_entry(line: bytes) -> Entry | None:
    """Read one line of a keeper or of its records; None for an unknown kind.

    Raises BrokenLine or BadMessage.
    """
    message = decode_object(line)
    name = message.get("e")
    if not isinstance(name, str) or name not in _ENTRIES:
        return None
    read = _read_state if "state" in message else _ENTRIES[name]
    entry: Entry = _checked(read, message, name)
    return entry


def decode_object(line: bytes) -> _Object:
    """Read a line as a JSON object; raises BrokenLine."""
    try:
        text = line.decode()
        # `decode` spends as long on white space around an object as on the object.
        message, end = _raw_decode(text) if text[:1] == "{" else (_decode(text), None)
        if end is not None and end != len(text) and text[end:].strip():
            raise ValueError("more than one value")
    except (ValueError, RecursionError) as error:
        raise BrokenLine(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise BrokenLine("not a JSON object")
    return message


def _checked(read: Callable[[_Object], Any], message: _Object, name: str) -> Any:  # noqa: ANN401 -- `cast` would cost a call for each message
    try:
        return read(message)
    except KeyError as error:
        text = f"`{name}` without {error}"
    except (TypeError, ValueError, OverflowError) as error:
        text = f"`{name}`: {error}"
    raise BadMessage(text, message.get("id"), name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    # Joining checks every item at once, at a fraction of the cost.
    "".join(value)
    return value


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("env is not an object")
    "".join(value.values())
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _whole_or_none(value: object) -> int | None:
    return None if value is None else _whole(value)


def _wholes_or_none(value: object) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError("not a list")
    return [_whole(one) for one in value]


def _mode(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value & 0o777


def _seconds(value: object) -> float:
    if type(value) is not float:
        if not isinstance(value, (int, float)):
            raise TypeError(f"{value!r} is not a number")
        value = float(value)
    if not 0 <= value < _INFINITE:
        raise ValueError(f"{value!r} is not a number of seconds")
    return value


def _seconds_or_none(value: object) -> float | None:
    return None if value is None else _seconds(value)


def _signal_number(value: object) -> int:
    if not isinstance(value, int) or not 1 <= value <= 64:
        raise ValueError(f"no signal {value!r}")
    return value


def _signal_number_or_none(value: object) -> int | None:
    return None if value is None else _signal_number(value)


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _notes(value: object) -> Notes:
    return Notes({}) if not value else cast("Notes", _read_notes(_mapping(value)))


def _task(value: object) -> TaskRun | None:
    return None if value is None else cast("TaskRun", _read_task(_mapping(value)))


def _usage(value: object) -> Usage | None:
    if not value:
        return None
    get = _mapping(value).get
    return Usage(get("user_s") or 0.0, get("system_s") or 0.0, get("max_rss"))


def _states(value: object) -> list[StateEntry]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return [cast("StateEntry", _read_state(_mapping(one))) for one in value]


_CHECKS: dict[str, Callable[[Any], object]] = {
    "str": _text,
    "int": _whole,
    "bool": bool,
    "float": _seconds,
    "str | None": _text_or_none,
    "int | None": _whole_or_none,
    "float | None": _seconds_or_none,
    "list[str]": _texts,
    "list[int] | None": _wholes_or_none,
    "Command": _texts,
    "Mode": _mode,
    "Seconds": _seconds,
    "Seconds | None": _seconds_or_none,
    "SignalNumber": _signal_number,
    "SignalNumber | None": _signal_number_or_none,
    "dict[str, str]": _environment,
    "dict[str, float]": _mapping,
    "dict[str, dict[str, int]]": _mapping,
    "Usage | None": _usage,
    "Notes": _notes,
    "TaskRun | None": _task,
    "list[StateEntry]": _states,
    "object": lambda value: value,
}
"""How a value is checked, by the type of its field."""
_EXACT: dict[str, type] = {
    "object": dict,
    **{
        name: type_
        for type_ in (str, int, bool, float)
        for name in (type_.__name__, f"{type_.__name__} | None")
    },
}
"""A value of exactly this type needs no check."""

_REQUIRED = object()
_DEFAULTS: dict[str, object] = {
    **dict.fromkeys(("offset", "stderr_offset", "output_bytes"), 0),
    **dict.fromkeys(("at", "ticks"), 0),
    "allocation": {},
    "begun": True,
    "boot": "",
    "cluster": "",
    "e": "state",
    "leases": {},
    "umask": 0o022,
    "version": 1,
}
"""What a key that is missing or null means, if its class has no default for it."""


def _reader(
    kind: Any,  # noqa: ANN401 -- any class of the protocol
) -> Callable[[_Object], Any]:
    """Return what reads a message field by field, each checked by its type."""
    types = {name: _as_written(type_) for name, type_ in kind.__annotations__.items()}
    fields = [
        (name, _EXACT.get(type_), _CHECKS[type_], _default(kind, name, type_))
        for name, type_ in types.items()
    ]

    # As `kind._make`, which also counts the fields.
    make = tuple.__new__

    def read(message: _Object) -> object:
        get, values = message.get, []
        for name, exact, check, default in fields:
            value = get(name)
            if type(value) is not exact and value is not default:
                if value is not None:
                    value = check(value)
                elif default is _REQUIRED:
                    value = check(message[name])
                else:
                    value = default
            values.append(value)
        return make(kind, values)

    return read


def checks_of(
    kind: Any,  # noqa: ANN401 -- any class of the protocol
) -> dict[str, Callable[[Any], object]]:
    """Return how the values of a message are checked, by the names of its fields."""
    types = kind.__annotations__.items()
    return {name: _CHECKS[_as_written(type_)] for name, type_ in types}


def _as_written(type_: object) -> str:
    return str(getattr(type_, "__forward_arg__", type_))


def _default(
    kind: Any,  # noqa: ANN401 -- any class of the protocol
    name: str,
    type_: str,
) -> object:
    if name == "until":
        return _REQUIRED
    if name in kind._field_defaults:
        return kind._field_defaults[name]
    if type_ == "bool":
        return _DEFAULTS.get(name, False)
    if type_ == "object" or type_.endswith("None"):
        return None
    return _DEFAULTS.get(name, _REQUIRED)


_read_notes, _read_task, _read_state = map(_reader, (Notes, TaskRun, StateEntry))
_read_any_start = _reader(StartVerb)


def _read_start(message: _Object) -> StartVerb:
    start: StartVerb = _read_any_start(message)
    if not start.argv and start.guest is None:
        raise ValueError("argv is empty")
    return start


_VERBS = {
    **{name_of(kind): _reader(kind) for kind in get_args(Verb)},
    "start": _read_start,
}
_ENTRIES = {
    **{name_of(kind): _reader(kind) for kind in get_args(Entry) if kind != ExitEntry},
    **dict.fromkeys(("ended", "exited"), _reader(ExitEntry)),
    "waiting": _read_state,
}
