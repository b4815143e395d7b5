"""Any history of calls, ends and restarts keeps every promise of the broker."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT

from grass.errors import NeverFits, Refused
from grass.link.messages import (
    Exited,
    Forget,
    Recall,
    Report,
    Returned,
    Start,
    Stop,
)
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.worker.core.attempt_table import AllocatedUnits

REQUESTS = [
    "{cpu:1}",
    "{cpu:0.5}",
    "{cpu:2}",
    "{gpu:0.3}",
    "{gpu:1,cpu:1}",
    "{}",
    "{cpu:9}",
]


class History(RuleBasedStateMachine):
    """A broker, and beside it a worker that believes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.broker = Brokerage(Path(self.folder.name) / "grass.db", "{cpu:2, gpu:1}")
        self.boot = BOOT
        self.here = True
        self.running: dict[str, Start] = {}
        self.waiting: dict[str, Start] = {}
        self.after: dict[str, str] = {}
        self.exited: dict[str, Exited] = {}
        self.ever: dict[str, int] = {}
        self.ended: dict[int, JobState] = {}
        self.last = 0

    def teardown(self) -> None:
        self.broker.store.close()
        self.folder.cleanup()

    def listen(self) -> None:
        """Have the worker take what was sent, if it is connected."""
        if not self.here:
            return
        replies: list[Exited | Returned] = []
        for _, message in self.broker.sent:
            match message:
                case Start():
                    self.take_in(message)
                case Forget():
                    for name in message.attempts:
                        self.exited.pop(name, None)
                case Recall():
                    mine = [name for name in message.attempts if name in self.waiting]
                    replies += [Returned(name, "recalled") for name in mine]
                case Stop() if message.attempt in self.waiting:
                    reason = "cancelled before it started"
                    self.exited[message.attempt] = Exited(
                        message.attempt, 1, reason=reason
                    )
                    replies.append(self.exited[message.attempt])
                case _:
                    pass
        for reply in replies:
            self.step_aside(reply.attempt)
            self.broker.hear(reply)
            self.listen()

    def take_in(self, start: Start) -> None:
        """Run an attempt, now or when the one before it is gone."""
        name = start.attempt
        if name in self.running or name in self.waiting or name in self.exited:
            return
        if start.after in self.running or start.after in self.waiting:
            self.waiting[name] = start
            self.after[name] = str(start.after)
        else:
            self.begin(start)

    def begin(self, start: Start) -> None:
        self.ever[start.attempt] = self.ever.get(start.attempt, 0) + 1
        assert self.ever[start.attempt] == 1, "an attempt ran twice"
        twins = [one for one in self.running.values() if one.job == start.job]
        assert not twins, "two attempts of one job run at once"
        self.running[start.attempt] = start
        units = AllocatedUnits()
        units.set_capacity({"cpu": {"0": WHOLE, "1": WHOLE}, "gpu": {"0": WHOLE}})
        for one in self.running.values():
            assert units.excess(one.allocation) is None, "a unit is given out twice"
            units.allocate(one.allocation)

    def step_aside(self, name: str) -> None:
        """Take out an attempt that waits for its turn; who follows it moves up."""
        if name in self.waiting:
            del self.waiting[name]
            leader = self.after.pop(name)
            for follower, before in self.after.items():
                if before == name:
                    self.after[follower] = leader

    def let_follow(self, name: str) -> None:
        """Start who waited for an attempt that is gone."""
        followers = [one for one, before in self.after.items() if before == name]
        for follower in followers:
            del self.after[follower]
            self.begin(self.waiting.pop(follower))

    def end(self, name: str, at: int, **how: Any) -> None:
        del self.running[name]
        self.exited[name] = Exited(name, at, **how)
        self.let_follow(name)

    @rule(
        require=st.sampled_from(REQUESTS),
        priority=st.integers(-1, 1),
        queue=st.sampled_from(["default", "q1"]),
    )
    def enqueue(self, require: str, priority: int, queue: str) -> None:
        if queue not in self.broker.state.queues:
            queue = "default"
        try:
            job = self.broker.enqueue(require=require, priority=priority, queue=queue)
        except NeverFits:
            # What the worker has is known, be it here or not.
            return
        assert job > self.last
        self.last = job
        self.listen()

    @rule(count=st.integers(2, 6))
    def enqueue_several(self, count: int) -> None:
        for _ in range(count):
            self.enqueue("{cpu:1}", 0, "default")

    @precondition(lambda self: self.last)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = data.draw(st.integers(1, self.last))
        self.broker.cancel(job)
        self.listen()

    @precondition(lambda self: self.here and self.running)
    @rule(data=st.data())
    def a_process_begins(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        self.broker.start(self.running[name].job)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), code=st.integers(0, 2), lost=st.booleans())
    def a_process_ends(self, data: st.DataObject, code: int, lost: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        at = self.broker.now_us
        if self.here:
            # Over as soon as it began: such jobs are handed ahead of their turn.
            self.broker.start(self.running[name].job)
        self.end(name, at, exit_code=None if lost else code, lost=lost)
        if self.here:
            self.broker.hear(self.exited[name])
            self.listen()

    @precondition(lambda self: self.here and self.running)
    @rule(data=st.data())
    def a_start_is_returned(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        attempt = self.broker.state.attempts.get(self.running[name].job)
        if attempt is None or attempt.state != "starting":
            return
        del self.running[name], self.ever[name]
        self.let_follow(name)
        self.broker.hear(Returned(name, "in use"))
        self.listen()

    @rule(deaf=st.booleans())
    def the_broker_restarts(self, deaf: bool) -> None:
        """A deaf worker did not get what the last batch sent."""
        if not deaf:
            self.listen()
        self.broker.restart()
        self.here = False

    @precondition(lambda self: not self.here)
    @rule(rebooted=st.booleans())
    def the_worker_connects(self, rebooted: bool) -> None:
        if rebooted:
            self.boot += "'"
            for known in (self.running, self.exited, self.waiting, self.after):
                known.clear()
        self.here = True
        reports = [
            Report(name, start.allocation, running=True, started_at=1, pid=2)
            for name, start in self.running.items()
        ]
        reports += [
            Report(name, start.allocation, running=False)
            for name, start in self.waiting.items()
        ]
        self.broker.hello(reports, list(self.exited.values()), self.boot)
        self.listen()

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        if on:
            self.broker.pause()
        else:
            self.broker.resume()
        self.listen()

    @rule(limit=st.sampled_from([None, 1]))
    def create_queue(self, limit: int | None) -> None:
        try:
            self.broker.create_queue("q1", "{cpu:{'0':0.5}}", max_running=limit)
        except Refused:
            return
        self.listen()

    @precondition(lambda self: "q1" in self.broker.state.queues)
    @rule()
    def delete_queue(self) -> None:
        try:
            self.broker.delete_queue("q1")
        except Refused:
            return
        self.listen()

    @invariant()
    def no_job_is_lost_and_what_has_ended_stays_ended(self) -> None:
        found = self.broker.store.details(list(range(1, self.last + 1)))
        assert [one.job.id for one in found] == list(range(1, self.last + 1))
        for one in found:
            before = self.ended.setdefault(one.job.id, one.job.state)
            if before in ENDED:
                assert one.job.state is before
            self.ended[one.job.id] = one.job.state

    @invariant()
    def what_runs_is_known_to_run(self) -> None:
        if self.here:
            live = {self.broker.name(job) for job in self.broker.state.attempts}
            assert live == {*self.running, *self.waiting}


History.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestAnyHistory = History.TestCase
