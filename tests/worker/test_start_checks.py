"""A start on a GPU is checked by a fresh look, and returned without its memory."""

from typing import Any

from grass.link.messages import (
    RECALLED,
    KnownUnits,
    Recall,
    Returned,
    Shrink,
    Signal,
    Stop,
    Suspend,
    Welcome,
    Withheld,
)
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.worker.core.admission import Admission
from grass.worker.core.usage.samples import AttemptUse, Sample
from grass.worker.core.worker_core import WorkerCore
from tests.worker.gpu_values import listed_reading as reading
from tests.worker.gpu_values import memory
from tests.worker.lab import AROUND, FIRST, SECOND, THIRD, Lab, verbs_of

CLUSTER = "a" * 16
GPU = {"gpu": {"0": 2 * WHOLE}, "vram": {"0": 80 * WHOLE}}
STRANGER = {7: "python (pid 7, alice)"}


class GpuLab(Lab):
    """A worker with one GPU, whose keeper and broker have answered."""

    def __init__(self, *, heeds: bool = True) -> None:
        super().__init__()
        who = self.core._hello._identity
        self.core = WorkerCore(who, AROUND, admission=Admission())
        self.core.from_broker(KnownUnits({**GPU, "cpu": {"0": WHOLE}}))
        self.keeper("hello", attempts=[])
        welcome = Welcome(CLUSTER, heeds_readiness=True, heeds_withheld=heeds)
        self.broker(welcome)

    def look(self, strangers: int = 0, at_s: float = 0.0, **facts: Any) -> Any:
        listed = {7: strangers * GIB} if strangers else {}
        uses: dict[str, AttemptUse] = {}
        self.core.now_s = at_s
        self.core.sampled(Sample(at_s, (reading(listed, **facts),), uses, STRANGER))
        return self.core.take()


def test_a_start_waits_for_a_look_and_then_begins() -> None:
    lab = GpuLab()
    effects = lab.start(FIRST, memory(40))
    assert effects.look
    assert not effects.to_keeper
    looked = lab.look()
    assert verbs_of(looked.to_keeper) == ["start"]
    assert looked.to_broker == [Withheld({"vram": {"0": 0}})]


def test_a_look_from_before_an_attempt_gave_memory_back_is_not_used() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(80))
    lab.look()
    lab.broker(Shrink(FIRST, memory(3)))
    # What is withheld was counted beside what it had reserved then.
    assert lab.start(SECOND, memory(40)).look


def test_after_a_fresh_look_it_begins_at_once() -> None:
    lab = GpuLab()
    lab.look(at_s=5.0)
    lab.core.now_s = 6.0
    effects = lab.start(FIRST, memory(40))
    assert not effects.look
    assert verbs_of(effects.to_keeper) == ["start"]
    lab.core.now_s = 6.1
    assert lab.start(SECOND, memory(20)).look


def test_a_start_without_memory_of_a_gpu_does_not_wait() -> None:
    lab = GpuLab()
    assert verbs_of(lab.start().to_keeper) == ["start"]


def test_it_is_returned_after_the_broker_is_told_why() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(72), placed_at=3)
    looked = lab.look(strangers=12)
    assert not looked.to_keeper
    told, returned = looked.to_broker
    assert isinstance(told, Withheld)
    assert told.units == {"vram": {"0": 12 * WHOLE}}
    why = "gpu 0 has 4G less than it needs; python (pid 7, alice): 12G"
    assert returned == Returned(FIRST, why, 3)
    assert not lab.reported().running


def test_memory_that_its_own_process_has_keeps_no_guest_from_starting() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(72), guest=(7, 9))
    assert verbs_of(lab.look(strangers=70).to_keeper) == ["start"]
    # To any other job it is not there.
    (returned,) = lab.start(SECOND, memory(8), guest=(8, 9)).to_broker
    assert returned.attempt == SECOND


