"""Every decision of the keeper, without I/O: `step(event, now) -> effects`.

This module deals with daemons: what they ask for, what they are told, and when the
keeper exits. `starts`, `running`, `exits` and `takeover` deal with the attempts. An
attempt's id is started at most once, and its exit is kept until it is forgotten. `now`
is in seconds and never goes back. Processes, files, sockets and clocks belong to the
shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grass.keeper import protocol
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.attempt import StopPlan
from grass.keeper.core.exits import Exits
from grass.keeper.core.keeper_state import KeeperState
from grass.keeper.core.lease import ClusterLease, Leases
from grass.keeper.core.runners import Runners
from grass.keeper.core.running import SIGTERM, RunningAttempts
from grass.keeper.core.start_failures import OUTPUT, PROCESSES, RECORDS, StartFailures
from grass.keeper.core.starts import Starts
from grass.keeper.core.takeover import Takeover
from grass.keeper.exit_reasons import CUT_OFF, GUEST_GAVE_UP, ORPHANED

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.core.attempt import KeeperAttempt

FIRST_DAEMON_S = 30.0
SYNC_S = 0.5
"""How long an exit waits for others before it is synced, if it is not forgotten."""
FOLDER_PAUSE_S = 0.2
"""How long after its loss the keeper's folder is put back."""
SOCKET_CHECK_S = 2.0
"""How often to check the socket's file while no daemon is connected."""


