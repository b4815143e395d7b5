"""Every decision of the keeper, without I/O: `step(event, now) -> effects`.

This module deals with daemons: what they ask for, what they are told, and when the
keeper is not needed any more; `custody` deals with the attempts. An attempt's id is
started at most once, and its exit is kept until it is forgotten. `now` is in seconds
and never runs backwards. Processes, files, sockets and clocks belong to the shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grass.keeper.core import effects, events
from grass.keeper.core.lease import CUT_OFF, Lease, Leases, cluster_of, entry
from grass.keeper.core.start_failures import OUTPUT, PROCESSES, RECORDS, Hindrance
from grass.keeper.core.supervision import SIGTERM, Custody

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.core.attempt import Attempt
    from grass.keeper.core.deadlines import Timers

VERSION = 2
"""Grows with the verbs: from 2 on `lease` is known."""
FIRST_DAEMON_S = 30.0
SYNC_S = 0.5
"""How long an exit waits for others before it is synced, if nobody has taken it."""
SOCKET_CHECK_S = 2.0
"""How often to look, while no daemon is connected, whether one could be."""


class KeeperCore:
    """The keeper's state and rules."""

    def __init__(self, pid: int, boot: str) -> None:
        """Begin empty; `pid` and `boot` are only repeated to daemons."""
        self._pid = pid
        self._boot = boot
        self._custody = Custody()
        self.leases = Leases()
        self._connections: set[int] = set()
        self._may_leave = False
        self._asked_to_leave = False
        self._socket_missing = False
        self._hindrance = Hindrance(self.timers, self._want)
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            events.Opened: self._opened,
            events.Closed: self._closed,
            events.Hello: self._hello,
            events.Start: self._start,
            events.Recall: self._recall,
            events.Stop: self._stop,
            events.Signal: self._signal,
            events.Suspend: self._suspend,
            events.Continue: self._continue,
            events.Forget: self._forget,
            events.Lease: self._set_lease,
            events.Leave: self._leave,
            events.SocketMissing: self._socket_is_missing,
            events.Restored: self._restored,
            events.Synced: self._synced,
            events.Tick: self._tick,
            events.Flushed: self._flushed,
            events.Probed: self._probed,
            events.Spawned: self._spawned,
            events.CannotSpawn: self._cannot_spawn,
            **self._custody.handlers(),
        }

    def step(self, event: events.Event, now: float) -> list[effects.Effect]:
        """Take one event and return what is to be done about it."""
        # Before anything else: nothing starts because a timer came late, and a lease
        # that is renewed too late does not save what the broker has given up by then.
        for lease in self.leases.run_out(now):
            self._cut_off(lease, now)
        self._handlers[type(event)](event, now)
        if self._custody.syncing.is_due:
            self._plan_sync(now)
        if self._asked_to_leave or not self._connections:
            self._consider_leaving(now)
        return self._custody.take_effects()

    def is_due(self, spec: events.Spec) -> bool:
        """Tell whether the attempt is still to be spawned, neither stopped nor back."""
        return self._custody.is_due(spec)

    def spawning(self, id: str) -> list[events.Entry]:
        """Return what must be on record before this attempt, the next, is spawned."""
        return self._custody.spawning(id)

    def put_off(self, spec: events.Spec) -> None:
        """Have the attempt wait in line: that it starts cannot be put on record.

        Nothing ran and nothing is on record, so it is neither failed nor lost: it may
        still be stopped or recalled, and a successor is asked for it again. Handed back
        it would be placed again at once, and come round and round.
        """
        self._custody.put_off(spec)

    @property
    def may_start(self) -> bool:
        """Tell whether a start may be tried now, or only after a pause."""
        return self._hindrance.may_try

    def start_later(self, now: float) -> None:
        """Plan a turn for those who are left in line."""
        self._hindrance.try_again(now)

    def snapshot(self) -> list[events.Entry]:
        """Return the shortest records from which a successor learns all of this."""
        kept = self.attempts.values()
        entries = [one for attempt in kept for one in attempt.entries()]
        return self.leases.entries() + entries

    @property
    def attempts(self) -> dict[str, Attempt]:
        """Return the attempts that are not forgotten, by id."""
        return self._custody.attempts

    @property
    def timers(self) -> Timers:
        """Return the deadlines; the shell asks for the next one."""
        return self._custody.timers

    @property
    def empty(self) -> bool:
        """Tell whether there are neither jobs nor exits to keep."""
        return not self._custody.attempts

    def _want(self, effect: effects.Effect) -> None:
        self._custody.want(effect)

    def _opened(self, event: events.Opened, now: float) -> None:
        self._connections.add(event.connection)
        self._may_leave = True
        self.timers.cancel("first daemon", "")
        self.timers.cancel("socket", "")

    def _closed(self, event: events.Closed, now: float) -> None:
        self._connections.discard(event.connection)

    def _hello(self, event: events.Hello, now: float) -> None:
        greeting = {
            "e": "hello",
            "version": VERSION,
            "pid": self._pid,
            "boot": self._boot,
            "leases": self.leases.untils(),
            "unable": self._hindrance.told,
            "attempts": [each.full_entry() for each in self.attempts.values()],
        }
        self._want(effects.Greet(event.connection, greeting))

    def _start(self, event: events.Start, now: float) -> None:
        known = self.attempts.get(event.spec.id)
        if known is not None:
            self._answer_with_state(event.connection, known)
        elif self.leases.is_over(event.spec.id):
            self._custody.refuse(event.spec, event.after, CUT_OFF)
        else:
            self._custody.take(event.spec, event.after)

    def _recall(self, event: events.Recall, now: float) -> None:
        for id in event.ids:
            if self._custody.recall(id):
                self._want(effects.Tell({"e": "recalled", "id": id}))

    def _stop(self, event: events.Stop, now: float) -> None:
        attempt = self._attempt_or_error(event.connection, event.id)
        if attempt is None:
            return
        if attempt.state == "exited":
            self._answer_with_state(event.connection, attempt)
        else:
            self._custody.stop(attempt, event, now)

    def _signal(self, event: events.Signal, now: float) -> None:
        attempt = self._attempt_or_error(event.connection, event.id)
        if attempt is not None and attempt.state not in ("waiting", "exited"):
            self._want(effects.SignalTree(attempt.id, (event.signal,)))

    def _suspend(self, event: events.Suspend, now: float) -> None:
        attempt = self._attempt_or_error(event.connection, event.id)
        if attempt is not None and attempt.state not in ("ended", "exited"):
            self._custody.suspend(attempt, now)

    def _continue(self, event: events.Continue, now: float) -> None:
        attempt = self._attempt_or_error(event.connection, event.id)
        if attempt is not None and attempt.state != "exited":
            self._custody.go_on(attempt)

    def _forget(self, event: events.Forget, now: float) -> None:
        gone = [id for id in event.ids if self._custody.forget(id)]
        if gone:
            self._want(effects.Record({"e": "forgotten", "ids": gone}))

    def _set_lease(self, event: events.Lease, now: float) -> None:
        self.leases.set(event.cluster, event.until)
        known = entry(event.cluster, event.until)
        self._want(effects.Record(known))
        self._want(effects.Reply(event.connection, {**known, "e": "leased"}))
        if event.until is None:
            self.timers.cancel("lease", event.cluster)
        else:
            self.timers.set("lease", event.cluster, event.until)

    def _cut_off(self, lease: Lease, now: float) -> None:
        """End a cluster's attempts by their own grace; what has ended is left to end.

        The grace counts from the lease's end: who slept through it has had it.
        """
        late_s = now - lease.until
        for attempt in list(self.attempts.values()):
            ours = cluster_of(attempt.id) == lease.cluster
            if ours and attempt.state not in ("ended", "exited"):
                grace = max(0.0, attempt.grace - late_s)
                wish = events.Stop(0, attempt.id, SIGTERM, grace, CUT_OFF)
                self._custody.stop(attempt, wish, now)

    def _leave(self, event: events.Leave, now: float) -> None:
        self._asked_to_leave = True

    def _attempt_or_error(self, connection: int, id: str) -> Attempt | None:
        attempt = self.attempts.get(id)
        if attempt is None:
            problem = {"e": "error", "id": id, "message": f"no attempt `{id}`"}
            self._want(effects.Reply(connection, problem))
        return attempt

    def _answer_with_state(self, connection: int, attempt: Attempt) -> None:
        known = attempt.full_entry()
        known["e"] = "started" if known["state"] == "running" else known["state"]
        self._want(effects.Reply(connection, known))

    def _restored(self, event: events.Restored, now: float) -> None:
        self.timers.set("first daemon", "", now + FIRST_DAEMON_S)
        if event.rebooted:
            self._custody.restore_exits(event.entries)
            return
        self._custody.restore(event.entries)
        self.leases.restore(event.entries)
        for cluster, until in self.leases.untils().items():
            self.timers.set("lease", cluster, until)

    def _tick(self, event: events.Tick, now: float) -> None:
        for purpose, id in self.timers.take_due(now):
            if purpose == "first daemon":
                self._may_leave = True
            elif purpose == "sync":
                self._sync()
            elif purpose == "try again":
                if not self._custody.in_line:
                    self._hindrance.look()
            elif purpose != "socket":
                self._custody.due(purpose, id, now)

    def _flushed(self, event: events.Flushed, now: float) -> None:
        if event.reason is None:
            self._hindrance.worked(RECORDS, now)
        else:
            self._hindrance.failed(RECORDS, event.reason, now)

    def _probed(self, event: events.Probed, now: float) -> None:
        if event.reason is None:
            self._hindrance.worked(PROCESSES, now)
            self._hindrance.worked(OUTPUT, now)
        else:
            self._cannot_start(event.reason, event.folder, now)

    def _spawned(self, event: events.Spawned, now: float) -> None:
        self._hindrance.worked(PROCESSES, now)
        if self.attempts[event.id].own_output:
            self._hindrance.worked(OUTPUT, now)
        self._custody.spawned(event, now)

    def _cannot_spawn(self, event: events.CannotSpawn, now: float) -> None:
        self._cannot_start(event.reason, event.folder, now)
        self._custody.cannot_spawn(event)

    def _cannot_start(self, reason: str, folder: str | None, now: float) -> None:
        what = PROCESSES if folder is None else OUTPUT
        self._hindrance.failed(what, reason, now, folder)

    def _plan_sync(self, now: float) -> None:
        if ("sync", "") not in self.timers:
            self.timers.set("sync", "", now + SYNC_S)

    def _sync(self) -> None:
        # Most exits are forgotten by now: the broker has committed them.
        if self._custody.syncing.begin():
            self._want(effects.Sync())

    def _synced(self, event: events.Synced, now: float) -> None:
        self._custody.syncing.end(done=event.done)

    def _socket_is_missing(self, event: events.SocketMissing, now: float) -> None:
        self._socket_missing = True

    def _consider_leaving(self, now: float) -> None:
        if not self._connections and ("socket", "") not in self.timers:
            self._socket_missing = False
            self._want(effects.CheckSocket())
            self.timers.set("socket", "", now + SOCKET_CHECK_S)
        if self._custody.live:
            return
        unreachable = self._socket_missing and not self._connections
        unused = self.empty and (self._may_leave or self._asked_to_leave)
        if unreachable or unused:
            self._want(effects.Exit())
