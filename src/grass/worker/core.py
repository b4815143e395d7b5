"""The worker's decisions, without I/O.

Events are the broker's messages and the keeper's lines; effects are messages for the
broker and verbs for the keeper. The worker speaks to the broker only once the keeper
has told what it knows, so the `Hello` is always the whole truth. Every attempt here is
in one of three states: asked for (the keeper may not have it yet), running, or exited
and not yet forgotten.
"""

from itertools import chain, repeat
from typing import Any

import msgspec

from grass.link.messages import (
    RECALLED,
    Continue,
    Exited,
    Forget,
    Heard,
    Hello,
    Recall,
    Resync,
    Returned,
    Start,
    Started,
    Stop,
    Suspend,
    ToBroker,
    ToWorker,
    Units,
    Welcome,
)
from grass.model.resources import Allocation
from grass.model.worker import Found
from grass.worker.held import Held, clean, cpu_s, meta_of, report_of, stop_verb
from grass.worker.lease import Lease
from grass.worker.ledger import Ledger
from grass.worker.prepare import Surroundings, start_verb

Verb = dict[str, Any]


class Effects(msgspec.Struct):
    """What is to be sent, in order."""

    to_broker: list[ToBroker] = []
    to_keeper: list[Verb] = []
    watch: dict[str, tuple[int, int]] = {}
    """Processes to hold on to besides the keeper: attempt to pid and start ticks."""
    unwatch: list[str] = []


