"""Long histories of jobs with types on GPUs of several models, against the oracle."""

import random

import pytest

from grass.model.resources import Capacity, Request
from grass.scheduler import Placement

from .histories import PROCESSES, Histories, HistoriesWithReservations
from .oracle import Waiting

QUEUES = ("default", "default", "default", "a", "b")
TYPES = (None, None, "train.py", "train.py", "eval.py", "fit.py")
AUTO: tuple[Request, ...] = ((), (), (("gpu", 5_000),), (("cpu", 10_000),))
# No half GPUs without an amount of memory: a start beside one can make it fit, because
# what it brings is a part of what is left.
PLAIN: tuple[Request, ...] = (
    (("vram", 5_000),),
    (("vram", 20_000),),
    (("gpu", 10_000),),
    (("cpu", 10_000), ("gpu", 2_500), ("vram", 2_500)),
)
AMOUNTS = (2_500, 7_500, 12_500, 30_000, 10**9)


class WithReservations(HistoriesWithReservations):
    """Memory that a share brings is fixed when it is reserved."""

    def check_memory(self, asked: Waiting, placement: Placement) -> None:
        """It may be less or more than it would be now."""
        free = self.oracle.free_for(asked, placement.worker, "vram")
        for unit, amount in placement.allocation["vram"].items():
            assert amount <= free[unit]


class LearnedHistory:
    """Jobs come and go on three workers while their types are learned."""

    def __init__(self, seed: int, checks: Histories) -> None:
        self.chance = random.Random(seed)
        self.checks = checks
        for worker, gpus in (("u", 3), ("v", 2), ("w", 1)):
            checks.add_worker(worker, self.capacity(gpus))
            checks.set_view("a", worker, self.capacity(gpus))
        checks.set_view("b", "u", {"gpu": {"0": 5_000, "1": 10_000}})

    def capacity(self, gpus: int) -> Capacity:
        """Make up what a worker or a view has."""
        units = [str(unit) for unit in range(gpus)]
        sizes = (20_000, 25_000, 40_000)
        return {
            "gpu": dict.fromkeys(units, 10_000),
            "vram": {unit: self.chance.choice(sizes) for unit in units},
            "cpu": {"0": 20_000, "1": 10_000},
        }

    def turn(self) -> None:
        """One thing happens, and jobs start."""
        self.chance.choice(
            (
                *(self.enqueue, self.enqueue, self.end, self.end),
                *(self.learn, self.shrink, self.use, self.limit_jobs, self.be_busy),
            )
        )()
        self.checks.everything_adds_up()
        if self.chance.random() < 0.8:
            self.checks.decide()

    def enqueue(self) -> None:
        """A few jobs of one shape arrive, unless many wait."""
        chance = self.chance
        if len(self.checks.oracle.waiting) > 12:
            return
        learned = chance.choice(TYPES)
        self.checks.enqueue(
            chance.choice(QUEUES),
            chance.choice(PLAIN if learned is None else AUTO),
            chance.choice([0, 0, 0, 1]),
            worker=None,
            limiters=(),
            model=chance.choice([None, None, None, "a100"]),
            policy=chance.choice([None, None, "pack"]),
            learned=learned,
            process=chance.choice([None, None, None, *PROCESSES]),
            copies=chance.choice([1, 2, 3]),
            decides=False,
        )

    def end(self) -> None:
        """A job ends."""
        if self.checks.oracle.running:
            self.checks.end(self.chance.choice(sorted(self.checks.oracle.running)))

    def learn(self) -> None:
        """Something is learned of a type; now and then all is forgotten."""
        job_type = self.chance.choice(("train.py", "eval.py", "fit.py"))
        known = dict(self.checks.oracle.known.get(job_type, {}))
        known[self.chance.choice(("a100", "h200", ""))] = self.chance.choice(AMOUNTS)
        self.checks.set_profile(job_type, {} if self.chance.random() < 0.3 else known)

    def shrink(self) -> None:
        """Jobs with a whole GPU whose type is known by now keep what they need."""
        running = self.checks.oracle.running
        for job, (asked, worker, _) in list(running.items()):
            kept = self.checks.scheduler.packed(job, asked.request)
            if kept is not None:
                self.checks.scheduler.shrink(job, kept)
                running[job] = (asked, worker, kept)

    def limit_jobs(self) -> None:
        """A GPU may have more or fewer jobs."""
        most = self.chance.choice([None, None, 1, 2, 3])
        self.checks.scheduler.set_jobs_per_gpu(most)
        self.checks.oracle.most_jobs = most

    def be_busy(self) -> None:
        """Some GPUs of a worker are busy, or none."""
        worker, oracle = self.chance.choice("uvw"), self.checks.oracle
        units = list(oracle.capacity[worker]["gpu"])
        busy = {unit for unit in units if self.chance.random() < 0.3}
        self.checks.scheduler.set_busy(worker, frozenset(busy))
        oracle.busy -= {(worker, unit) for unit in units}
        oracle.busy |= {(worker, unit) for unit in busy}

    def use(self) -> None:
        """Strangers use more or less of a GPU."""
        worker = self.chance.choice("uvw")
        unit = self.chance.choice(sorted(self.checks.oracle.capacity[worker]["vram"]))
        amount = self.chance.choice([0, 0, 900, 6_000, 18_000])
        of_guest = self.chance.choice(PROCESSES), self.chance.choice([0, 900, 18_000])
        self.checks.use(worker, "vram", unit, amount, of_guest)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_startable_waits_while_types_are_learned(seed: int) -> None:
    history = LearnedHistory(seed, Histories())
    for _ in range(150):
        history.turn()


@pytest.mark.parametrize("seed", range(4))
def test_reservations_hold_while_types_are_learned(seed: int) -> None:
    history = LearnedHistory(seed, WithReservations())
    for _ in range(150):
        history.turn()
