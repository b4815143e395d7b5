"""The keeper's protocol as bytes: one encoding, and one checked decoding.

A line that is not a JSON object is a BrokenLine and ends its connection; an object that
cannot be understood is a BadMessage. What leaves this module has the types that
`protocol` declares.
"""

from __future__ import annotations

import json
import json.encoder
from typing import TYPE_CHECKING, Any, cast, get_args

from grass.keeper.protocol import (
    ContinueVerb,
    Entry,
    ExitEntry,
    ForgetVerb,
    HelloEntry,
    HelloVerb,
    LeaseVerb,
    LeaveVerb,
    Notes,
    RecallVerb,
    SignalVerb,
    StartVerb,
    StateEntry,
    StopVerb,
    SuspendVerb,
    Usage,
    Verb,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_Object = dict[str, Any]
_decode, _raw_decode = json.JSONDecoder().decode, json.JSONDecoder().raw_decode


class BrokenLine(Exception):
    """A line that is not a JSON object."""


class BadMessage(Exception):
    """A JSON object that is not a message of this protocol; `id` if it had one."""

    def __init__(self, text: str, id: object = None) -> None:
        super().__init__(text)
        self.id = id


def encode(message: Verb | Entry) -> bytes:
    """Write a message as one line."""
    return _to_json(_document(message)).encode() + b"\n"


def name_of(kind: type) -> str:
    """Return what a verb or an entry is called on the wire: as its class is here."""
    return kind.__name__.removesuffix("Verb").removesuffix("Entry").lower()


def _json_encoder() -> Callable[[object], str]:
    """Return a JSON encoder, made once: `JSONEncoder` makes a new one for each call."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(separators=(",", ":")).encode
    write = make(
        None,
        None,
        json.encoder.encode_basestring_ascii,
        None,
        ":",
        ",",
        *(False,) * 2,
        True,
    )
    return lambda value: "".join(write(value, 0))


_to_json = _json_encoder()


def _notes_object(notes: object) -> object:
    return notes._asdict() if type(notes) is Notes else notes


def _usage_object(used: Usage | None) -> _Object | None:
    if used is None:
        return None
    return {"user_s": used[0], "system_s": used[1], "max_rss": used[2]}


_PARTS: dict[type, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    StartVerb: (("meta", _notes_object),),
    ExitEntry: (("rusage", _usage_object),),
    StateEntry: (("rusage", _usage_object), ("meta", _notes_object)),
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
    message = _object(line)
    name = message.get("v")
    if not isinstance(name, str) or name not in _VERBS:
        raise BadMessage(f"unknown verb {name!r}", message.get("id"))
    return cast("Verb", _checked(_VERBS[name], message, name))


def decode_entry(line: bytes) -> Entry | None:
    """Read one line of a keeper or of its records; None for an unknown kind.

    Raises BrokenLine or BadMessage.
    """
    message = _object(line)
    name = message.get("e")
    if not isinstance(name, str) or name not in _ENTRIES:
        return None
    read = _read_state if "state" in message else _ENTRIES[name]
    return cast("Entry", _checked(read, message, name))


def _object(line: bytes) -> _Object:
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


def _checked(read: Callable[[_Object], object], message: _Object, name: str) -> object:
    try:
        return read(message)
    except KeyError as error:
        text = f"`{name}` without {error}"
    except (TypeError, ValueError, OverflowError) as error:
        text = f"`{name}`: {error}"
    raise BadMessage(text, message.get("id"))


def _read_start(message: _Object) -> StartVerb:
    get = message.get
    start = StartVerb(
        _text(message["id"]),
        _texts(message["argv"]),
        _environment(message["env"]),
        _text(message["cwd"]),
        int(get("umask", 0o022)) & 0o777,
        _text(message["output"]),
        _text_or_none(get("stderr")),
        _seconds(get("grace", 15.0)),
        _seconds_or_none(get("time_limit")),
        None if get("max_output") is None else int(message["max_output"]),
        bool(get("own_output")),
        int(get("nice") or 0),
        None if get("cpus") is None else [int(cpu) for cpu in message["cpus"]],
        _text_or_none(get("after")),
        get("meta"),
    )
    if not start.argv:
        raise ValueError("argv is empty")
    return start


def _read_stop(message: _Object) -> StopVerb:
    reason = message.get("reason", "cancelled")
    return StopVerb(
        _text(message["id"]),
        _signal_number(message.get("signal", 15)),
        _seconds(message.get("grace", 15.0)),
        "cancelled" if reason is None else _text(reason),
    )


def _read_signal(message: _Object) -> SignalVerb:
    number = _signal_number(message["signal"])
    return SignalVerb(_text(message["id"]), number)


def _read_lease(message: _Object) -> LeaseVerb:
    until = _seconds_or_none(message["until"])
    return LeaseVerb(_text(message["cluster"]), until)


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


def _seconds(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{value!r} is not a number of seconds")
    return number


def _seconds_or_none(value: object) -> float | None:
    return None if value is None else _seconds(value)


def _signal_number(value: object) -> int:
    if not isinstance(value, int) or not 1 <= value <= 64:
        raise ValueError(f"no signal {value!r}")
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _notes(value: object) -> Notes:
    return Notes({}) if not value else cast("Notes", _read_notes(_mapping(value)))


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
    "dict[str, float]": _mapping,
    "dict[str, dict[str, int]]": _mapping,
    "Usage | None": _usage,
    "Notes | Any": _notes,
    "list[StateEntry]": _states,
    "Any": lambda value: value,
    "object": lambda value: value,
}
"""How a value is checked, by the type of its field."""
_EXACT = {
    name: type_
    for type_ in (str, int, bool, float)
    for name in (type_.__name__, f"{type_.__name__} | None")
}
"""Values of these types need no check: verbs, which come from others, have readers."""

_REQUIRED = object()
_DEFAULTS: dict[str, object] = {
    **dict.fromkeys(("offset", "stderr_offset", "output_bytes", "placed_at"), 0),
    **dict.fromkeys(("at", "ticks"), 0),
    "allocation": {},
    "begun": True,
    "boot": "",
    "cluster": "",
    "e": "state",
    "leases": {},
    "version": 1,
}
"""What stands for a key that is missing or null, if not None or False."""


def _reader(
    kind: Any,  # noqa: ANN401 -- any class of the protocol
) -> Callable[[_Object], object]:
    """Return what reads a message field by field, each checked by its type."""
    types = {name: _as_written(type_) for name, type_ in kind.__annotations__.items()}
    fields = [
        (name, _EXACT.get(type_), _CHECKS[type_], _default(name, type_))
        for name, type_ in types.items()
    ]

    def read(message: _Object) -> object:
        get, values = message.get, []
        for name, exact, check, default in fields:
            value = get(name)
            if type(value) is not exact:
                if value is None:
                    value = message[name] if default is _REQUIRED else default
                value = check(value)
            values.append(value)
        return kind._make(values)

    return read


def _as_written(type_: object) -> str:
    return str(getattr(type_, "__forward_arg__", type_))


def _default(name: str, type_: str) -> object:
    if name == "until":
        return _REQUIRED
    if type_ == "bool":
        return _DEFAULTS.get(name, False)
    if type_ in ("Any", "object") or type_.endswith("None"):
        return None
    return _DEFAULTS.get(name, _REQUIRED)


_read_notes, _read_state = map(_reader, (Notes, StateEntry))
_VERBS: dict[str, Callable[[_Object], object]] = {
    "start": _read_start,
    "stop": _read_stop,
    "signal": _read_signal,
    "lease": _read_lease,
    **{
        name_of(kind): _reader(kind)
        for kind in (SuspendVerb, ContinueVerb, RecallVerb, ForgetVerb)
    },
    "hello": lambda message: HelloVerb(),
    "leave": lambda message: LeaveVerb(),
}
_ENTRIES: dict[str, Callable[[_Object], object]] = {
    **{name_of(kind): _reader(kind) for kind in get_args(Entry)},
    "ended": _reader(ExitEntry),
    "exited": _reader(ExitEntry),
}
