"""What a worker withholds of its GPUs is not given out, and comes back by itself."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.attempts.tracking import MOST_RETURNS
from grass.broker.core.calls import Enqueue, FromWorker, NewJob
from grass.errors import ProtocolError
from grass.link.messages import Hello, Resync, Returned, Start, Welcome, Withheld
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.model.resources import request_from
from grass.queries.job_documents import why_waiting

GPUS = "{cpu:2, gpu:2, vram:{'0':80,'1':80}}"
ALICE = "python (pid 4711, alice): 12G"


@pytest.fixture
def broker(broker_of: Callable[[str], Brokerage]) -> Brokerage:
    return broker_of(GPUS)


def withheld(**units: float) -> Withheld:
    amounts = {name[1:]: int(gib * WHOLE) for name, gib in units.items()}
    return Withheld({"vram": amounts})


def memory_of(broker: Brokerage, job: int) -> dict[str, int]:
    return broker.state.attempts[job].allocation["vram"]


def test_a_welcome_says_that_it_is_heeded(broker: Brokerage) -> None:
    broker.hello()
    (welcome,) = broker.said(Welcome)
    assert welcome.heeds_withheld


def test_jobs_get_what_is_left(broker: Brokerage) -> None:
    broker.hear(withheld(_0=4, _1=50))
    whole = broker.enqueue(require="{gpu:1}")
    assert memory_of(broker, whole) == {"0": 76 * WHOLE}
    large = broker.enqueue(require="{vram:40}")
    assert broker.job_state(large) is JobState.QUEUED
    broker.hear(withheld(_0=4, _1=40))
    assert memory_of(broker, large) == {"1": 40 * WHOLE}


def test_a_stranger_that_comes_delays_what_waits_and_touches_nothing_that_runs(
    broker: Brokerage,
) -> None:
    first = broker.enqueue(require="{gpu:1}")
    second = broker.enqueue(require="{gpu:1}")
    waiting = broker.enqueue(require="{gpu:1}")
    broker.hear(withheld(_0=60, _1=60))
    assert broker.running() == [first, second]
    broker.exit(first)
    assert broker.job_state(waiting) is JobState.QUEUED
    broker.hear(withheld(_0=7, _1=60))
    assert broker.running() == [second, waiting]


def test_a_start_that_is_returned_for_it_is_placed_where_there_is_memory(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(require="{gpu:1}")
    (unit,) = memory_of(broker, job)
    attempt = broker.state.attempts[job]
    broker.hear(withheld(**{f"_{unit}": 20}))
    broker.hear(Returned(broker.name(job), "gpu 0 has less", attempt.started_at))
    assert not broker.said(Resync)
    (other,) = memory_of(broker, job)
    assert other != unit


def test_it_is_not_placed_again_and_again_and_the_worker_is_not_drained(
    broker: Brokerage,
) -> None:
    jobs = [broker.enqueue(require="{gpu:1}") for _ in range(MOST_RETURNS + 5)]
    for _ in range(MOST_RETURNS + 5):
        job = broker.running()[0]
        attempt = broker.state.attempts[job]
        broker.hear(withheld(_0=80, _1=80))
        broker.hear(Returned(broker.name(job), "no", attempt.started_at))
        broker.pass_time(100)
        assert broker.job_state(job) is JobState.QUEUED
        assert not broker.said(Start)
        broker.hear(withheld())
    assert not broker.state.workers[WORKER].draining
    assert broker.running() == jobs[:2]


def test_a_return_without_a_word_counts_as_before(broker: Brokerage) -> None:
    job = broker.enqueue(require="{gpu:1}")
    attempt = broker.state.attempts[job]
    broker.hear(Returned(broker.name(job), "no", attempt.started_at))
    assert broker.said(Resync)


def test_a_hello_replaces_what_was_withheld(broker: Brokerage) -> None:
    broker.hear(withheld(_0=60, _1=60))
    job = broker.enqueue(require="{gpu:1}")
    told = withheld(_0=60, _1=50)
    found = units(GPUS)
    broker.hear(Hello(WORKER, "desk", BOOT, found, [], [], withheld=told))
    assert broker.job_state(job) is JobState.QUEUED
    broker.hear(Hello(WORKER, "desk", BOOT, found, [], []))
    assert broker.running() == [job]


def test_it_holds_when_units_are_published_again(broker: Brokerage) -> None:
    broker.hear(withheld(_0=60, _1=60))
    broker.add_units("{printer:1}")
    job = broker.enqueue(require="{gpu:1}")
    assert broker.job_state(job) is JobState.QUEUED


def test_what_waits_names_the_stranger_and_the_fault(broker: Brokerage) -> None:
    amounts = {"0": 12 * WHOLE, "1": 0}
    broker.hear(Withheld({"vram": amounts}, {"0": [ALICE]}, {"1": "lost"}))
    job = broker.enqueue(require="{gpu:1}")
    why = why_waiting(broker.state.jobs[job], broker.state, 0.0, {})
    assert why == (
        "needs gpu 1 whole with its memory; gpu 1: lost, since 1970-01-01T00:16:42Z;"
        " python (pid 4711, alice) uses 12G of gpu 0"
    )


def test_a_busy_unit_takes_no_job_whose_memory_is_learned(broker: Brokerage) -> None:
    broker.hear(Withheld(busy=frozenset("01")))
    auto = broker.enqueue(require="{cpu:1}", auto_vram=True)
    assert broker.job_state(auto) is JobState.QUEUED
    why = why_waiting(broker.state.jobs[auto], broker.state, 0.0, {})
    busy = "waits for a GPU that is not busy; gpu 0, 1: too busy (`gpu.busy`)"
    assert why == busy
    other = broker.enqueue(require="{vram:1}")
    broker.hear(Withheld(busy=frozenset("0")))
    assert broker.running() == [auto, other]
    assert memory_of(broker, auto).keys() == {"1"}


def test_a_worker_that_left_has_no_busy_units(broker: Brokerage) -> None:
    broker.hear(Withheld(busy=frozenset("01")))
    broker.leave()
    broker.hello()
    job = broker.enqueue(require="{cpu:1}", auto_vram=True)
    assert broker.running() == [job]


def test_it_is_forgotten_with_the_connection(broker: Brokerage) -> None:
    broker.hear(Withheld({"vram": {"0": WHOLE}}, {"0": [ALICE]}))
    broker.leave()
    notes = broker.state.unit_notes[WORKER]
    assert (notes.withheld, notes.strangers) == ({}, {})
    broker.hello()
    jobs = [broker.enqueue(require="{gpu:1}") for _ in range(2)]
    assert broker.running() == jobs


@pytest.mark.parametrize(
    "message",
    [
        Withheld({"cpu": {"0": WHOLE}}),
        Withheld({"vram": {"0": -1}}),
        Withheld({"vram": {"0": 10**30}}),
        Withheld({"vram": {str(unit): 1 for unit in range(5000)}}),
        Withheld(strangers={"0": ["x"] * 1000}),
        Withheld(strangers={"0": ["x" * 5000]}),
        Withheld(strangers={"0": ["\ud800"]}),
        Withheld(faults={"0": "x" * 5000}),
        Withheld(processes={7: {"0": -1}}),
        Withheld(processes={7: {"x" * 100_000: 1}}),
        Withheld(processes={7: {str(unit): 1 for unit in range(5000)}}),
        Withheld(processes={pid: {"0": 1} for pid in range(100_000)}),
        Withheld(faults={"x" * 100_000: "lost"}),
        Withheld(busy=frozenset(map(str, range(5000)))),
        Withheld(busy=frozenset(["\ud800"])),
        Withheld(passing=frozenset(map(str, range(5000)))),
    ],
)
def test_what_cannot_be_is_refused(broker: Brokerage, message: Withheld) -> None:
    hello = Hello(WORKER, "desk", BOOT, units(GPUS), [], [], withheld=message)
    with pytest.raises(ProtocolError):
        broker.step(FromWorker(WORKER, message))
    with pytest.raises(ProtocolError):
        broker.step(FromWorker(WORKER, hello))


def test_a_unit_that_is_not_known_does_no_harm(broker: Brokerage) -> None:
    broker.hear(Withheld({"vram": {"9": WHOLE}}, {"9": [ALICE]}, {"9": "lost"}))
    job = broker.enqueue(require="{gpu:1}")
    assert broker.running() == [job]


def ask_again(broker: Brokerage, require: str, pid: int = 4711) -> int:
    """Have a guest ask that had GPU 0 before."""
    patch = broker.patch(
        guest=(pid, 99),
        request=request_from(require),
        worker=WORKER,
        gpu_model="gpu:0",
    )
    return int(broker.call(Enqueue(ME, [NewJob((), patch, name="fit")])).first)


def kept(own: float, others: float = 0) -> Withheld:
    """Say that process 4711 has memory of GPU 0, and a stranger, too."""
    amounts = {"0": int((own + others) * WHOLE), "1": 0}
    named = [f"python (pid 4711, alice): {own}G", f"Xorg (pid 5, root): {others}G"]
    processes = {4711: {"0": int(own * WHOLE)}, 5: {"0": int(others * WHOLE)}}
    return Withheld({"vram": amounts}, {"0": named}, processes=processes)


def test_a_guest_does_not_wait_for_what_its_own_process_has(broker: Brokerage) -> None:
    broker.hear(kept(60))
    other = ask_again(broker, "{gpu:1}", pid=4712)
    again = ask_again(broker, "{gpu:1}")
    assert broker.running() == [again]
    assert memory_of(broker, again) == {"0": 80 * WHOLE}
    assert broker.job_state(other) is JobState.QUEUED


def test_it_waits_for_what_others_have_and_is_told_so(broker: Brokerage) -> None:
    broker.hear(kept(60, others=12))
    job = ask_again(broker, "{vram:70}")
    why = why_waiting(broker.state.jobs[job], broker.state, 0.0, {})
    assert why is not None
    assert why.startswith("needs vram 70G of gpu 0, free 68G of 80G; Xorg")
    assert "4711" not in why
    broker.hear(kept(60, others=9))
    assert broker.running() == [job]


def test_it_starts_when_a_job_beside_it_ends(broker: Brokerage) -> None:
    broker.hear(kept(30))
    beside = broker.enqueue(require="{vram:40}", gpu_model="gpu:0")
    again = ask_again(broker, "{gpu:0.5, vram:60}")
    assert broker.running() == [beside]
    broker.exit(beside)
    assert broker.running() == [again]


def test_a_guest_that_waits_starts_when_memory_turns_out_to_be_its_own(
    broker: Brokerage,
) -> None:
    broker.hear(kept(0, others=60))
    job = ask_again(broker, "{vram:70}")
    assert broker.job_state(job) is JobState.QUEUED
    broker.hear(kept(60))
    assert broker.running() == [job]
