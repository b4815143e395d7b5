"""The worker's decisions, without I/O.

Events are the broker's messages and the keeper's lines; effects are messages for the
broker and verbs for the keeper. The worker speaks to the broker only once the keeper
has told what it knows, so the `Hello` is always the whole truth. Every attempt here is
in one of three states: asked for (the keeper may not have it yet), running, or exited
and not yet forgotten.
"""

from itertools import chain, repeat

from grass.link.messages import (
    RECALLED,
    Continue,
    Exited,
    Forget,
    Heard,
    Recall,
    Resync,
    Returned,
    Start,
    Started,
    Stop,
    Suspend,
    ToWorker,
    Units,
    Welcome,
)
from grass.log_lines import log_event
from grass.model.worker import Found
from grass.worker.core.attempt_table import MOST_KEPT, Books
from grass.worker.core.effects import Effects, Verb
from grass.worker.core.held_attempt import Held, asked_again, stop_verb
from grass.worker.core.hello import Greeting, Identity
from grass.worker.core.keeper_lines import (
    exited_of,
    held_of,
    placed_at,
    refusal_of,
    started_of,
)
from grass.worker.core.lease import Lease
from grass.worker.core.prepare import Surroundings, start_verb
from grass.worker.core.readiness import Ability

NAME_IS_TAKEN = "another attempt of this number is still there"
"""The reason of a `Returned` by which the broker learns of one it did not place."""


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
        self.now_s = 0.0
        """The time since boot, as the shell last told it."""
        self.wall_us = 0
        """What the wall clock shows, likewise."""
        self._lease = Lease(lease_s)
        who = Identity(worker, name, boot, found, labels, instance)
        self._greeting = Greeting(who, self._lease)
        self._around = around
        self._books = books = Books()
        self._attempts, self._ledger = books.attempts, books.ledger
        self._keeper_ready = False
        self._ability = Ability(books)
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
        if isinstance(message, Welcome):
            self._books.cluster = message.cluster
            self._drop_oldest()
            said = self._ability.welcomed(message.heeds_readiness)
            self._effects.to_broker.extend(said)
            self._give_back()
        verbs = self._lease.answered(message)
        self._effects.to_keeper.extend(verbs if self._keeper_ready else [])
        if self._greeting.outdated:
            # Only now it is known whom a lease can be promised to.
            self._say_hello()

    def keeper_lost(self) -> None:
        """The keeper is gone; its successor will tell what became of the attempts."""
        self._keeper_ready = False

    def keeper_fails(self, why: str) -> None:
        """Note that no keeper can be started, again and again."""
        self._can_start(f"no keeper: {why}")

    def from_keeper(self, line: Verb) -> None:
        """Apply one line of the keeper."""
        match line.get("e"):
            case "hello":
                # Before any start: what was given up meanwhile must not begin.
                self._effects.to_keeper.extend(self._lease.keeper_came(line))
                self._keeper_hello(line["attempts"])
                self._can_start(line.get("unable") or "")
            case "started":
                self._started(line)
            case "exited":
                self._exited(line)
            case "recalled":
                self._recalled(line["id"])
            case "unable":
                self._can_start(str(line["reason"]))
            case "able":
                self._can_start("")
            case "error":
                self._error(line)
            case "leased":
                self._lease.confirmed(line)
                if self._greeting.waits:
                    self._say_hello()
            case _:
                pass

    def _start(self, message: Start) -> None:
        known = self._attempts.get(message.attempt)
        if known is not None:
            if not known.was_placed(message.placed_at):
                self._return(message.attempt, NAME_IS_TAKEN, message.placed_at)
            return
        if self._books.was_given_back(message.attempt, message.placed_at):
            # Sent once more after a hello that the broker read before the answer.
            self._return(message.attempt, RECALLED, message.placed_at)
            return
        if self._ability.takes_none:
            # It was sent before the broker heard of that.
            self._return(message.attempt, RECALLED, message.placed_at)
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
        self._take_in(message, None)

    def _take_in(self, message: Start, after: str | None) -> None:
        verb = start_verb(message, self._around)
        held = Held(message.allocation, after, verb, placed_at=message.placed_at)
        self._books.take_in(message.attempt, held)
        if not verb["argv"]:
            # The keeper would refuse it, and then start who follows it too early.
            self._cannot_start(message.attempt, held, "its command names no program")
        elif self._keeper_ready:
            held.sent = True
            self._effects.to_keeper.append(verb)

    def _cannot_start(self, attempt: str, held: Held, why: str) -> None:
        line = {"id": attempt, "at": 0, "reason": f"could not start: {why}"}
        ended = self._note_exit(held, line)
        if self._keeper_ready:
            self._effects.to_broker.append(ended)

    def _stop(self, message: Stop) -> None:
        held = self._attempts.get(message.attempt)
        if held is None or held.exited is not None:
            return
        held.stopping = True
        if self._keeper_ready:
            self._effects.to_keeper.append(stop_verb(message))

    def _suspend(self, verb: str, attempt: str, *, on: bool) -> None:
        held = self._attempts.get(attempt)
        if held is None or held.exited is not None:
            return
        held.suspended = on
        if self._keeper_ready:
            self._effects.to_keeper.append({"v": verb, "id": attempt})

    def _forget(self, attempts: list[str]) -> None:
        # A broker may only forget what is its own: nobody else heard of the others.
        own = [attempt for attempt in attempts if not self._books.is_foreign(attempt)]
        for attempt in own:
            self._attempts.pop(attempt, None)
        self._let_keeper_forget(own)

    def _let_keeper_forget(self, attempts: list[str]) -> None:
        if attempts:
            self._effects.to_keeper.append({"v": "forget", "ids": attempts})

    def _drop_oldest(self) -> None:
        dropped = self._books.drop_oldest()
        self._let_keeper_forget(dropped)
        if dropped:
            self._effects.log_events.append(
                log_event(
                    "exits.dropped",
                    exits=len(dropped),
                    attempt=dropped[0],
                    limit=MOST_KEPT,
                )
            )

    def _recall(self, message: Recall) -> None:
        times, asked = chain(message.placed_at, repeat(0)), []
        for attempt, at in zip(message.attempts, times, strict=False):
            held = self._attempts.get(attempt)
            if held is not None and held.was_placed(at):
                held.recalled = True
                asked.append(attempt)
            else:
                # A start that was sent before this was read before this: none came,
                # or another attempt has its name and it was refused.
                self._return(attempt, RECALLED, at)
        self._effects.to_keeper.append({"v": "recall", "ids": asked})

    def _can_start(self, unable: str) -> None:
        """Tell the broker whether jobs can be started here, if that has changed."""
        said = self._ability.changed(unable)
        self._effects.to_broker.extend(said)
        if said:
            self._give_back()

    def _give_back(self) -> None:
        """Let go of what has not begun, while none can begin here."""
        asked, unheard = self._ability.given_back()
        for attempt in unheard:
            self._recalled(attempt)
        if asked and self._keeper_ready:
            self._effects.to_keeper.append({"v": "recall", "ids": asked})

    def _return(self, attempt: str, reason: str, placed_at: int) -> None:
        self._books.give_back(attempt, placed_at)
        self._effects.to_broker.append(Returned(attempt, reason, placed_at))

    def _keeper_hello(self, listed: list[Verb]) -> None:
        """Bring the worker's books in line with what the keeper really has."""
        self._keeper_ready = True
        known = {line["id"] for line in listed if not self._is_forgotten(line)}
        for line in listed:
            if line["id"] in known:
                self._listed(line)
        for attempt, held in list(self._attempts.items()):
            if attempt not in known and held.exited is None:
                self._missing(attempt, held)
        self._say_hello()

    def _is_forgotten(self, line: Verb) -> bool:
        """Tell whether an exit was forgotten when there was no keeper to hear of it.

        Otherwise nothing else could have been started under its name since.
        """
        held = self._attempts.get(line["id"])
        if line["state"] != "exited" or held is None:
            return False
        if held.was_placed(placed_at(line)):
            return False
        self._let_keeper_forget([line["id"]])
        return True

    def _listed(self, line: Verb) -> None:
        attempt = line["id"]
        if attempt not in self._attempts:
            # A daemon before this one started it.
            self._books.take_in(attempt, held_of(line))
        held = self._attempts[attempt]
        held.stopping = bool(line.get("stopping"))
        held.suspended = bool(line.get("suspended"))
        held.begun = bool(line.get("begun", True))
        if line.get("started_at") is not None:
            self._note_start(held, {**line, "at": line["started_at"]})
            self._watch(line)
        if line["state"] == "exited" and held.exited is None:
            self._note_exit(held, line)

    def _missing(self, attempt: str, held: Held) -> None:
        if held.verb is None and held.begun:
            reason = "its keeper was killed and left no trace of it"
            at = held.started.at if held.started else 0
            line = {"id": attempt, "at": at, "lost": True, "reason": reason}
            self._note_exit(held, line)
        elif held.verb is None or held.recalled:
            # Nothing was run, as below: the broker places it anew, here or elsewhere.
            self._recalled(attempt)
        else:
            # The keeper died before it read this; it records before it spawns, so
            # nothing was run and it is safe to ask again.
            held.sent = True
            verbs = asked_again(attempt, held, held.verb)
            self._effects.to_keeper.extend(verbs)

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
        if self._books.is_foreign(line["id"]):
            self._drop_oldest()

    def _error(self, line: Verb) -> None:
        """End an attempt that the keeper will not start."""
        id, why = line.get("id"), refusal_of(line)
        held = self._attempts.get(id) if isinstance(id, str) else None
        if held is not None and held.verb is not None and why is not None:
            self._cannot_start(line["id"], held, why)

    def _note_start(self, held: Held, line: Verb) -> Started:
        held.started, held.verb, held.begun = started_of(held, line), None, True
        held.since = line.get("since")
        return held.started

    def _note_exit(self, held: Held, line: Verb) -> Exited:
        held.exited, held.verb = exited_of(held, line), None
        self._books.let_go(line["id"], held)
        self._effects.unwatch.append(line["id"])
        return held.exited

    def _recalled(self, attempt: str) -> None:
        held = self._attempts.get(attempt)
        if held is not None and held.exited is None:
            del self._attempts[attempt]
            self._books.let_go(attempt, held)
            self._return(attempt, RECALLED, held.placed_at)

    def _say_hello(self) -> None:
        if not self._keeper_ready:
            return
        verbs = self._greeting.first(self.now_s)
        if verbs is None:
            hello = self._greeting.hello(
                self._attempts, self.now_s, self._ability.unable, self.wall_us
            )
            self._ability.told = hello.unable
            self._effects.to_broker.append(hello)
        else:
            self._effects.to_keeper.extend(verbs)
