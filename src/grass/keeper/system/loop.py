"""The keeper's loop: waits for events, then runs one turn of the core.

One turn reads all that is ready before it acts. With nothing to do it sleeps until the
next deadline, or without end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.codec import encode
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.lease import LONGEST_SLEEP_S
from grass.keeper.core.turn import KeeperTurn
from grass.keeper.crash_points import crash_point
from grass.keeper.protocol import ForgottenEntry
from grass.keeper.start_errors import cause, is_of_disk, is_of_machine
from grass.keeper.system import log
from grass.keeper.system.connections import SOCKET_NAME, Connections, listen
from grass.keeper.system.poller import Poller, boot_s, utc_us

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from grass.keeper.core.keeper_core import KeeperCore
    from grass.keeper.core.turn import Action
    from grass.keeper.protocol import Entry, StartVerb
    from grass.keeper.system.own_folder import OwnFolder
    from grass.keeper.system.processes import JobProcesses
    from grass.keeper.system.records import Records

# The sleep's own clock stands still while the machine is suspended; deadlines do not.
_LONGEST_SLEEP_S = 60.0


class Loop:
    """Connects the core with sockets, records and processes."""

    def __init__(
        self,
        core: KeeperCore,
        records: Records,
        jobs: JobProcesses,
        listener: socket.socket,
        folder: OwnFolder,
    ) -> None:
        self._core = core
        self._records = records
        self._jobs = jobs
        self._folder = folder
        self._socket_path = os.path.join(folder.path, SOCKET_NAME)
        self._watched: int | None = None
        self.poller = Poller()
        self._connections = Connections(listener, self.poller, jobs, self.feed)
        self._incomplete = False
        self._done = False
        self._sync_child = 0
        actions: dict[type, Action] = {
            effects.Publish: self._publish,
            effects.Tell: self._connections.tell,
            effects.Reply: self._connections.reply,
            effects.SendHello: self._connections.send_hello,
            effects.Unrecord: self._unrecord,
            effects.GiveUp: self._give_up,
            effects.EndGuest: self._end_guest,
            effects.Probe: jobs.starter.probe,
            effects.SignalProcesses: jobs.signal,
            effects.SignalHandlers: jobs.signal_handlers,
            effects.KillProcesses: jobs.kill,
            effects.Survey: jobs.survey,
            effects.HangUp: jobs.runners.hang_up,
            effects.Enclose: jobs.enclose,
            effects.NameOutput: jobs.name_output,
            effects.Measure: jobs.measure,
            effects.Truncate: jobs.truncate,
            effects.Adopt: jobs.adopted.adopt,
            effects.Search: jobs.adopted.search,
            effects.Inspect: jobs.adopted.inspect,
            effects.Know: jobs.know,
            effects.ReleaseAttempt: jobs.release,
            effects.Sync: self._sync,
            effects.CheckSocket: self._check_socket,
            effects.Exit: self._exit,
        }
        self._turn = KeeperTurn(core, self, actions)
        jobs.connect(self.poller, self.feed)
        self._watch_folder()

    def run(self) -> None:
        """Turn until the core wants to exit."""
        while not self._done:
            self.turn()

    def leave(self) -> None:
        """Remove the socket and empty the records, unless there are exits."""
        if self._folder.is_own:
            with suppress(OSError):
                os.unlink(self._socket_path)
            with suppress(OSError):
                if self._core.empty:
                    self._records.rewrite([])
        self._jobs.leave()

    def turn(self) -> None:
        """Wait for events, then handle them."""
        for ready in self.poller.sleep(self._sleep()):
            _guarded(ready)
        due = self._core.timers.next_due()
        if due is not None and due <= boot_s():
            _guarded(lambda: self.feed(events.TimerTick()))
        _guarded(self.finish_turn)

    def _sleep(self) -> float | None:
        due = self._core.timers.next_due()
        hold = self._connections.hold_until
        if hold is not None:
            due = hold if due is None else min(due, hold)
        if due is None:
            return None
        leased = self._core.leases.watched and not self._core.empty
        longest = LONGEST_SLEEP_S if leased else _LONGEST_SLEEP_S
        return min(longest, max(0.0, due - boot_s()))

    def finish_turn(self) -> None:
        """Write, spawn and send what the turn has led to."""
        self._jobs.drop_snapshot()
        self._turn.finish()

    def feed(self, event: events.KeeperEvent) -> None:
        """Run the core on an event, and carry out its effects."""
        self._turn.feed(event)

    def children_ended(self) -> None:
        """Reap the children that ended and tell the core."""
        for event in self._jobs.reap():
            if isinstance(event, events.ChildEnded) and event.pid == self._sync_child:
                self._sync_ended(done=event.status == 0)
                continue
            crash_point("keeper.after-reap")
            self.feed(event)

    def _sync_ended(self, *, done: bool) -> None:
        self._jobs.end_apart(self._sync_child)
        self._sync_child = 0
        if not done:
            # The kernel may have dropped what it could not write: write it again.
            self._records.distrust()
        self.feed(events.Synced(done))
        crash_point("keeper.after-sync")

    # What a turn needs.

    @property
    def now(self) -> float:
        """Return the seconds since boot, the time the machine slept included."""
        return boot_s()

    def record(self, entry: Entry) -> None:
        """Queue an entry for the next flush."""
        self._records.add(encode(entry))

    def flush_records(self) -> str | None:
        """Write the entries; return why the records are not complete, if so."""
        try:
            self._records.flush(self._core.snapshot, self._core.empty)
        except OSError as error:
            if not self._incomplete:
                self._incomplete = True
                log.write("error", "records.failed", error=error)
            return cause(error)
        self._incomplete = False
        return None

    def send(self) -> None:
        """Send all that is queued."""
        self._connections.flush()

    def send_unless_held(self) -> None:
        """Send the same, unless it may wait for more entries."""
        if not self._connections.may_hold:
            self._connections.flush()

    def spawn(self, start: StartVerb) -> events.KeeperEvent:
        """Start an attempt's process and return the result."""
        return self._begun(start, self._jobs.start)

    def hand_over(self, start: StartVerb, runner: int) -> events.KeeperEvent:
        """Send a task to an idle runner, or to a new one if that is gone."""
        return self._begun(start, lambda one: self._jobs.starter.hand_over(one, runner))

    def _begun(
        self, start: StartVerb, begin: Callable[[StartVerb], events.KeeperEvent]
    ) -> events.KeeperEvent:
        crash_point("keeper.before-spawn")
        try:
            event = begin(start)
        except Exception as error:  # noqa: BLE001 - every start is answered
            log.log_defect()
            reason = f"could not start: {error}"
            event = events.SpawnFailed(start.id, reason, utc_us())
        crash_point("keeper.after-spawn")
        return event

    def spawn_result(self, event: events.KeeperEvent) -> None:
        """Run the core; a defect must not prevent the other spawns."""
        _guarded(lambda: self.feed(event))

    # Effects that are not about processes.

    def _publish(self, effect: effects.Publish) -> None:
        line = encode(effect.entry)
        self._records.add(line)
        self._connections.publish(line, urgent=effect.urgent)

    def _unrecord(self, effect: effects.Unrecord) -> None:
        lines = b"".join(map(encode, effect.entries))
        note = encode(ForgottenEntry([effect.id]))
        self._records.take_back(lines, note)

    def _give_up(self, effect: effects.GiveUp) -> events.SpawnFailed:
        return events.SpawnFailed(effect.id, effect.reason, utc_us())

    def _end_guest(self, effect: effects.EndGuest) -> events.GivenBack:
        return events.GivenBack(effect.id, effect.code, utc_us())

    def _sync(self, effect: effects.Sync) -> events.Synced | None:
        # What this turn has recorded so far is included.
        if self.flush_records() is None:
            with suppress(OSError):
                self._sync_child = self._records.begin_sync()
                self._jobs.set_apart(self._sync_child)
                return None
        return events.Synced(done=False)

    def _check_socket(self, effect: effects.CheckSocket) -> events.KeeperEvent | None:
        try:
            if not self._folder.is_own and not self._put_folder_back():
                return events.SocketMissing(True, effect.ends_jobs)
            if not os.path.exists(self._socket_path):
                self._connections.listen_on(listen(self._folder.path))
                _log_restored(self._socket_path)
        except OSError as error:
            if is_of_disk(error) or is_of_machine(error):
                # The home may be there: this is tried again later.
                return None
            return events.SocketMissing(ends_jobs=effect.ends_jobs)
        return None

    def _put_folder_back(self) -> bool:
        if not self._folder.put_back():
            return False
        _log_restored(self._folder.path)
        self._records.distrust()
        self.flush_records()
        self._watch_folder()
        return True

    def _watch_folder(self) -> None:
        """Notice at once what leaves the folder; with daemons nothing else looks."""
        if self._watched is not None:
            self.poller.unwatch(self._watched)
            os.close(self._watched)
        self._watched = self._folder.watch()
        if self._watched is not None:
            self.poller.watch(self._watched, self._something_left)

    def _something_left(self) -> None:
        assert self._watched is not None
        with suppress(OSError):
            os.read(self._watched, 65536)
        if not self._folder.is_own:
            self.feed(events.FolderLost())

    def _exit(self, effect: effects.Exit) -> None:
        # A daemon may be connecting already.
        self._done = not self._connections.any_unaccepted


def _guarded(act: Callable[[], None]) -> None:
    """Call `act`; a defect is logged, as the parent of all jobs must not die of it."""
    try:
        act()
    except Exception:  # noqa: BLE001 - see above
        log.log_defect()


def _log_restored(path: str) -> None:
    log.write("warning", "file.restored", path=os.path.realpath(path))
