"""JSON lines between the keeper and a daemon, and the connection they travel on.

Messages are checked here, once: what leaves this module as an event can be trusted.
A line that is no JSON object breaks its connection; an object that makes no sense is
answered with an error. Text may carry bytes that are not UTF-8 as lone surrogates.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING

from grass.keeper.core import events

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_LIMIT = 64 << 20
BACKLOG_LIMIT = 16 << 20
_CHUNK = 1 << 18

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class BrokenLine(Exception):
    """The other side does not speak the protocol."""


class BadMessage(Exception):
    """A well-formed message that cannot be acted on; `id` when it named one."""

    def __init__(self, text: str, id: object = None) -> None:
        super().__init__(text)
        self.id = id


def encode(entry: events.Entry) -> bytes:
    """Write one entry as a line."""
    return _encode(entry).encode("ascii") + b"\n"


def decode(line: bytes) -> events.Entry:
    """Read one line, or raise BrokenLine."""
    try:
        message = _decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise BrokenLine(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise BrokenLine("not a JSON object")
    return message


def event_of(message: events.Entry, connection: int) -> events.Event:
    """Turn a message into the event it asks for, or raise BadMessage."""
    verb = message.get("v")
    reader = _READERS.get(verb) if isinstance(verb, str) else None
    if reader is None:
        raise BadMessage(f"unknown verb {verb!r}", message.get("id"))
    try:
        return reader(message, connection)
    except KeyError as error:
        text = f"`{verb}` without {error}"
    except (TypeError, ValueError, OverflowError) as error:
        text = f"`{verb}`: {error}"
    raise BadMessage(text, message.get("id"))


def _start(message: events.Entry, connection: int) -> events.Start:
    get = message.get
    spec = events.Spec(
        _text(message["id"]),
        _texts(message["argv"]),
        _environment(message["env"]),
        _text(message["cwd"]),
        int(get("umask", 0o022)) & 0o777,
        _text(message["output"]),
        None if get("stderr") is None else _text(message["stderr"]),
        _seconds(get("grace", 15.0)),
        None if get("time_limit") is None else _seconds(message["time_limit"]),
        None if get("max_output") is None else int(message["max_output"]),
        int(get("nice") or 0),
        None if get("cpus") is None else [int(cpu) for cpu in message["cpus"]],
        get("meta"),
        bool(get("own_output")),
    )
    if not spec.argv:
        raise ValueError("argv is empty")
    after = None if get("after") is None else _text(message["after"])
    return events.Start(connection, spec, after)


def _stop(message: events.Entry, connection: int) -> events.Stop:
    reason = message.get("reason", "cancelled")
    return events.Stop(
        connection,
        _text(message["id"]),
        _signal_number(message.get("signal", 15)),
        _seconds(message.get("grace", 15.0)),
        "cancelled" if reason is None else _text(reason),
    )


def _signal(message: events.Entry, connection: int) -> events.Signal:
    number = _signal_number(message["signal"])
    return events.Signal(connection, _text(message["id"]), number)


def _suspend(message: events.Entry, connection: int) -> events.Suspend:
    return events.Suspend(connection, _text(message["id"]))


def _continue(message: events.Entry, connection: int) -> events.Continue:
    return events.Continue(connection, _text(message["id"]))


def _recall(message: events.Entry, connection: int) -> events.Recall:
    return events.Recall(_texts(message["ids"]))


def _forget(message: events.Entry, connection: int) -> events.Forget:
    return events.Forget(_texts(message["ids"]))


def _lease(message: events.Entry, connection: int) -> events.Lease:
    until = message["until"]
    time = None if until is None else _seconds(until)
    return events.Lease(connection, _text(message["cluster"]), time)


def _hello(message: events.Entry, connection: int) -> events.Hello:
    return events.Hello(connection)


def _leave(message: events.Entry, connection: int) -> events.Leave:
    return events.Leave()


_READERS: dict[str, Callable[[events.Entry, int], events.Event]] = {
    "start": _start,
    "stop": _stop,
    "signal": _signal,
    "suspend": _suspend,
    "continue": _continue,
    "recall": _recall,
    "forget": _forget,
    "lease": _lease,
    "hello": _hello,
    "leave": _leave,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


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


def _seconds(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{value!r} is not a number of seconds")
    return number


def _signal_number(value: object) -> int:
    if not isinstance(value, int) or not 1 <= value <= 64:
        raise ValueError(f"no signal {value!r}")
    return value


def _peer(channel: socket.socket) -> int:
    """Return the pid at the other end."""
    return _credentials(channel)[0]


def peer_uid(channel: socket.socket) -> int:
    """Return the user at the other end, as the kernel knows it."""
    return _credentials(channel)[1]


def _credentials(channel: socket.socket) -> tuple[int, int, int]:
    size = struct.calcsize("3i")
    raw = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, uid, gid = struct.unpack("3i", raw)
    return pid, uid, gid


class Connection:
    """One daemon's end: lines in, entries out, neither ever waiting."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self.descriptor = channel.fileno()
        self.peer = _peer(channel)
        self.listening = False
        self.writing = False
        self._channel = channel
        self._received = bytearray()
        self._waiting = bytearray()
        self._allowed = BACKLOG_LIMIT

    def receive(self) -> list[bytes] | None:
        """Return the whole lines that have come; None at the end of the stream."""
        known = len(self._received)
        ended = not self._read_all()
        lines: list[bytearray] = []
        # Only what is new is looked through, or a long line would cost its square.
        if self._received.find(b"\n", known) >= 0:
            *lines, self._received = self._received.split(b"\n")
        if len(self._received) > LINE_LIMIT:
            raise BrokenLine("line too long")
        if ended and not lines:
            return None
        return [bytes(line) for line in lines if line]

    def _read_all(self) -> bool:
        while True:
            try:
                chunk = self._channel.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError:
                return False
            self._received += chunk
            if len(chunk) < _CHUNK or len(self._received) > LINE_LIMIT:
                return bool(chunk)

    def put(self, data: bytes) -> None:
        """Queue bytes for the next flush."""
        self._waiting += data

    def greet(self, data: bytes) -> None:
        """Queue the full state, whose size does not count as a backlog."""
        self._allowed = BACKLOG_LIMIT + len(data)
        self._waiting += data
        self.listening = True

    def flush(self) -> bool:
        """Send what the socket takes; False when the connection is to be dropped."""
        if self._waiting:
            try:
                sent = self._channel.send(self._waiting)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return False
            del self._waiting[:sent]
        return len(self._waiting) <= self._allowed

    @property
    def backlog(self) -> int:
        """Tell how many bytes the other side has not taken."""
        return len(self._waiting)

    def close(self) -> None:
        """Close the socket."""
        self._channel.close()