class KeeperCore:
    """The keeper's state and rules."""

    def __init__(self, pid: int, boot: str) -> None:
        """Begin empty; `pid` and `boot` are only repeated to daemons."""
        self._pid = pid
        self._boot = boot
        self._state = state = KeeperState()
        self.attempts, self.timers = state.attempts, state.timers
        self.runners = Runners(state)
        self.starts = Starts(state, self.runners)
        self.start_failures = StartFailures(state)
        self.leases = Leases()
        self._running = RunningAttempts(state, self.runners)
        self._exits = Exits(state, self.starts, self._running, self.runners)
        self._takeover = Takeover(state, self._running, self._exits)
        self._connections: set[int] = set()
        self.controllers: list[str] = []
        """Controllers of cgroups that can limit attempts, as daemons are told."""
        self.is_lent = False
        """Whether an engine has lent this machine: a daemon that has gone from here
        does not come back, so exits are kept for nobody."""
        self._may_leave = False
        self._asked_to_leave = False
        self._socket_missing = False
        self._handlers = self._event_handlers()
        self._verbs = self._verb_handlers()
        self._due: dict[str, Callable[[KeeperAttempt, float], None]] = {
            "kill": self._running.kill,
            "leftovers": self._exits.look_for_leftovers,
            "time limit": self._running.time_is_up,
            "warning": self._running.warn,
            "output": self._running.measure_output,
            "unclear": self._takeover.inspect,
            "suspend": self._running.suspend_again,
            "write": self._exits.write,
        }
        self._moments: dict[str, Callable[[float], None]] = {
            "young": self._running.young_are_due,
            "enclose": self._running.enclosing_is_due,
            "runners": self.runners.idle_are_due,
            "sync": self._sync,
            "folder": self._check_socket,
        }

    def _event_handlers(self) -> dict[type, Callable[[Any, float], None]]:
        return {
            events.Opened: self._opened,
            events.Closed: self._closed,
            events.VerbReceived: self._verb_received,
            events.SocketMissing: self._socket_is_missing,
            events.FolderLost: self._folder_lost,
            events.Terminated: self._terminated,
            events.Restored: self._restored,
            events.Synced: self._synced,
            events.TimerTick: self._tick,
            events.Flushed: self._flushed,
            events.Probed: self._probed,
            events.Spawned: self._spawned,
            events.CannotSpawn: self._cannot_spawn,
            events.SpawnFailed: self._exits.spawn_failed,
            events.ChildEnded: self._exits.child_ended,
            events.Answered: self._exits.answered,
            events.Surveyed: self._exits.surveyed,
            events.Forked: self._running.forked,
            events.Enclosed: self._running.enclosed,
            events.OutputMeasured: self._running.measured,
            events.Adopted: self._takeover.adopted,
            events.Missing: self._takeover.missing,
            events.AdoptedEnded: self._takeover.adopted_ended,
            events.AdoptedUnclear: self._takeover.adopted_unclear,
            events.GivenBack: self._exits.given_back,
            events.Written: self._exits.written,
        }

    def _verb_handlers(self) -> dict[type, Callable[[Any, int, float], None]]:
        return {
            protocol.HelloVerb: self._hello,
            protocol.StartVerb: self._start,
            protocol.RecallVerb: self._recall,
            protocol.AdoptVerb: self._adopt,
            protocol.StopVerb: self._stop,
            protocol.SignalVerb: self._signal,
            protocol.SuspendVerb: self._suspend,
            protocol.ContinueVerb: self._continue,
            protocol.GiveBackVerb: self._give_back,
            protocol.ForgetVerb: self._forget,
            protocol.LeaseVerb: self._set_lease,
            protocol.LeaveVerb: self._leave,
        }

    def step(self, event: events.KeeperEvent, now: float) -> list[effects.Effect]:
        """Handle one event and return what is to be done about it."""
        # First of all: nothing may start because a timer came late, and a lease that
        # is renewed too late does not save what the broker has given up by then.
        for lease in self.leases.run_out(now):
            self._cut_off(lease, now)
        self._handlers[type(event)](event, now)
        if self._exits.unsynced.are_due:
            self._plan_sync(now)
        if self._asked_to_leave or not self._connections:
            self._consider_leaving(now)
        return self._state.take_effects()

    def snapshot(self) -> list[protocol.Entry]:
        """Return the shortest records from which a successor can restore all this."""
        kept = self.attempts.values()
        entries = [one for attempt in kept for one in attempt.entries()]
        return self.leases.entries() + entries

    @property
    def empty(self) -> bool:
        """Tell whether there are neither jobs nor exits."""
        return not self.attempts

    # Daemons.

    def _opened(self, event: events.Opened, now: float) -> None:
        self._connections.add(event.connection)
        self._may_leave = True
        self.timers.cancel("first daemon", "")
        self.timers.cancel("socket", "")

    def _closed(self, event: events.Closed, now: float) -> None:
        self._connections.discard(event.connection)

    def _verb_received(self, event: events.VerbReceived, now: float) -> None:
        self._verbs[type(event.verb)](event.verb, event.connection, now)

    def _hello(self, _: protocol.HelloVerb, connection: int, now: float) -> None:
        hello = protocol.HelloEntry(
            protocol.VERSION,
            self._pid,
            self._boot,
            self.leases.untils(),
            self.start_failures.told,
            [attempt.state_entry() for attempt in self.attempts.values()],
            self.controllers,
        )
        self._state.want(effects.SendHello(connection, hello))

    def _start(self, start: protocol.StartVerb, connection: int, now: float) -> None:
        known = self.attempts.get(start.id)
        if known is not None:
            self._answer_with_state(connection, known)
        elif self.leases.is_over(start.id):
            self.starts.refuse(start, CUT_OFF)
        else:
            self.starts.add(start)

    def _recall(self, verb: protocol.RecallVerb, connection: int, now: float) -> None:
        for id in verb.ids:
            if self.starts.recall(id):
                self._state.want(effects.Tell(protocol.RecalledEntry(id)))

    def _adopt(self, verb: protocol.AdoptVerb, connection: int, now: float) -> None:
        known = self.attempts.get(verb.id)
        if known is not None:
            self._answer_with_state(connection, known)
        else:
            self._takeover.search(verb)

    def _stop(self, verb: protocol.StopVerb, connection: int, now: float) -> None:
        attempt = self._attempt_or_error(connection, verb.id)
        if attempt is None:
            return
        if attempt.state == "exited":
            self._answer_with_state(connection, attempt)
        elif not attempt.gave_back:
            plan = StopPlan(now + verb.grace, verb.signal, verb.reason)
            self._end(attempt, plan, now)

    def _end(self, attempt: KeeperAttempt, plan: StopPlan, now: float) -> None:
        """Stop an attempt, or give it up if it has not begun."""
        if self.starts.withdraw(attempt.id):
            self.starts.give_up(attempt, plan.reason or "")
        else:
            self._running.stop(attempt, plan, now)

    def _signal(self, verb: protocol.SignalVerb, connection: int, now: float) -> None:
        attempt = self._attempt_or_error(connection, verb.id)
        if attempt is not None and attempt.state not in ("waiting", "exited"):
            self._state.want(effects.SignalHandlers(attempt.id, verb.signal))

    def _suspend(self, verb: protocol.SuspendVerb, connection: int, now: float) -> None:
        attempt = self._attempt_or_error(connection, verb.id)
        if attempt is not None and attempt.state not in ("ended", "exited"):
            self._running.suspend(attempt, now)

    def _continue(
        self, verb: protocol.ContinueVerb, connection: int, now: float
    ) -> None:
        attempt = self._attempt_or_error(connection, verb.id)
        if attempt is not None and attempt.state != "exited":
            self._running.resume(attempt)

    def _give_back(
        self, verb: protocol.GiveBackVerb, connection: int, now: float
    ) -> None:
        attempt = self._attempt_or_error(connection, verb.id)
        if attempt is None or not attempt.is_guest:
            return
        if self.starts.withdraw(attempt.id):
            self.starts.give_up(attempt, GUEST_GAVE_UP)
        else:
            self._state.want(effects.EndGuest(verb.id, verb.code))

    def _forget(self, verb: protocol.ForgetVerb, connection: int, now: float) -> None:
        gone = [id for id in verb.ids if self._exits.forget(id)]
        if gone:
            self._state.want(effects.Record(protocol.ForgottenEntry(gone)))

    def _set_lease(self, verb: protocol.LeaseVerb, connection: int, now: float) -> None:
        cluster, until = verb
        self.leases.set(cluster, until)
        self._state.want(effects.Record(protocol.LeaseEntry(cluster, until)))
        confirmed = protocol.LeasedEntry(cluster, until)
        self._state.want(effects.Reply(connection, confirmed))
        if until is None:
            self.timers.cancel("lease", cluster)
        else:
            self.timers.set("lease", cluster, until)

    def _cut_off(self, lease: ClusterLease, now: float) -> None:
        """Stop a cluster's attempts, each with its own grace, unless they have ended.

        The grace counts from the lease's end, also on a machine that slept meanwhile.
        """
        late_s = now - lease.until
        for attempt in list(self.attempts.values()):
            ours = protocol.cluster_of(attempt.id) == lease.cluster
            if ours and attempt.state not in ("ended", "exited"):
                grace = max(0.0, attempt.spawning.grace - late_s)
                plan = StopPlan(now + grace, SIGTERM, CUT_OFF)
                self._end(attempt, plan, now)

    def _leave(self, _: protocol.LeaveVerb, connection: int, now: float) -> None:
        self._asked_to_leave = True

    def _attempt_or_error(self, connection: int, id: str) -> KeeperAttempt | None:
        attempt = self.attempts.get(id)
        if attempt is None:
            problem = protocol.ErrorEntry(f"no attempt `{id}`", id)
            self._state.want(effects.Reply(connection, problem))
        return attempt

    def _answer_with_state(self, connection: int, attempt: KeeperAttempt) -> None:
        known = attempt.state_entry()
        kind = "started" if known.state == "running" else known.state
        self._state.want(effects.Reply(connection, known._replace(e=kind)))

    # The keeper itself.

    def _restored(self, event: events.Restored, now: float) -> None:
        self.timers.set("first daemon", "", now + FIRST_DAEMON_S)
        if event.rebooted:
            self._takeover.restore_exits(event.entries)
            return
        self._takeover.restore(event.entries)
        self.leases.restore(event.entries)
        for cluster, until in self.leases.untils().items():
            self.timers.set("lease", cluster, until)

    def _tick(self, event: events.TimerTick, now: float) -> None:
        for purpose, id in self.timers.take_due(now):
            if purpose in self._due:
                if (attempt := self.attempts.get(id)) is not None:
                    self._due[purpose](attempt, now)
            elif purpose in self._moments:
                self._moments[purpose](now)
            elif purpose == "first daemon":
                self._may_leave = True
            elif purpose == "try again" and not self.starts.any_due:
                self.start_failures.probe()

    def _flushed(self, event: events.Flushed, now: float) -> None:
        self.runners.records_work = event.reason is None
        if event.reason is None:
            self.start_failures.worked(RECORDS, now)
        else:
            self.runners.dismiss_idle()
            self.start_failures.failed(RECORDS, event.reason, now)

    def _probed(self, event: events.Probed, now: float) -> None:
        if event.reason is None:
            self.start_failures.worked(PROCESSES, now)
            self.start_failures.worked(OUTPUT, now)
        else:
            self._cannot_start(event.reason, event.folder, now)

    def _spawned(self, event: events.Spawned, now: float) -> None:
        self.start_failures.worked(PROCESSES, now)
        if self.attempts[event.id].spawning.own_output:
            self.start_failures.worked(OUTPUT, now)
        self._running.spawned(event, now)

    def _cannot_spawn(self, event: events.CannotSpawn, now: float) -> None:
        self._cannot_start(event.reason, event.folder, now)
        self._exits.cannot_spawn(event, now)

    def _cannot_start(self, reason: str, folder: str | None, now: float) -> None:
        what = PROCESSES if folder is None else OUTPUT
        if folder is None:
            self.runners.dismiss_idle()
        self.start_failures.failed(what, reason, now, folder)

    def _plan_sync(self, now: float) -> None:
        if ("sync", "") not in self.timers:
            self.timers.set("sync", "", now + SYNC_S)

    def _sync(self, now: float) -> None:
        # Most exits are forgotten by now: the broker has committed them.
        if self._exits.unsynced.begin():
            self._state.want(effects.Sync())

    def _synced(self, event: events.Synced, now: float) -> None:
        self._exits.unsynced.end(done=event.done)

    def _socket_is_missing(self, event: events.SocketMissing, now: float) -> None:
        self._socket_missing = True
        if event.ends_jobs and event.replaced:
            # The other keeper has found the jobs, and they go on.
            self._state.want(effects.Exit())
        elif event.ends_jobs:
            for attempt in list(self.attempts.values()):
                if attempt.state not in ("ended", "exited"):
                    kill_at = now + attempt.spawning.grace
                    self._end(attempt, StopPlan(kill_at, SIGTERM, ORPHANED), now)

    def _folder_lost(self, event: events.FolderLost, now: float) -> None:
        """Put the folder back soon: it may be that all of the home is being deleted."""
        self.timers.set("folder", "", now + FOLDER_PAUSE_S)

    def _terminated(self, event: events.Terminated, now: float) -> None:
        """End the jobs if no daemon can reach this keeper; a logout means nothing."""
        if not self._connections:
            self._state.want(effects.CheckSocket(ends_jobs=True))

    def _check_socket(self, now: float) -> None:
        self._state.want(effects.CheckSocket())

    def _consider_leaving(self, now: float) -> None:
        if not self._connections and ("socket", "") not in self.timers:
            self._socket_missing = False
            self._state.want(effects.CheckSocket())
            self.timers.set("socket", "", now + SOCKET_CHECK_S)
        if self._state.live:
            return
        unreachable = self._socket_missing and not self._connections
        is_abandoned = self.is_lent and not self._connections and self.leases.are_over
        unused = self.empty or is_abandoned
        unused = unused and (self._may_leave or self._asked_to_leave)
        if unreachable or unused:
            self._state.want(effects.Exit())
