"""Memory that a guest's own process has: not in its way, and never given out twice."""

from random import Random

from grass.model.resources import Request, Units
from grass.scheduler import Scheduler

from .oracle import Oracle, Waiting

GIB = 10_000
CARD = 80 * GIB
MODELS = {"0": "a100", "1": "h200"}
REQUESTS: tuple[Request, ...] = (
    (("vram", 20 * GIB),),
    (("vram", 50 * GIB),),
    (("vram", CARD),),
    (("gpu", 5_000),),
    (("gpu", 10_000),),
    (("gpu", 5_000), ("vram", 40 * GIB)),
)


class Machine:
    """One worker with two GPUs; plain jobs, and guests of two processes, by chance."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scheduler, self.oracle, self.jobs = Scheduler(10**9), Oracle(), 0
        self.scheduler.set_queue(
            "default", paused=False, max_running=None, open_to_all=True
        )
        capacity = {
            "gpu": dict.fromkeys("01", 10_000),
            "vram": dict.fromkeys("01", CARD),
        }
        self.scheduler.add_worker("u", capacity)
        self.oracle.capacity["u"] = capacity
        self.oracle.models = {("u", unit): f"gpu:{unit}" for unit in MODELS}

    def enqueue(self) -> None:
        self.jobs += 1
        request = self.random.choice(REQUESTS)
        process = self.random.choice((None, 7, 8))
        model = self.random.choice(("gpu:0", "gpu:1"))
        self.scheduler.enqueue(
            self.jobs, "default", request, worker="u", gpu_model=model, process=process
        )
        self.oracle.waiting[self.jobs] = Waiting(
            "default", request, 0, "u", model=model, process=process
        )

    def release(self) -> None:
        if self.oracle.running:
            job = self.random.choice(list(self.oracle.running))
            self.scheduler.release(job)
            del self.oracle.running[job]

    def withhold(self) -> None:
        withheld: Units = {}
        processes: dict[int, Units] = {7: {}, 8: {}}
        for unit in MODELS:
            strangers, *own = (
                self.random.choice((0, 0, 5, 30)) * GIB for _ in range(3)
            )
            withheld[unit] = strangers + sum(own)
            self.oracle.withheld["u", "vram", unit] = withheld[unit]
            for pid, amount in zip(processes, own, strict=True):
                processes[pid][unit] = self.oracle.own["u", pid, unit] = amount
        self.scheduler.withhold("u", {"vram": withheld}, processes)

    def decide(self) -> None:
        for job, worker, allocation in self.scheduler.decide(0.0):
            asked = self.oracle.waiting.pop(job)
            assert self.oracle.fits(asked, worker)
            self.oracle.running[job] = asked, worker, allocation
            self.check_memory(asked, allocation["vram"])
        assert self.oracle.startable() == []
        self.scheduler.check()

    def check_memory(self, asked: Waiting, given: Units) -> None:
        """What jobs hold is there beside all that others than the guest have."""
        for unit in given:
            held = sum(
                one["vram"].get(unit, 0) for _, _, one in self.oracle.running.values()
            )
            own = self.oracle.own.get(("u", asked.process or 0, unit), 0)
            withheld = self.oracle.withheld.get(("u", "vram", unit), 0)
            assert held + withheld - own <= CARD, "memory was given out twice"


def test_guests_start_as_soon_as_others_leave_them_room() -> None:
    for seed in range(20):
        machine = Machine(seed)
        steps = (machine.enqueue, machine.release, machine.release, machine.withhold)
        for _ in range(150):
            machine.random.choice(steps)()
            machine.decide()
