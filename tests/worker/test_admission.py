"""What is withheld of GPUs: strangers, and what jobs use beyond their share."""

from itertools import count
from random import Random

from grass.link.messages import Withheld
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.resources import Allocation
from grass.worker.core.admission import LASTED_S, MIB, Admission
from grass.worker.core.usage.samples import AttemptUse, Sample
from tests.worker.gpu_values import GUARD, MEMORY, memory
from tests.worker.gpu_values import listed_reading as reading

JOB, OTHER = "job", "other"


def use(pid: int, memory: int, unit: str = "0") -> AttemptUse:
    return AttemptUse(frozenset([pid]), 0, 0.0, {unit: memory})


def withheld(told: Withheld | None, unit: str = "0") -> int:
    assert told is not None
    return told.units["vram"][unit]


def test_nothing_is_withheld_of_a_gpu_that_nobody_uses() -> None:
    told = Admission().sampled(Sample(0.0, (reading({}),), {}), {}, 0.0)
    assert told == Withheld({"vram": {"0": 0}})


def test_the_guard_covers_what_little_is_used_without_a_process() -> None:
    for used, expected in ((GUARD, 0), (GUARD + 1, WHOLE // 2 + 1)):
        look = Sample(0.0, (reading({}, used=used, guard=GUARD),), {})
        assert withheld(Admission().sampled(look, {}, 0.0)) == expected


def test_the_guard_covers_no_stranger() -> None:
    look = Sample(0.0, (reading({7: GUARD}, guard=GUARD),), {})
    assert withheld(Admission().sampled(look, {}, 0.0)) == WHOLE // 2


def test_strangers_cost_their_memory_and_are_named_the_largest_first() -> None:
    names = {7: "python (pid 7, alice)", 8: "Xorg (pid 8, root)"}
    processes = {8: 100 * MIB, 7: 12 * GIB, 9: 10 * MIB}
    look = Sample(0.0, (reading(processes),), {}, names)
    told = Admission().sampled(look, {}, 0.0)
    expected = 12 * WHOLE + 110 * WHOLE // 1024 + 1
    assert withheld(told) == expected
    assert told is not None
    assert told.strangers == {
        "0": ["python (pid 7, alice): 12G", "Xorg (pid 8, root): 100M"]
    }


def test_what_a_job_has_reserved_is_not_withheld_used_or_not() -> None:
    for used in (0, 3 * GIB, 10 * GIB):
        look = Sample(0.0, (reading({5: used}),), {JOB: use(5, used)})
        told = Admission().sampled(look, {JOB: memory(10)}, 0.0)
        assert withheld(told) == 0
        assert not told.strangers  # type: ignore[union-attr]


def test_what_jobs_use_beyond_their_reservation_is_withheld() -> None:
    processes: dict[int, int | None] = {5: 30 * GIB, 6: 2 * GIB}
    uses = {JOB: use(5, 30 * GIB), OTHER: use(6, 2 * GIB)}
    look = Sample(0.0, (reading(processes),), uses)
    told = Admission().sampled(look, {JOB: memory(10), OTHER: memory(10)}, 0.0)
    assert withheld(told) == 20 * WHOLE


def test_what_a_job_leaves_behind_counts_until_it_is_gone() -> None:
    look = Sample(0.0, (reading({5: 8 * GIB}),), {JOB: use(5, 8 * GIB)})
    assert withheld(Admission().sampled(look, {}, 0.0)) == 8 * WHOLE


def test_memory_that_no_listed_process_uses_is_withheld() -> None:
    look = Sample(0.0, (reading({5: GIB}, used=4 * GIB),), {JOB: use(5, GIB)})
    told = Admission().sampled(look, {JOB: memory(10)}, 0.0)
    assert withheld(told) == 3 * WHOLE


def test_without_pids_the_rest_is_the_jobs_as_far_as_they_reserved_it() -> None:
    admission = Admission()

    def told(used: int, at_s: float, **attempts: Allocation) -> int:
        look = Sample(at_s, (reading({}, used=used * GIB, pids_hidden=True),), {})
        admission.sampled(look, attempts, at_s)
        return withheld(admission.told)

    assert told(2, 0.0) == 2 * WHOLE
    # The job has not begun to use any: what was there before it is not its own.
    assert told(2, 10.0, job=memory(10)) == 2 * WHOLE
    assert told(12, 20.0, job=memory(10)) == 2 * WHOLE
    assert told(30, 30.0, job=memory(10)) == 20 * WHOLE


def test_more_is_told_at_once_and_less_when_it_has_lasted() -> None:
    admission = Admission()

    def look(used: int, at_s: float) -> Withheld | None:
        listed: dict[int, int | None] = {7: used * GIB} if used else {}
        return admission.sampled(Sample(at_s, (reading(listed),), {}), {}, at_s)

    assert withheld(look(4, 0.0)) == 4 * WHOLE
    assert withheld(look(8, 0.1)) == 8 * WHOLE
    for tenth in range(2, 30):
        assert look(tenth % 2 * 8, tenth / 10) is None
    assert look(0, 5.0) is None
    gone = look(0, 2.9 + LASTED_S)
    assert gone == Withheld({"vram": {"0": 0}})


def test_a_look_after_a_long_time_counts_at_once() -> None:
    admission = Admission()
    admission.sampled(Sample(0.0, (reading({7: 9 * GIB}),), {}), {}, 0.0)
    told = admission.sampled(Sample(10.0, (reading({}),), {}), {}, 10.0)
    assert withheld(told) == 0


def test_changes_too_small_to_matter_are_not_told() -> None:
    admission = Admission()
    for at_s in count(0.0, 10.0):
        used = 4 * GIB + int(at_s) * MIB
        told = admission.sampled(Sample(at_s, (reading({7: used}),), {}), {}, at_s)
        if at_s in (0.0, 70.0):
            assert told is not None
        else:
            assert told is None
        if at_s == 70.0:
            break


def test_faults_are_told_when_they_come_and_when_they_go() -> None:
    admission = Admission()
    lost = reading({}, fault="lost from the bus")
    told = admission.sampled(Sample(0.0, (lost,), {}), {}, 0.0)
    assert told is not None
    assert told.faults == {"0": "lost from the bus"}
    assert admission.sampled(Sample(1.0, (lost,), {}), {}, 1.0) is None
    back = admission.sampled(Sample(2.0, (reading({}),), {}), {}, 2.0)
    assert back is not None
    assert not back.faults


def test_a_gpu_that_comes_and_one_that_goes_are_told() -> None:
    admission = Admission()
    both = reading({}), reading({}, "1")
    admission.sampled(Sample(0.0, both[:1], {}), {}, 0.0)
    more = admission.sampled(Sample(1.0, both, {}), {}, 1.0)
    assert more == Withheld({"vram": {"0": 0, "1": 0}})
    less = admission.sampled(Sample(2.0, both[1:], {}), {}, 2.0)
    assert less == Withheld({"vram": {"1": 0}})


def test_what_a_process_has_is_told_for_as_long_as_it_is_withheld() -> None:
    admission = Admission()
    as_stranger = Sample(0.0, (reading({5: 20 * GIB, 7: 4 * GIB}),), {})
    told = admission.sampled(as_stranger, {}, 0.0)
    assert told is not None
    assert told.processes == {5: {"0": 20 * WHOLE}, 7: {"0": 4 * WHOLE}}
    # Now it is a guest's: less is withheld only when that has lasted.
    of_guest = Sample(1.0, as_stranger.gpus, {JOB: use(5, 20 * GIB)})
    assert admission.sampled(of_guest, {JOB: memory(30)}, 1.0) is None
    # Memory that another took meanwhile is not the guest's.
    grown = Sample(2.0, (reading({5: 2 * GIB, 7: 22 * GIB}),), {JOB: use(5, 2 * GIB)})
    told = admission.sampled(grown, {JOB: memory(30)}, 2.0)
    assert told is not None
    assert withheld(told) == 24 * WHOLE
    assert told.processes == {5: {"0": 2 * WHOLE}, 7: {"0": 4 * WHOLE}}


def test_the_processes_are_not_told_where_pids_cannot_be_named() -> None:
    look = Sample(0.0, (reading({5: 20 * GIB}, pids_hidden=True),), {})
    told = Admission().sampled(look, {}, 0.0)
    assert told is not None
    assert not told.processes


class Machine:
    """Two GPUs with jobs that use what they like, and strangers, all by chance."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_s = 0.0
        self.admission = Admission()
        self.reserved: dict[str, Allocation] = {}
        self.uses: dict[str, AttemptUse] = {}
        self.strangers: dict[str, dict[int, int]] = {"0": {}, "1": {}}
        self.hidden = self.random.random() < 0.2
        self.pids = count(10)
        self.look()

    def look(self) -> None:
        found = []
        for unit, others in self.strangers.items():
            listed: dict[int, int | None] = dict(others)
            for one in self.uses.values():
                (pid,) = one.pids
                listed[pid] = listed.get(pid, 0) or one.gpu_memory.get(unit, 0)
            used = sum(memory or 0 for memory in listed.values())
            listed = {} if self.hidden else listed
            found.append(reading(listed, unit, used=used, pids_hidden=self.hidden))
        uses = {} if self.hidden else dict(self.uses)
        look = Sample(self.now_s, tuple(found), uses)
        self.admission.sampled(look, self.reserved, self.now_s)

    def free(self, unit: str) -> int:
        held = sum(one["vram"].get(unit, 0) for one in self.reserved.values())
        assert self.admission.told is not None
        return MEMORY // GIB * WHOLE - held - withheld(self.admission.told, unit)

    def start(self) -> None:
        """Start a job as a worker does, which has looked just now."""
        unit, name = self.random.choice("01"), f"job {next(self.pids)}"
        size = self.random.randrange(1, 40)
        if size * WHOLE > self.free(unit):
            return
        self.reserved[name] = memory(size, unit)
        self.uses[name] = use(next(self.pids), 0, unit)
        assert self.free(unit) >= 0, "memory was given out twice"

    def start_again(self, unit: str) -> None:
        """Start a guest on a unit of which its process has memory already."""
        pid = self.random.choice(list(self.strangers[unit]))
        size, name = self.random.randrange(1, 40), f"job {next(self.pids)}"
        if size * WHOLE > self.free(unit) + self.kept(pid, unit):
            return
        has = self.strangers[unit].pop(pid)
        self.reserved[name], self.uses[name] = memory(size, unit), use(pid, has, unit)
        held = sum(self.own(one, unit) for one in self.reserved)
        others = sum(self.strangers[unit].values())
        assert held + others <= MEMORY, "memory was given out twice"

    def kept(self, pid: int, unit: str) -> int:
        assert self.admission.told is not None
        return self.admission.told.processes.get(pid, {}).get(unit, 0)

    def step(self) -> None:
        choice = self.random.random()
        unit = self.random.choice("01")
        if choice < 0.3:
            self.start()
        elif choice < 0.45 and self.reserved:
            name = self.random.choice(list(self.reserved))
            (where,) = self.reserved.pop(name)["vram"]
            use_of = self.uses.pop(name)
            if self.random.random() < 0.5 and len(self.strangers[where]) < 5:
                # It was a guest, whose process goes on with what it has.
                (pid,), has = use_of.pids, use_of.gpu_memory[where]
                self.strangers[where][pid] = has
        elif choice < 0.55 and self.strangers[unit] and not self.hidden:
            self.start_again(unit)
        elif choice < 0.7 and self.reserved:
            name = self.random.choice(list(self.reserved))
            (where,) = self.reserved[name]["vram"]
            (pid,) = self.uses[name].pids
            self.uses[name] = use(pid, self.random.randrange(45) * GIB, where)
        elif choice < 0.85 and len(self.strangers[unit]) < 5:
            self.strangers[unit][next(self.pids)] = self.random.randrange(30) * GIB
        elif self.strangers[unit]:
            self.strangers[unit].pop(self.random.choice(list(self.strangers[unit])))

    def check(self) -> None:
        """Compare what is told with what is there, counted by itself."""
        told = self.admission.told
        assert told is not None
        for unit in self.strangers:
            amount = withheld(told, unit)
            assert 0 <= amount <= MEMORY // GIB * WHOLE
            held = sum(one["vram"].get(unit, 0) for one in self.reserved.values())
            # Nothing that is used or reserved is on offer.
            offered = MEMORY // GIB * WHOLE - held - amount
            for pid, has in self.strangers[unit].items():
                left = max(0, MEMORY - self.taken(unit) + has) * WHOLE // GIB
                assert offered + self.kept(pid, unit) <= left
            assert offered <= max(0, MEMORY - self.taken(unit)) * WHOLE // GIB

    def taken(self, unit: str) -> int:
        """Return what is used or reserved; where pids are hidden, what is used."""
        others = sum(self.strangers[unit].values())
        uses = {name: one.gpu_memory.get(unit, 0) for name, one in self.uses.items()}
        if self.hidden:
            return others + sum(uses.values())
        return others + sum(max(self.own(name, unit), uses[name]) for name in uses)

    def own(self, name: str, unit: str) -> int:
        return self.reserved[name]["vram"].get(unit, 0) * GIB // WHOLE

    def check_unchanged(self) -> None:
        """Look when nothing has changed for a while: each byte counts once."""
        self.now_s += 2 * LASTED_S
        self.look()
        told = self.admission.told
        assert told is not None
        for unit in () if self.hidden else self.strangers:
            held = sum(self.own(name, unit) for name in self.reserved)
            due = min(MEMORY, self.taken(unit) - held)
            assert withheld(told, unit) == due * WHOLE // GIB
            if self.taken(unit) - held <= MEMORY:
                for pid, has in self.strangers[unit].items():
                    assert self.kept(pid, unit) == has * WHOLE // GIB


def test_nothing_is_counted_twice_or_negative_whatever_happens() -> None:
    for seed in range(20):
        machine = Machine(seed)
        for number in range(500):
            machine.step()
            machine.now_s += machine.random.choice((0.1, 1.0, 10.0))
            machine.look()
            machine.check()
            if number % 5 == 0:
                machine.check_unchanged()
