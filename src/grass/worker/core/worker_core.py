"""The worker's decisions, without I/O.

Events are the broker's messages and the keeper's entries; effects are messages for the
broker and verbs for the keeper. The worker says hello to the broker only after the
keeper's hello, so a `Hello` always reports all attempts. An attempt is in one of three
states: its start is sent (the keeper may not have it yet), running, or exited and not
yet forgotten.
"""

from typing import cast

from grass.keeper import protocol as keeper
from grass.keeper.protocol import ExitEntry, HelloEntry, StartedEntry, StateEntry
from grass.link import attempt_verbs as link
from grass.link.messages import (
    RECALLED,
    Exited,
    Forget,
    Heard,
    KnownUnits,
    Resync,
    Returned,
    Start,
    ToWorker,
    Welcome,
)
from grass.model.worker import FoundUnits
from grass.worker.core import keeper_entries
from grass.worker.core.admission import Admission
from grass.worker.core.attempt_table import (
    AttemptTable,
    WorkerAttempt,
    dropped_event,
)
from grass.worker.core.effects import WorkerEffects
from grass.worker.core.hello import HelloState, WorkerIdentity, WorkerLease
from grass.worker.core.prepare import Surroundings
from grass.worker.core.readiness import StartReadiness
from grass.worker.core.start_checks import StartChecks
from grass.worker.core.start_templates import StartTemplates
from grass.worker.core.usage.samples import Sample
from grass.worker.core.usage.usage_table import UsageTable
from grass.worker.core.watchdog import Watchdog


