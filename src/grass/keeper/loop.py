"""The keeper's loop: waits, feeds the core, carries out what it wants, answers.

One turn reads all that is ready before it acts, writes an attempt's record right before
its spawn, writes all records before anything is sent, and sends at most once per
connection before and after the spawns. With nothing to do it sleeps until the next
deadline, or for ever.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from grass.keeper import effects, events
from grass.keeper.crash import crash_point
from grass.keeper.jobs import Jobs, utc_us
from grass.keeper.lease import LONGEST_SLEEP_S
from grass.keeper.wire import (
    BadMessage,
    BrokenLine,
    Connection,
    decode,
    encode,
    event_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.core import KeeperCore
    from grass.keeper.records import Records

# The sleep's own clock stands still while the machine is suspended; deadlines do not.
_LONGEST_SLEEP_S = 60.0
# The news of a start waits this long for that of an exit: a short job then costs the
# daemon one wake-up and one commit instead of two.
_HOLD_S = 0.002


class Loop:
    """Ties the core to sockets, records and processes."""

    def __init__(
        self,
        core: KeeperCore,
        records: Records,
        jobs: Jobs,
        listener: socket.socket,
        socket_path: str,
    ) -> None:
        """Take over the listening socket."""
        self._core = core
        self._records = records
        self._jobs = jobs
        self._listener = listener
        self._socket_path = socket_path
        self._epoll = select.epoll()
        self._ready: dict[int, Callable[[], None]] = {}
        self._connections: dict[int, Connection] = {}
        self._starts: deque[events.Spec] = deque()
        self._behind = False
        self._done = False
        self._urgent = False
        self._hold_until: float | None = None
        self._actions: dict[type, Callable[[Any], events.Event | None]] = {
            effects.Record: self._record,
            effects.Publish: self._publish,
            effects.Tell: self._tell,
            effects.Reply: self._reply,
            effects.Greet: self._greet,
            effects.Spawn: self._spawn_later,
            effects.GiveUp: self._give_up,
            effects.SignalTree: jobs.signal_tree,
            effects.KillTree: jobs.kill_tree,
            effects.Survey: jobs.survey,
            effects.Enclose: jobs.enclose,
            effects.Measure: jobs.measure,
            effects.Truncate: jobs.truncate,
            effects.Adopt: jobs.adopt,
            effects.Search: jobs.search,
            effects.Inspect: jobs.inspect,
            effects.Know: jobs.know,
            effects.Release: jobs.release,
            effects.CheckSocket: self._check_socket,
            effects.Exit: self._exit,
        }
        jobs.connect(self.watch, self.watch_for_end, self.unwatch, self.feed)
        self.watch(listener.fileno(), self._accept)

    def run(self) -> None:
        """Turn until the core wants to exit."""
        while not self._done:
            self.turn()

    def leave(self) -> None:
        """Take down the socket and empty the records, unless exits are kept there."""
        with suppress(OSError):
            os.unlink(self._socket_path)
        with suppress(OSError):
            if self._core.empty:
                self._records.rewrite([])
        self._jobs.leave()

    def turn(self) -> None:
        """Wait for something, then do all that follows from it."""
        for descriptor, _ in self._epoll.poll(self._sleep()):
            ready = self._ready.get(descriptor)
            if ready is not None:
                _guarded(ready)
        due = self._core.timers.next_due()
        if due is not None and due <= boot_s():
            _guarded(lambda: self.feed(events.Tick()))
        _guarded(self.finish_turn)

    def _sleep(self) -> float | None:
        due = self._core.timers.next_due()
        if self._hold_until is not None:
            due = self._hold_until if due is None else min(due, self._hold_until)
        if due is None:
            return None
        leased = self._core.leases.watched and not self._core.empty
        longest = LONGEST_SLEEP_S if leased else _LONGEST_SLEEP_S
        return min(longest, max(0.0, due - boot_s()))

    def finish_turn(self) -> None:
        """Write, answer, spawn, write and answer again."""
        self._jobs.look_away()
        if self._starts:
            self._flush_records()
            self._flush_connections()
        while self._starts:
            self._start(self._starts.popleft())
        self._flush_records()
        if not self._may_go_on_holding():
            self._flush_connections()

    def _start(self, spec: events.Spec) -> None:
        for entry in self._core.spawning(spec.id):
            self._records.add(encode(entry))
        # One write for this attempt and for the outcome of the one before it.
        event = self._spawn(spec) if self._flush_records() else _no_space(spec)
        crash_point("keeper.after-spawn")
        self.feed(event)

    def _may_go_on_holding(self) -> bool:
        if self._urgent or self._hold_until is None:
            return False
        return boot_s() < self._hold_until

    def _spawn(self, spec: events.Spec) -> events.Event:
        crash_point("keeper.before-spawn")
        try:
            return self._jobs.spawn(spec)
        except Exception as error:  # noqa: BLE001 - every start is answered
            sys.excepthook(*sys.exc_info())
            reason = f"could not start: {error}"
            return events.SpawnFailed(spec.id, reason, utc_us())

    def feed(self, event: events.Event) -> None:
        """Tell the core, do what it wants, and tell it what came of that."""
        waiting = deque([event])
        while waiting:
            for effect in self._core.step(waiting.popleft(), boot_s()):
                answer = self._actions[type(effect)](effect)
                if answer is not None:
                    waiting.append(answer)

    def watch(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever the descriptor has something."""
        self._ready[descriptor] = ready
        self._epoll.register(descriptor, select.EPOLLIN)

    def watch_for_end(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Call `ready` when the other side of the descriptor has hung up."""
        self._ready[descriptor] = ready
        self._epoll.register(descriptor, select.EPOLLHUP)

    def unwatch(self, descriptor: int) -> None:
        """Stop waiting for the descriptor, if it was waited for."""
        if self._ready.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def children_ended(self) -> None:
        """Collect the children that ended and tell the core."""
        for event in self._jobs.reap():
            crash_point("keeper.after-reap")
            self.feed(event)

    # Connections.

    def _accept(self) -> None:
        try:
            channel = self._listener.accept()[0]
        except OSError:
            return
        connection = Connection(channel)
        self._connections[connection.descriptor] = connection
        self._jobs.spare(connection.peer)
        self.watch(connection.descriptor, lambda: self._receive(connection))
        self.feed(events.Opened(connection.descriptor))

    def _receive(self, connection: Connection) -> None:
        try:
            lines = connection.receive()
            for line in lines or ():
                self._take(connection, decode(line))
        except BrokenLine as error:
            connection.put(encode({"e": "error", "message": str(error)}))
            connection.flush()
            lines = None
        if lines is None:
            self._drop(connection)

    def _take(self, connection: Connection, message: events.Entry) -> None:
        try:
            event = event_of(message, connection.descriptor)
        except BadMessage as error:
            answer = {"e": "error", "message": str(error), "id": error.id}
            connection.put(encode(answer))
            self._urgent = True
        else:
            self.feed(event)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.descriptor, None) is None:
            return
        self.unwatch(connection.descriptor)
        if all(other.peer != connection.peer for other in self._connections.values()):
            self._jobs.spare_no_more(connection.peer)
        connection.close()
        self.feed(events.Closed(connection.descriptor))

    def _flush_connections(self) -> None:
        self._urgent = False
        self._hold_until = None
        for connection in list(self._connections.values()):
            if not connection.backlog and not connection.writing:
                continue
            crash_point("keeper.before-publish")
            if not connection.flush():
                self._drop(connection)
            elif bool(connection.backlog) != connection.writing:
                connection.writing = not connection.writing
                mask = select.EPOLLOUT if connection.writing else 0
                self._epoll.modify(connection.descriptor, select.EPOLLIN | mask)
            crash_point("keeper.after-publish")

    # Effects that are not about processes.

    def _record(self, effect: effects.Record) -> None:
        self._records.add(encode(effect.entry))

    def _publish(self, effect: effects.Publish) -> None:
        line = encode(effect.entry)
        self._records.add(line)
        if effect.urgent:
            self._urgent = True
        elif self._hold_until is None:
            self._hold_until = boot_s() + _HOLD_S
        self._put_to_listening(line)

    def _tell(self, effect: effects.Tell) -> None:
        self._urgent = True
        self._put_to_listening(encode(effect.entry))

    def _put_to_listening(self, line: bytes) -> None:
        for connection in self._connections.values():
            if connection.listening:
                connection.put(line)

    def _reply(self, effect: effects.Reply) -> None:
        self._urgent = True
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.put(encode(effect.entry))

    def _greet(self, effect: effects.Greet) -> None:
        self._urgent = True
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.greet(encode(effect.entry))

    def _spawn_later(self, effect: effects.Spawn) -> None:
        self._starts.append(effect.spec)

    def _give_up(self, effect: effects.GiveUp) -> events.SpawnFailed:
        return events.SpawnFailed(effect.id, effect.reason, utc_us())

    def _flush_records(self) -> bool:
        try:
            self._records.flush(self._core.snapshot, self._core.empty)
        except OSError as error:
            if not self._behind:
                sys.stderr.write(f"records cannot be written: {error}\n")
            self._behind = True
            return False
        self._behind = False
        return True

    def _check_socket(self, effect: effects.CheckSocket) -> events.Event | None:
        there = os.path.exists(self._socket_path)
        return None if there else events.SocketMissing()

    def _exit(self, effect: effects.Exit) -> None:
        # A daemon may be knocking already; then there is a reason to stay.
        knocking = select.select([self._listener], [], [], 0)[0]
        self._done = not knocking


def boot_s() -> float:
    """Return seconds since boot, the time the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _no_space(spec: events.Spec) -> events.SpawnFailed:
    reason = "could not start: no space left on device for the keeper's records"
    return events.SpawnFailed(spec.id, reason, utc_us())


def _guarded(act: Callable[[], None]) -> None:
    """Act; a defect is logged, as the parent of all jobs must not die of it."""
    try:
        act()
    except Exception:  # noqa: BLE001 - see above
        sys.excepthook(*sys.exc_info())
