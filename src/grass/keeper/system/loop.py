"""The keeper's loop: waits, and has all that follows done in the order of a turn.

One turn reads all that is ready before it acts. With nothing to do it sleeps until the
next deadline, or for ever.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.core import effects, events
from grass.keeper.core.lease import LONGEST_SLEEP_S
from grass.keeper.core.turn import Turn
from grass.keeper.crash_points import crash_point
from grass.keeper.system.clocks import boot_s, utc_us
from grass.keeper.system.connections import Connections, listen
from grass.keeper.system.log import log_defect
from grass.keeper.system.poller import Waiting
from grass.keeper.system.shortage import cause
from grass.keeper.wire import encode

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from grass.keeper.core.keeper_core import KeeperCore
    from grass.keeper.core.turn import Action
    from grass.keeper.system.processes import Jobs
    from grass.keeper.system.records import Records

# The sleep's own clock stands still while the machine is suspended; deadlines do not.
_LONGEST_SLEEP_S = 60.0


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
        self._core = core
        self._records = records
        self._jobs = jobs
        self._socket_path = socket_path
        self.waiting = Waiting()
        self._connections = Connections(listener, self.waiting, jobs, self.feed)
        self._behind = False
        self._done = False
        self._sync_child = 0
        actions: dict[type, Action] = {
            effects.Publish: self._publish,
            effects.Tell: self._connections.tell,
            effects.Reply: self._connections.reply,
            effects.Greet: self._connections.greet,
            effects.Unrecord: self._unrecord,
            effects.GiveUp: self._give_up,
            effects.Probe: jobs.probe,
            effects.SignalTree: jobs.signal_tree,
            effects.KillTree: jobs.kill_tree,
            effects.Survey: jobs.survey,
            effects.Enclose: jobs.enclose,
            effects.Measure: jobs.measure,
            effects.Truncate: jobs.truncate,
            effects.Adopt: jobs.adopting.adopt,
            effects.Search: jobs.adopting.search,
            effects.Inspect: jobs.adopting.inspect,
            effects.Know: jobs.know,
            effects.Release: jobs.release,
            effects.Sync: self._sync,
            effects.CheckSocket: self._check_socket,
            effects.Exit: self._exit,
        }
        self._order = Turn(core, self, actions)
        jobs.connect(self.waiting, self.feed)

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
        for ready in self.waiting.sleep(self._sleep()):
            _guarded(ready)
        due = self._core.timers.next_due()
        if due is not None and due <= boot_s():
            _guarded(lambda: self.feed(events.Tick()))
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
        """Write, answer and start what the turn has led to."""
        self._jobs.look_away()
        self._order.finish()

    def feed(self, event: events.Event) -> None:
        """Tell the core, and do what it wants."""
        self._order.feed(event)

    def children_ended(self) -> None:
        """Collect the children that ended and tell the core."""
        for event in self._jobs.reap():
            if isinstance(event, events.ChildEnded) and event.pid == self._sync_child:
                self._sync_ended(done=event.status == 0)
                continue
            crash_point("keeper.after-reap")
            self.feed(event)

    def _sync_ended(self, *, done: bool) -> None:
        self._sync_child = 0
        if not done:
            # The kernel may have dropped what it could not write: write it anew.
            self._records.distrust()
        self.feed(events.Synced(done))
        crash_point("keeper.after-sync")

    # What the order of a turn needs.

    @property
    def now(self) -> float:
        """Tell the time since boot, with sleep."""
        return boot_s()

    def record(self, entry: events.Entry) -> None:
        """Have an entry written with the next flush."""
        self._records.add(encode(entry))

    def flush_records(self) -> str | None:
        """Write the entries; tell why the records are not complete, if so."""
        try:
            self._records.flush(self._core.snapshot, self._core.empty)
        except OSError as error:
            if not self._behind:
                self._behind = True
                sys.stderr.write(f"records cannot be written: {error}\n")
            return cause(error)
        self._behind = False
        return None

    def send(self) -> None:
        """Send all that waits to be sent."""
        self._connections.flush()

    def send_unless_held(self) -> None:
        """Send the same, unless it may wait for more."""
        if not self._connections.may_hold:
            self._connections.flush()

    def spawn(self, spec: events.Spec) -> events.Event:
        """Start an attempt's process, and tell what came of it."""
        crash_point("keeper.before-spawn")
        try:
            event = self._jobs.spawn(spec)
        except Exception as error:  # noqa: BLE001 - every start is answered
            log_defect()
            reason = f"could not start: {error}"
            event = events.SpawnFailed(spec.id, reason, utc_us())
        crash_point("keeper.after-spawn")
        return event

    def tell(self, event: events.Event) -> None:
        """Tell the core; a defect must not keep the others in line from their turn."""
        _guarded(lambda: self.feed(event))

    # Effects that are not about processes.

    def _publish(self, effect: effects.Publish) -> None:
        line = encode(effect.entry)
        self._records.add(line)
        self._connections.publish(line, urgent=effect.urgent)

    def _unrecord(self, effect: effects.Unrecord) -> None:
        lines = b"".join(map(encode, effect.entries))
        note = encode({"e": "forgotten", "ids": [effect.id]})
        self._records.take_back(lines, note)

    def _give_up(self, effect: effects.GiveUp) -> events.SpawnFailed:
        return events.SpawnFailed(effect.id, effect.reason, utc_us())

    def _sync(self, effect: effects.Sync) -> events.Synced | None:
        # What this turn has led to belongs to it.
        if self.flush_records() is None:
            with suppress(OSError):
                self._sync_child = self._records.begin_sync()
                return None
        return events.Synced(done=False)

    def _check_socket(self, effect: effects.CheckSocket) -> events.Event | None:
        if os.path.exists(self._socket_path):
            return None
        try:
            self._connections.listen_on(listen(os.path.dirname(self._socket_path)))
        except OSError:
            # The folder is gone, or the disk takes no more files.
            return events.SocketMissing()
        sys.stderr.write("the socket was deleted; it is back\n")
        return None

    def _exit(self, effect: effects.Exit) -> None:
        # A daemon may be knocking already; then there is a reason to stay.
        self._done = not self._connections.knocking


def _guarded(act: Callable[[], None]) -> None:
    """Act; a defect is logged, as the parent of all jobs must not die of it."""
    try:
        act()
    except Exception:  # noqa: BLE001 - see above
        log_defect()