class WorkerCore:
    """All that one worker knows."""

    def __init__(
        self,
        identity: WorkerIdentity,
        around: Surroundings,
        lease_s: float | None = None,
        admission: Admission | None = None,
    ) -> None:
        """Begin without a keeper.

        With a lease the keeper ends every attempt after this long without the broker.
        With an `admission` starts on GPUs are checked; the shell looks when asked to.
        """
        self.now_s = 0.0
        """Seconds since boot, set by the shell."""
        self.wall_us = 0
        """The wall clock, set by the shell."""
        self._lease = WorkerLease(lease_s)
        self._hello = HelloState(identity, self._lease)
        self.around = around
        self._templates = StartTemplates()
        self._table = table = AttemptTable()
        self._attempts, self._units = table.attempts, table.units
        self.is_running = table.is_running
        self._keeper_ready = False
        self._readiness = StartReadiness(table)
        self._checks = StartChecks(table, admission)
        self._watchdog = Watchdog(table)
        self.usage = UsageTable(table.attempts, around.output_folder)
        self._effects = WorkerEffects()
        self.fetching: set[str] = set()
        """Attempts whose blobs the shell fetches."""

    @property
    def running(self) -> int:
        """Count the attempts that have not ended."""
        return sum(one.exited is None for one in self._attempts.values())

    def take(self) -> WorkerEffects:
        """Return the effects of the events since the last `take`."""
        effects, self._effects = self._effects, WorkerEffects()
        return effects

    def from_broker(self, message: ToWorker) -> None:
        """Apply one message of the broker; the shell handles those about files."""
        match message:
            case Start():
                self._start(message)
            case (
                link.Stop()
                | link.Suspend()
                | link.Continue()
                | link.Signal()
                | link.GiveBack()
            ):
                self._pass_on(message)
            case Forget():
                self._let_keeper_forget(self._table.forget(message.attempts))
            case link.Shrink() | link.NoteProfile():
                self._learned(message)
            case link.Recall():
                self._recall(message)
            case link.Search():
                self._search(message)
            case KnownUnits():
                self._units.set_capacity(message.capacity)
            case Resync():
                self._say_hello()
            case Welcome() | Heard():
                self._answered(message)
            case _:
                pass

    def _answered(self, message: Welcome | Heard) -> None:
        if isinstance(message, Welcome):
            self._table.cluster = message.cluster
            self._drop_oldest()
            to_broker = self._effects.to_broker
            to_broker.extend(self._readiness.welcomed(message.heeds_readiness))
            to_broker.extend(self._checks.welcomed(message.heeds_withheld))
            self._return_unbegun()
        verbs = self._lease.answered(message)
        self._effects.to_keeper.extend(verbs if self._keeper_ready else [])
        if self._hello.outdated:
            # The cluster of the lease is known only now.
            self._say_hello()

    def _learned(self, message: link.Shrink | link.NoteProfile) -> None:
        if isinstance(message, link.Shrink):
            self._table.shrink(message.attempt, message.allocation)
            self._checks.shrunk()
        elif self.usage.tell_profile(message.attempt):
            self._effects.look = True

    def units_found(self, found: FoundUnits) -> None:
        """Report the units of this machine anew, if they have changed."""
        if self._hello.units_found(found):
            self._say_hello()

    def sampled(self, sample: Sample) -> None:
        """Tell what is free of the devices, and begin or return what waited for it."""
        self._effects.to_broker.extend(self._checks.sampled(sample, self.now_s))
        self._effects.to_broker.extend(self.usage.profile_notes(self.now_s))
        over = self._watchdog.sampled(sample, self.now_s)
        self._effects.to_broker.extend(over.warnings)
        self._effects.to_keeper.extend(over.stops if self._keeper_ready else [])
        for name, attempt in self._checks.waiting():
            self._begin(name, attempt)

    def fetched(self, name: str, problem: str = "") -> None:
        """Begin an attempt whose blobs are here, or end one that cannot have them."""
        self.fetching.discard(name)
        attempt = self._attempts.get(name)
        if attempt is not None and attempt.fetching and problem:
            self._cannot_start(name, attempt, problem)
        else:
            for one, waiting in self._checks.fetched(name, self.now_s):
                self._begin(one, waiting)
        self._effects.look = True  # With it begins what waits behind this one.

    def keeper_lost(self) -> None:
        """Note that the keeper is gone; its successor will report the attempts."""
        self._keeper_ready = False

    def keeper_fails(self, why: str) -> None:
        """Note that no keeper can be started."""
        self._can_start(f"no keeper: {why}")

    def from_keeper(self, entry: keeper.Entry) -> None:
        """Apply one entry of the keeper."""
        match entry:
            case HelloEntry():
                self._keeper_hello(entry)
            case StartedEntry() | ExitEntry() | StateEntry():
                self._attempt_changed(entry)
            case keeper.RecalledEntry():
                self._recalled(entry.id, entry.why or RECALLED, entry.missing)
            case keeper.UnableEntry():
                self._can_start(entry.reason)
            case keeper.AbleEntry():
                self._can_start("")
            case keeper.ErrorEntry():
                self._error(entry)
            case keeper.LeasedEntry():
                self._lease.confirmed(entry)
                if self._hello.waits:
                    self._say_hello()
            case _:
                pass

    def _start(self, message: Start) -> None:
        known = self._attempts.get(message.attempt)
        if known is not None and known.was_placed(message.placed_at):
            return
        predecessor = self._table.predecessor(message)
        reason = self._table.refusal(message, predecessor)
        if known is None and self._readiness.returns_starts:
            # It was sent before the broker knew.
            reason = RECALLED
        if reason is not None:
            self._return(message.attempt, reason, message.placed_at)
        else:
            self._add(message, None if predecessor is None else message.after)

    def _add(self, message: Start, after: str | None) -> None:
        start = self._templates.verb(message, self.around)
        attempt = WorkerAttempt(cast("keeper.Notes", start.meta), after, start)
        attempt.grace_s, attempt.time_limit_s = start.grace, start.time_limit
        self._table.add(message.attempt, attempt)
        if not start.argv and start.guest is None:
            # The keeper would refuse it, and then start its follower too early.
            self._cannot_start(message.attempt, attempt, "its command names no program")
        elif message.attempt in self.fetching:
            attempt.unchecked = attempt.fetching = True
        elif self._checks.holds(attempt, self.now_s):
            attempt.unchecked = self._effects.look = True
        else:
            self._begin(message.attempt, attempt)

    def _begin(self, name: str, attempt: WorkerAttempt) -> None:
        """Have an attempt started, or return it where its units are not there."""
        reason = self._checks.refusal(attempt)
        if reason is not None:
            self._recalled(name, reason)
        elif self._keeper_ready:
            attempt.sent = True
            self._effects.to_keeper.extend(attempt.start_again())

    def _cannot_start(self, name: str, attempt: WorkerAttempt, why: str) -> None:
        reason = f"could not start: {why}"
        ended = self._note_exit(attempt, ExitEntry("exited", name, reason=reason))
        if self._keeper_ready:
            self._effects.to_broker.append(ended)

    def _pass_on(self, message: link.PassedOn) -> None:
        if not self.is_running(message.attempt):
            return
        attempt = self._attempts[message.attempt]
        verb = attempt.verb_of(message)
        if isinstance(message, link.Stop) and attempt.unchecked:
            self._recalled(message.attempt)
        elif self._keeper_ready and not attempt.unchecked:
            self._effects.to_keeper.append(verb)

    def _let_keeper_forget(self, attempts: list[str]) -> None:
        if attempts:
            self._effects.to_keeper.append(keeper.ForgetVerb(attempts))

    def _drop_oldest(self) -> None:
        self._let_keeper_forget(dropped := self._table.drop_oldest())
        self._effects.log_events.extend(dropped_event(dropped))

    def _recall(self, message: link.Recall) -> None:
        known, unknown = self._table.recalled(message)
        unchecked = [name for name in known if self._attempts[name].unchecked]
        for name in unchecked:
            self._recalled(name)
        for name, at in unknown:
            # Messages arrive in order: the start never came, or it was refused as
            # another attempt has its name.
            self._return(name, RECALLED, at)
        asked = [name for name in known if name not in unchecked]
        self._effects.to_keeper.append(keeper.RecallVerb(asked))

    def _can_start(self, unable: str) -> None:
        """Tell the broker whether jobs can be started here, if that has changed."""
        news = self._readiness.changed(unable)
        self._effects.to_broker.extend(news)
        if news:
            self._return_unbegun()

    def _return_unbegun(self) -> None:
        """Return what has not begun, while no job can be started here."""
        asked, unsent = self._readiness.to_return()
        for name in unsent:
            self._recalled(name)
        if asked and self._keeper_ready:
            self._effects.to_keeper.append(keeper.RecallVerb(asked))

    def _return(self, attempt: str, reason: str, at: int, missing: str = "") -> None:
        self._table.note_returned(attempt, at)
        self._effects.to_broker.append(Returned(attempt, reason, at, missing))

    def _keeper_hello(self, hello: HelloEntry) -> None:
        """Reconcile the worker's attempts with those of the keeper."""
        # Leases before any start: what was given up meanwhile must not begin.
        self._effects.to_keeper.extend(self._lease.keeper_connected(hello))
        self._keeper_ready = True
        self._hello.keeper_connected(hello)
        forgotten = self._table.forgotten(hello.attempts)
        self._let_keeper_forget(forgotten)
        states = {one.id: one for one in hello.attempts if one.id not in forgotten}
        for state in states.values():
            self._listed(state)
        for name, attempt in list(self._attempts.items()):
            is_due = attempt.exited is None and not attempt.unchecked
            if name not in states and is_due:
                self._missing(name, attempt)
        self._say_hello()
        self._can_start(hello.unable or "")

    def _listed(self, state: StateEntry) -> None:
        started = keeper_entries.note_listed(self._table, state)
        if started is not None:
            self._watch(started)
        attempt = self._attempts[state.id]
        if state.state == "exited" and attempt.exited is None:
            self._note_exit(attempt, keeper_entries.exit_in(state))

    def _missing(self, name: str, attempt: WorkerAttempt) -> None:
        if attempt.start is None and attempt.begun and self._hello.searches:
            verb = keeper_entries.adopt_verb(name, attempt, self.now_s)
            self._effects.to_keeper.append(verb)
        elif attempt.start is None and attempt.begun:
            self._note_exit(attempt, keeper_entries.lost_entry(name, attempt))
        elif attempt.start is None or attempt.recalled:
            # Nothing was run, as below: the broker places it again, here or elsewhere.
            self._recalled(name)
        else:
            # The keeper died before it read this; it records before it spawns, so
            # nothing was run and it is safe to start it again.
            attempt.sent = True
            self._effects.to_keeper.extend(attempt.start_again())

    def _search(self, message: link.Search) -> None:
        """Have the processes looked for of an attempt that no record has."""
        attempt = keeper_entries.searched(self._table, message, self.now_s)
        if attempt is not None and self._keeper_ready:
            self._missing(message.attempt, attempt)

    def _attempt_changed(self, entry: StartedEntry | ExitEntry | StateEntry) -> None:
        attempt, change = self._attempts.get(entry.id), keeper_entries.change_in(entry)
        if isinstance(change, ExitEntry):
            self._exited(attempt, change)
        elif attempt is not None and change is not None:
            self._effects.to_broker.append(keeper_entries.note_start(attempt, change))
            self._watch(change)
            if change.found:
                # What the broker has asked for since it ran is asked for again.
                self._say_hello()

    def _watch(self, entry: StartedEntry) -> None:
        # Unless the keeper is sure of the main process, its code would be a guess.
        if not entry.found:
            self._effects.watch[entry.id] = (entry.pid, entry.ticks)

    def _exited(self, attempt: WorkerAttempt | None, entry: ExitEntry) -> None:
        if attempt is None or attempt.exited is not None:
            return
        self._effects.to_broker.append(self._note_exit(attempt, entry))
        if self._table.is_foreign(entry.id):
            self._drop_oldest()

    def _error(self, entry: keeper.ErrorEntry) -> None:
        """End an attempt that the keeper refuses to start."""
        name, why = entry.id, keeper_entries.refusal_of(entry)
        attempt = self._attempts.get(name) if isinstance(name, str) else None
        if attempt is not None and attempt.start is not None and why is not None:
            self._cannot_start(attempt.start.id, attempt, why)

    def _note_exit(self, attempt: WorkerAttempt, entry: ExitEntry) -> Exited:
        cause = self.usage.cause_of(entry, self.now_s)
        peak = self.usage.ended(entry.id, self.now_s)
        ended = keeper_entries.exited_of(attempt, entry, peak, cause)
        keeper_entries.add_curve(ended, self.usage.curve_of(entry.id))
        attempt.exited, attempt.start = ended, None
        self._table.free_units(entry.id, attempt)
        self._effects.unwatch.append(entry.id)
        if attempt.notes.input:
            self._effects.ended_inputs.append(entry.id)
        return ended

    def _recalled(self, name: str, why: str = RECALLED, missing: str = "") -> None:
        attempt = self._attempts.get(name)
        if attempt is not None and attempt.exited is None:
            del self._attempts[name]
            self._table.free_units(name, attempt)
            self._return(name, why, attempt.notes.placed_at, missing)

    def _say_hello(self) -> None:
        if not self._keeper_ready:
            return
        verbs = self._hello.prepare(self.now_s)
        if verbs is not None:
            self._effects.to_keeper.extend(verbs)
            return
        unable = self._readiness.unable
        hello = self._hello.hello(self._attempts, self.now_s, unable, self.wall_us)
        self._readiness.told = hello.unable
        hello.withheld = self._checks.for_hello()
        self._effects.to_broker.append(hello)
