"""A broker, a worker and a backup, in any order: each job runs as itself, and once.

Both cores are real, messages wait in line, and chance says what happens next: a message
arrives, the link is cut, a daemon dies, a process ends, or the database of before comes
back and gives its numbers out again.
"""

import contextlib
import json
import sqlite3
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.support.brokerage import SECOND, Brokerage
from tests.support.building import BOOT, WORKER, units
from tests.worker.lab import entry_of

from grass.keeper.codec import encode
from grass.link.messages import Resync, ToBroker, ToWorker
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.store.sqlite.sqlite_store import SqliteStore
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore

AROUND = Surroundings("/out", "/home/me", "/bin/sh", {})
UNITS = "{cpu:2}"
STEPS, SEEDS = 120, 40


class Played:
    """A keeper that starts at once what it is asked for, and outlives all else."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.runs: Counter[str] = Counter()
        self.lines: deque[dict[str, Any]] = deque()

    def hear(self, verb: dict[str, Any], now_us: int) -> None:
        match verb["v"]:
            case "start":
                assert verb["id"] not in self.kept, "two of one name"
                name = verb["env"]["GRASS_NAME"]
                assert name not in self.alive(), "two of one job"
                self.runs[name] += 1
                self.check_units(verb["id"], verb["meta"])
                began = {"pid": 7, "ticks": 9, "started_at": now_us, "name": name}
                self.kept[verb["id"]] = {"state": "running", **began, **verb}
                self.lines.append({"e": "started", "at": now_us, **began, **verb})
            case "stop":
                pytest.fail(f"{verb['id']} is stopped, and nobody asked for it")
            case "forget":
                for id in verb["ids"]:
                    self.kept.pop(id, None)
            case _:
                pass

    def check_units(self, id: str, notes: dict[str, Any]) -> None:
        """Check that no core is given out twice; what follows another one shares it."""
        others = [self.kept[one]["meta"] for one in self.running()]
        counted = [
            one["allocation"]["cpu"] for one in (notes, *others) if not one["after"]
        ]
        for unit in notes["allocation"]["cpu"]:
            held = sum(one.get(unit, 0) for one in counted)
            assert held <= WHOLE, f"{id} oversubscribes core {unit}"

    def end(self, id: str, now_us: int, **how: Any) -> None:
        # Longer than a job may be that others are handed ahead to follow.
        ended = {"at": now_us + 10 * SECOND, **how}
        self.kept[id].update(state="exited", **ended)
        self.lines.append({"e": "exited", "id": id, **ended})

    def running(self) -> list[str]:
        return [id for id, one in self.kept.items() if one["state"] == "running"]

    def alive(self) -> list[str]:
        return [self.kept[id]["name"] for id in self.running()]


class Pair:
    """A broker and a worker, and all that is under way between them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.path, self.copy = folder / "grass.db", folder / "kept.db"
        self.broker = Brokerage(self.path, UNITS)
        self.keeper = Played()
        self.to_worker: deque[ToWorker] = deque()
        self.to_broker: deque[ToBroker] = deque()
        self.linked = True
        self.names: dict[str, bool] = {}
        """All jobs, and whether they are from before the database came back."""
        self.new_worker()

    def new_worker(self) -> None:
        found = units(UNITS)
        who = WorkerIdentity(WORKER, "desk", BOOT, found, instance="i")
        self.worker = WorkerCore(who, AROUND)
        self.keeper.lines.clear()
        listed = [{"id": id, **one} for id, one in self.keeper.kept.items()]
        hello = {"e": "hello", "version": 2, "attempts": listed}
        self.worker.from_keeper(entry_of(hello))
        self.cut()
        self.work()

    def work(self) -> None:
        effects = self.worker.take()
        for verb in effects.to_keeper:
            self.keeper.hear(json.loads(encode(verb)), self.broker.now_us)
        if self.linked:
            self.to_broker.extend(effects.to_broker)

    def post(self) -> None:
        if self.linked:
            self.to_worker.extend(message for _, message in self.broker.sent)
        self.broker.sent = []

    def cut(self) -> None:
        self.to_worker.clear()
        self.to_broker.clear()
        self.linked = False
        self.broker.leave()
        self.broker.sent = []

    def link(self) -> None:
        if not self.linked:
            self.linked = True
            self.worker.from_broker(Resync())
            self.work()

    def hear(self) -> None:
        """Let the next message to the broker arrive."""
        if self.to_broker:
            self.broker.hear(self.to_broker.popleft(), instance="i")
            self.post()

    def tell(self) -> None:
        """Let the next message to the worker arrive."""
        if self.to_worker:
            self.worker.from_broker(self.to_worker.popleft())
            self.work()

    def learn(self) -> None:
        """Let the next line of the keeper arrive."""
        if self.keeper.lines:
            self.worker.from_keeper(entry_of(self.keeper.lines.popleft()))
            self.work()

    def enqueue(self) -> None:
        name = f"job-{len(self.names)}"
        self.names[name] = False
        self.broker.enqueue(name=name)
        self.post()

    def finish(self) -> None:
        if self.keeper.running():
            id = self.rng.choice(self.keeper.running())
            code = code_of(self.keeper.kept[id]["name"])
            self.keeper.end(id, self.broker.now_us, code=code)

    def keep(self) -> None:
        here, there = sqlite3.connect(self.path), sqlite3.connect(self.copy)
        with contextlib.closing(here), contextlib.closing(there):
            here.backup(there)

    def bring_back(self) -> None:
        """Have the database of before again, under a broker that starts."""
        self.broker.store.close()
        for file in self.path.parent.glob("grass.db*"):
            file.unlink()
        self.path.write_bytes(self.copy.read_bytes())
        self.broker.store = SqliteStore(self.path)
        self.broker.restart()
        self.cut()
        self.names = dict.fromkeys(self.names, True)
        for _ in range(self.rng.randrange(4)):
            self.enqueue()

    def ask(self) -> None:
        """Have the broker ask for a report, as after a batch that was dropped."""
        if self.linked:
            self.to_worker.append(Resync())

    def play(self) -> None:
        often = [self.hear, self.tell, self.learn, self.link] * 3
        steps = [*often, *[self.enqueue, self.finish] * 2, self.ask]
        back = self.rng.randrange(STEPS // 2)
        for step in range(STEPS):
            if step == back // 3:
                self.keep()
            if step == back:
                self.bring_back()
            rare = [self.cut, self.new_worker] if self.rng.random() < 0.3 else []
            self.rng.choice(steps + rare)()

    def release(self) -> None:
        """Release what was held because it might have run twice at a time."""
        jobs = self.broker.state.jobs.values()
        held = [job.id for job in jobs if job.state is JobState.HELD]
        if held and not self.keeper.running():
            self.broker.release(*held)
            self.post()

    def come_to_rest(self) -> None:
        """Let all that is under way arrive, and every process end."""
        self.link()
        for _ in range(1000):
            if not self.broker.state.jobs:
                return
            for step in (self.hear, self.tell, self.learn, self.finish):
                step()
            self.release()
        pytest.fail("a job never ended")


def code_of(name: str) -> int:
    """Tell how a job ends when it is left alone."""
    return int(name.removeprefix("job-")) % 2


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_backup_that_comes_back_mixes_no_jobs_up(folder: Path, seed: int) -> None:
    pair = Pair(folder, seed)
    pair.play()
    pair.come_to_rest()
    ended = {JobState.SUCCEEDED: 0, JobState.FAILED: 1}
    for number in range(1, pair.broker.state.last_job + 1):
        for details in pair.broker.store.details([number]):
            job = details.job
            if pair.names[job.name]:
                continue
            assert ended.get(job.state) == code_of(job.name), job
            assert pair.keeper.runs[job.name] == 1, job
    pair.broker.store.close()