def test_of_two_starts_the_second_has_what_the_first_gave_back() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(40))
    lab.start(SECOND, memory(40))
    looked = lab.look(strangers=12)
    assert [one.attempt for one in looked.to_broker if isinstance(one, Returned)] == [
        FIRST
    ]
    assert [verb.id for verb in looked.to_keeper] == [SECOND]


def test_a_start_on_a_faulty_gpu_is_returned_with_the_fault() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(4))
    (_, returned) = lab.look(fault="lost from the bus").to_broker
    assert returned == Returned(FIRST, "gpu 0: lost from the bus")


def test_a_running_job_is_left_alone_by_a_stranger_that_comes() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(72))
    lab.look()
    lab.keeper("started", id=FIRST, pid=5, ticks=1, at=1)
    looked = lab.look(strangers=60, at_s=2.0)
    assert not looked.to_keeper
    assert [type(one) for one in looked.to_broker] == [Withheld]
    assert len(lab.reported().running) == 1


def test_what_is_asked_of_it_while_it_waits_is_not_lost() -> None:
    lab = GpuLab()
    for name in (FIRST, SECOND, THIRD):
        lab.start(name, memory(10))
    stopped = lab.broker(Stop(FIRST, 5.0))
    recalled = lab.broker(Recall([SECOND]))
    assert stopped.to_broker == [Returned(FIRST, RECALLED)]
    assert recalled.to_broker == [Returned(SECOND, RECALLED)]
    assert not lab.broker(Suspend(THIRD)).to_keeper
    assert not lab.broker(Signal(THIRD, 10)).to_keeper
    looked = lab.look()
    assert verbs_of(looked.to_keeper) == ["start", "suspend"]


def test_a_keeper_that_comes_meanwhile_does_not_start_it_unchecked() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(72))
    lab.core.keeper_lost()
    assert "start" not in verbs_of(lab.keeper("hello", attempts=[]).to_keeper)
    lab.core.keeper_lost()
    assert not lab.look().to_keeper
    assert verbs_of(lab.keeper("hello", attempts=[]).to_keeper) == ["start"]


def test_a_follower_is_sent_after_the_one_it_waits_for() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(40))
    assert not lab.start(SECOND, memory(40), after=FIRST).to_keeper
    starts = lab.look().to_keeper
    assert [(verb.id, verb.after) for verb in starts] == [
        (FIRST, None),
        (SECOND, FIRST),
    ]


def test_a_follower_is_checked_itself_when_the_first_is_returned() -> None:
    lab = GpuLab()
    lab.start(FIRST, memory(72))
    lab.start(SECOND, memory(72), after=FIRST)
    looked = lab.look(strangers=12)
    returned = [one.attempt for one in looked.to_broker if isinstance(one, Returned)]
    assert returned == [FIRST, SECOND]
    assert not lab.reported().running


def test_a_broker_that_ignores_it_gets_no_start_back_and_is_not_told() -> None:
    lab = GpuLab(heeds=False)
    assert not lab.look(strangers=60).to_broker
    assert verbs_of(lab.start(FIRST, memory(40)).to_keeper) == ["start"]


def test_a_hello_tells_it_and_a_welcome_repeats_only_what_is_new() -> None:
    lab = GpuLab()
    lab.look(strangers=12)
    told = lab.reported().withheld
    assert told is not None
    assert told.units == {"vram": {"0": 12 * WHOLE}}
    welcome = Welcome(CLUSTER, heeds_withheld=True)
    assert not lab.broker(welcome).to_broker
    lab.core.sampled(Sample(9.0, (reading({}, fault="slow"),), {}))
    lab.core.take()
    assert lab.reported().withheld == lab.core._checks._told


def test_a_worker_that_does_not_look_checks_nothing() -> None:
    lab = Lab()
    lab.core.from_broker(KnownUnits(GPU))
    lab.keeper("hello", attempts=[])
    lab.broker(Welcome(CLUSTER, heeds_withheld=True))
    assert verbs_of(lab.start(FIRST, memory(40)).to_keeper) == ["start"]
    assert lab.reported().withheld is None
