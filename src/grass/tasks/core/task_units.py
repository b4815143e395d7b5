"""The units of one program: which tasks wait for them, and which task has which.

A private instance of the scheduler decides, with one queue. One worker is this
program itself; others are its task hosts, which come and go. Before a
task waits there it takes its parts of the user's own classes, in the order of
submission among all tasks that want one of the same parts: such a task is for this
program's own units. A task that ends gives both
back. Always true: a task waits for own parts, waits in the scheduler, follows another
one, or holds units; or it is not known here.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

from grass.errors import NeverFits
from grass.model.resources import Allocation, Capacity, Request, request_text
from grass.resource import ZERO, Resource, WTime, combined, counted, own_parts
from grass.scheduler.scheduler import Scheduler

HERE = "here"
"""The worker that this program itself is."""
_QUEUE = "tasks"


class TaskRequest(NamedTuple):
    """What a task asks for, as it was checked."""

    request: Request
    own: Resource = ZERO
    """The parts of the user's own classes."""
    priority: int = 0


class TaskStart(NamedTuple):
    """A task that starts now, and what it was given."""

    task: int
    allocation: Allocation
    own: Resource
    worker: str = HERE
    """Whose units these are."""


class TaskUnits:
    """The units of a program, the tasks that hold them and those that wait."""

    def __init__(self, capacity: Capacity, own: Resource = ZERO) -> None:
        self._own = own
        # What can ever be had is asked of a copy that nobody has taken from.
        self._untouched = deepcopy(own)
        self._own_waiting: dict[int, TaskRequest] = {}
        self._own_taken: dict[int, Resource] = {}
        self._scheduler = Scheduler()
        self._scheduler.set_queue(
            _QUEUE, paused=False, max_running=None, open_to_all=True
        )
        self.capacity: Capacity = {}
        """What this program itself has."""
        self._expected: dict[str, Capacity] = {}
        self.add_capacity(capacity)

    def add_capacity(self, capacity: Capacity) -> None:
        """Add units of further kinds."""
        self.capacity = {**self.capacity, **capacity}
        self._scheduler.add_worker(HERE, self.capacity)

    def expect_worker(self, worker: str, capacity: Capacity) -> None:
        """Accept tasks that only a worker can run which is still to come."""
        self._expected[worker] = capacity
        self._scheduler.remember_worker(worker, capacity)

    def add_worker(self, worker: str, capacity: Capacity) -> None:
        """Place tasks on the units of a worker, too."""
        self._expected[worker] = capacity
        self._scheduler.add_worker(worker, capacity)

    def others(self) -> list[str]:
        """Return the workers other than this program, also those still to come."""
        return list(self._expected)

    def remove_worker(self, worker: str) -> None:
        """Place nothing more on a worker; tasks that hold its units have to end."""
        self._expected.pop(worker, None)
        self._scheduler.forget_worker(worker)

    def can_be_met(self, ask: TaskRequest) -> bool:
        """Tell whether a worker, here or to come, can meet what is asked."""
        only = HERE if ask.own.parts else None
        why = self._scheduler.never_fits(_QUEUE, ask.request, worker=only)
        return not ask.request or why is None

    def ask_for(self, request: Request, priority: int = 0) -> TaskRequest:
        """Read what a task asks for that is counted; refuse what can never be met."""
        return self._checked(TaskRequest(request, ZERO, priority))

    def _checked(self, ask: TaskRequest) -> TaskRequest:
        if not self.can_be_met(ask):
            asked = request_text(ask.request)
            raise NeverFits(
                f"{asked} is more than this program has: {self.text()}",
                "ask for less, or name more in `rpw`",
            )
        return ask

    def ask(self, res: Resource, priority: int = 0) -> TaskRequest:
        """Read what a task asks for; refuse what can never be met."""
        own = own_parts(res)
        parts = {
            name: part for name, part in own.items() if not isinstance(part, WTime)
        }
        asked = combined(parts) if parts else ZERO
        if parts and not self._untouched.request(asked):
            raise NeverFits(
                f"{asked!r} is more than this program has: {self._untouched!r}",
                "name all there is of it in `rpw`",
            )
        return self._checked(TaskRequest(counted(res), asked, priority))

    def text(self) -> str:
        """Say what the program has: on one machine, or on each of several."""
        if not self._expected:
            return _text(self.capacity)
        others = [f"{_text(has)} on {name}" for name, has in self._expected.items()]
        return "; ".join([f"{_text(self.capacity)} here", *others])

    def submit(self, tasks: list[int], ask: TaskRequest) -> None:
        """Have tasks wait that ask for the same, in the order of their numbers."""
        if ask.own.parts:
            self._own_waiting.update(dict.fromkeys(tasks, ask))
        else:
            self._enqueue(tasks, ask)

    def decide(self, now: float) -> list[TaskStart]:
        """Return the tasks that start now."""
        if self._own_waiting:
            self._take_own()
        return [self._started(*one) for one in self._scheduler.decide(now)]

    def follow(self, task: int, at_most: int) -> int | None:
        """Return a task that takes over what another holds; at most this many do."""
        if task in self._own_taken:
            return None
        placement = self._scheduler.prefetch(task, at_most)
        return None if placement is None else placement.job

    def recall(self, task: int, ask: TaskRequest) -> None:
        """Have a task that follows another wait again."""
        assert self._scheduler.predecessor(task) is not None, f"{task} follows nobody"
        self._scheduler.release(task)
        self._enqueue([task], ask)

    def ended(self, task: int) -> TaskStart | None:
        """Give back what a task has, or pass it to the one that follows it."""
        own = self._own_taken.pop(task, None)
        if own is not None:
            self._own.dealloc(own)
        follower = self._scheduler.release(task)
        if follower is None:
            return None
        allocation = self._scheduler.allocation(follower)
        worker = self._scheduler.worker_of(follower)
        assert allocation is not None
        assert worker is not None
        return self._started(follower, worker, allocation)

    def hand_over(self, task: int) -> TaskStart | None:
        """Give back what a task has, or pass it to the next that asks for the same."""
        if task not in self._own_taken:
            placed = self._scheduler.hand_over(task)
            if placed is not None:
                return self._started(*placed)
        return self.ended(task)

    def removed(self, task: int) -> None:
        """Forget a task that waits."""
        if self._own_waiting.pop(task, None) is None:
            self._scheduler.remove(task)
            self.ended(task)

    def waiting(self) -> int:
        """Return how many tasks wait."""
        return len(self._own_waiting) + self._scheduler.waiting()

    def check(self) -> None:
        """Walk every invariant; raise AssertionError with the one that is broken."""
        self._scheduler.check()
        for task in self._own_waiting:
            assert not self._scheduler.waits(task), f"{task} waits twice"
            assert task not in self._own_taken, f"{task} has what it waits for"

    def _enqueue(self, tasks: list[int], ask: TaskRequest) -> None:
        only = HERE if ask.own.parts else None
        self._scheduler.enqueue_all(
            tasks, _QUEUE, ask.request, ask.priority, worker=only
        )

    def _started(self, task: int, worker: str, allocation: Allocation) -> TaskStart:
        return TaskStart(task, allocation, self._own_taken.get(task, ZERO), worker)

    def _take_own(self) -> None:
        """Take own parts for tasks; none overtakes one that wants the same part."""
        blocked: set[str] = set()
        for task, ask in list(self._own_waiting.items()):
            parts: Mapping[str, Resource] = ask.own.parts
            if blocked.isdisjoint(parts) and self._own.request(ask.own):
                self._own_taken[task] = self._own.alloc(ask.own)
                del self._own_waiting[task]
                self._enqueue([task], ask)
            else:
                blocked.update(parts)
                if blocked >= self._own.parts.keys():
                    return


def _text(capacity: Capacity) -> str:
    totals = {kind: sum(units.values()) for kind, units in capacity.items()}
    return request_text(tuple(sorted(totals.items()))) or "nothing"