class WorkerCore:
    """All that one worker knows."""

    def __init__(  # noqa: PLR0913 -- what a worker is
        self,
        worker: str,
        name: str,
        boot: str,
        found: Found,
        around: Surroundings,
        *,
        labels: tuple[str, ...] = (),
        lease_s: float | None = None,
        instance: str = "",
    ) -> None:
        """Begin without a keeper.

        With a lease the keeper ends every attempt after so long without the broker.
        `instance` tells this home from copies of it.
        """
        self._instance = instance
        self.worker = worker
        self.now_s = 0.0
        """The time since boot, as the shell last told it."""
        self._labels = labels
        self._lease = Lease(lease_s)
        self._name = name
        self._boot = boot
        self._found = found
        self._around = around
        self._ledger = Ledger()
        self._attempts: dict[str, Held] = {}
        self._heirs: dict[str, str] = {}
        """Who takes over whose units."""
        self._keeper_ready = False
        self._promise: tuple[str, float] | None = None
        """What the last hello promised, and whom."""
        self._hello_waits = False
        """Whether a hello is due as soon as the keeper has confirmed its lease."""
        self._effects = Effects()

    @property
    def running(self) -> int:
        """Count the attempts that have not ended."""
        return sum(held.exited is None for held in self._attempts.values())

    def take(self) -> Effects:
        """Hand over what the events since the last `take` led to."""
        effects, self._effects = self._effects, Effects()
        return effects

    def from_broker(self, message: ToWorker) -> None:
        """Apply one message of the broker; files are the shell's business."""
        match message:
            case Start():
                self._start(message)
            case Stop():
                self._stop(message)
            case Suspend():
                self._suspend("suspend", message.attempt, on=True)
            case Continue():
                self._suspend("continue", message.attempt, on=False)
            case Forget():
                self._forget(message.attempts)
            case Recall():
                self._recall(message)
            case Units():
                self._ledger.set_capacity(message.capacity)
            case Resync():
                self._say_hello()
            case Welcome() | Heard():
                self._answered(message)
            case _:
                pass

    def _answered(self, message: Welcome | Heard) -> None:
        verbs = self._lease.answered(message)
        self._effects.to_keeper.extend(verbs if self._keeper_ready else [])
        if self._lease.promise != self._promise:
            # Only now it is known whom a lease can be promised to.
            self._say_hello()

    def keeper_lost(self) -> None:
        """The keeper is gone; its successor will tell what became of the attempts."""
        self._keeper_ready = False

    def from_keeper(self, line: Verb) -> None:
        """Apply one line of the keeper."""
        match line.get("e"):
            case "hello":
                # Before any start: what was given up meanwhile must not begin.
                self._effects.to_keeper.extend(self._lease.keeper_came(line))
                self._keeper_hello(line["attempts"])
            case "started":
                self._started(line)
            case "exited":
                self._exited(line)
            case "recalled":
                self._recalled(line["id"])
            case "leased":
                self._lease.confirmed(line)
                if self._hello_waits:
                    self._say_hello()
            case _:
                pass

    def _start(self, message: Start) -> None:
        if message.attempt in self._attempts:
            return
        leader = self._attempts.get(message.after or "")
        if leader is not None and leader.exited is None:
            if leader.recalled and leader.after is not None:
                # The keeper may have dropped it by now, and would not wait for it.
                self._return(message.attempt, RECALLED, message.placed_at)
                return
            self._take_in(message, message.after)
            return
        excess = self._ledger.excess(message.allocation)
        if excess is not None:
            reason = f"{excess} is given out already"
            self._return(message.attempt, reason, message.placed_at)
            return
        self._ledger.hold(message.allocation)
        self._take_in(message, None)

    def _take_in(self, message: Start, after: str | None) -> None:
        verb = start_verb(message, self._around)
        held = Held(message.allocation, after, verb, placed_at=message.placed_at)
        self._attempts[message.attempt] = held
        if after is not None:
            self._heirs[after] = message.attempt
        if self._keeper_ready:
            self._effects.to_keeper.append(verb)

    def _stop(self, message: Stop) -> None:
        held = self._attempts.get(message.attempt)
        if held is None or held.exited is not None:
            return
        held.stopping = True
        if self._keeper_ready:
            self._effects.to_keeper.append(
                {
                    "v": "stop",
                    "id": message.attempt,
                    "signal": message.signal,
                    "grace": message.grace_s,
                    "reason": message.reason,
                }
            )

    def _suspend(self, verb: str, attempt: str, *, on: bool) -> None:
        held = self._attempts.get(attempt)
        if held is None or held.exited is not None:
            return
        held.suspended = on
        if self._keeper_ready:
            self._effects.to_keeper.append({"v": verb, "id": attempt})

    def _forget(self, attempts: list[str]) -> None:
        for attempt in attempts:
            self._attempts.pop(attempt, None)
        self._effects.to_keeper.append({"v": "forget", "ids": attempts})

    def _recall(self, message: Recall) -> None:
        placed_at = chain(message.placed_at, repeat(0))
        for attempt, at in zip(message.attempts, placed_at, strict=False):
            held = self._attempts.get(attempt)
            if held is None:
                # A start that was sent before this was read before this: none came.
                self._return(attempt, RECALLED, at)
            else:
                held.recalled = True
        self._effects.to_keeper.append({"v": "recall", "ids": message.attempts})

    def _return(self, attempt: str, reason: str, placed_at: int) -> None:
        self._effects.to_broker.append(Returned(attempt, reason, placed_at))

    def _keeper_hello(self, listed: list[Verb]) -> None:
        """Bring the worker's books in line with what the keeper really has."""
        self._keeper_ready = True
        known = {line["id"]: line for line in listed}
        for line in listed:
            self._listed(line)
        for attempt, held in list(self._attempts.items()):
            if attempt not in known and held.exited is None:
                self._missing(attempt, held)
        self._say_hello()

    def _listed(self, line: Verb) -> None:
        attempt = line["id"]
        if attempt not in self._attempts:
            self._take_over(attempt, line)
        held = self._attempts[attempt]
        held.stopping = bool(line.get("stopping"))
        held.suspended = bool(line.get("suspended"))
        if line.get("started_at") is not None:
            self._note_start(held, {**line, "at": line["started_at"]})
            self._watch(line)
        if line["state"] == "exited" and held.exited is None:
            self._note_exit(held, line)

    def _take_over(self, attempt: str, line: Verb) -> None:
        """Learn of an attempt that a daemon before this one started."""
        allocation: Allocation = line["meta"]["allocation"]
        if line["state"] == "waiting":
            # Whom it follows now; the one it was started behind may have left.
            after = line.get("after") or line["meta"].get("after")
            placed_at = line["meta"].get("placed_at") or 0
            self._attempts[attempt] = Held(allocation, after, placed_at=placed_at)
            self._heirs[after] = attempt
        else:
            self._ledger.hold(allocation)
            self._attempts[attempt] = Held(allocation)

    def _missing(self, attempt: str, held: Held) -> None:
        if held.verb is not None:
            # The keeper died before it read this; it records before it spawns, so
            # nothing was run and it is safe to ask again: behind whom it follows now.
            held.verb["after"] = held.verb["meta"]["after"] = held.after
            self._effects.to_keeper.append(held.verb)
            if held.stopping:
                self._effects.to_keeper.append(stop_verb(attempt))
            return
        reason = "its keeper was killed and left no trace of it"
        at = held.started.at if held.started else 0
        line = {"id": attempt, "at": at, "lost": True, "reason": reason}
        self._note_exit(held, line)

    def _started(self, line: Verb) -> None:
        held = self._attempts.get(line["id"])
        if held is None:
            return
        self._effects.to_broker.append(self._note_start(held, line))
        self._watch(line)

    def _watch(self, line: Verb) -> None:
        # Where the keeper is not sure of the main process, its code would be a guess.
        if not line.get("found"):
            self._effects.watch[line["id"]] = (line["pid"], line.get("ticks") or 0)

    def _exited(self, line: Verb) -> None:
        held = self._attempts.get(line["id"])
        if held is None or held.exited is not None:
            return
        self._effects.to_broker.append(self._note_exit(held, line))

    def _note_start(self, held: Held, line: Verb) -> Started:
        meta = meta_of(held, line)
        held.verb = None
        held.started = Started(
            line["id"],
            line["pid"],
            line["at"],
            meta.get("output"),
            line.get("offset") or 0,
            meta.get("stderr"),
            line.get("stderr_offset") or 0,
        )
        return held.started

    def _note_exit(self, held: Held, line: Verb) -> Exited:
        usage = line.get("rusage") or {}
        unseen = line.get("lost") and held.started is None
        meta = meta_of(held, line) if unseen else {}
        held.verb = None
        self._let_go(line["id"], held)
        held.exited = Exited(
            line["id"],
            line["at"],
            line.get("code"),
            line.get("signal"),
            clean(line.get("reason")),
            bool(line.get("lost")),
            line.get("output_bytes") or 0,
            usage.get("max_rss"),
            cpu_s(usage),
            meta.get("output"),
            meta.get("stderr"),
        )
        self._effects.unwatch.append(line["id"])
        return held.exited

    def _recalled(self, attempt: str) -> None:
        held = self._attempts.get(attempt)
        if held is not None and held.exited is None:
            del self._attempts[attempt]
            self._let_go(attempt, held)
            self._return(attempt, RECALLED, held.placed_at)

    def _let_go(self, attempt: str, held: Held) -> None:
        """Take an attempt's units back, and give them to who follows it."""
        heir = self._heirs.pop(attempt, None)
        if held.after is not None:
            self._heirs.pop(held.after, None)
        else:
            self._ledger.release(held.allocation)
        if heir is not None and heir in self._attempts:
            self._attempts[heir].after = held.after
            if held.after is None:
                self._ledger.hold(self._attempts[heir].allocation)
            else:
                self._heirs[held.after] = heir

    def _say_hello(self) -> None:
        if not self._keeper_ready:
            return
        verbs = self._lease.before_hello(self.now_s)
        self._hello_waits = verbs is not None
        if verbs is not None:
            self._effects.to_keeper.extend(verbs)
            return
        held = self._attempts.items()
        self._promise = self._lease.promise
        self._effects.to_broker.append(
            Hello(
                worker=self.worker,
                name=self._name,
                boot=self._boot,
                found=self._found,
                running=[report_of(name, one) for name, one in held if not one.exited],
                exited=[one.exited for _, one in held if one.exited],
                started=[one.started for _, one in held if one.exited and one.started],
                labels=self._labels,
                lease_s=None if self._promise is None else self._promise[1],
                at=self.now_s,
                instance=self._instance,
            )
        )
