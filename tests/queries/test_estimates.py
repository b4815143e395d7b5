"""When a job may start that wants one model of GPU, on a worker with several."""

from pathlib import Path

import pytest

from grass.link.messages import Hello, Withheld
from grass.model.worker import FoundUnits, Unit
from grass.queries.constraints import queued_constraints
from grass.queries.estimates import QueueSnapshot, simulate, snapshot_for
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT, WORKER, units

HISTORY = {"long": [1000.0], "short": [10.0]}
LARGE, SMALL = "A100", "T4"
SECOND = 1_000_000


def machine() -> FoundUnits:
    found = units("{cpu:16, gpu:2, vram:{'0':80,'1':16}}")
    for unit, model in (("0", LARGE), ("1", SMALL)):
        found["gpu"][unit] = Unit(found["gpu"][unit].amount, {"name": model})
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Brokerage:
    """A worker whose two GPUs are busy: the large one soon not any more."""
    made = Brokerage(tmp_path / "grass.db", "{cpu:16}")
    made.hear(Hello(WORKER, "desk", BOOT, machine(), [], []))
    made.enqueue(require="{gpu:1}", gpu_model=SMALL, name="long")
    made.enqueue(require="{gpu:1}", gpu_model=LARGE, name="short")
    assert len(made.running()) == 2
    return made


def snapshot(broker: Brokerage, job: int) -> QueueSnapshot:
    state = broker.state
    reason = state.scheduler.explain(job, 0.0)
    found = snapshot_for(state, state.jobs[job], reason, state.scheduler.position(job))
    assert found is not None
    return found


def starts_in_s(broker: Brokerage, job: int) -> int:
    began = broker.state.attempts[1].started_at
    found = simulate(snapshot(broker, job), HISTORY, began)
    assert found is not None
    return (found.at - began) // SECOND


def test_a_job_does_not_wait_for_those_ahead_that_want_another_model(
    broker: Brokerage,
) -> None:
    for _ in range(3):
        broker.enqueue(require="{gpu:1}", gpu_model=SMALL, name="long")
    job = broker.enqueue(require="{gpu:1}", gpu_model=LARGE, name="short")
    assert starts_in_s(broker, job) <= 12


def test_it_waits_for_those_ahead_that_want_the_same(broker: Brokerage) -> None:
    broker.enqueue(require="{gpu:1}", gpu_model=LARGE, name="long")
    job = broker.enqueue(require="{gpu:1}", gpu_model=f"({LARGE})", name="short")
    assert starts_in_s(broker, job) >= 1000


def test_gpus_that_are_named_are_a_model_of_their_own(broker: Brokerage) -> None:
    broker.enqueue(require="{gpu:1}", gpu_model="gpu:1", name="long")
    job = broker.enqueue(require="{gpu:1}", gpu_model="gpu:0", name="short")
    assert starts_in_s(broker, job) <= 12


def test_cores_are_taken_by_a_job_of_any_model(broker: Brokerage) -> None:
    broker.enqueue(require="{gpu:1, cpu:16}", gpu_model=SMALL, name="long")
    job = broker.enqueue(require="{cpu:16, gpu:1}", gpu_model=LARGE, name="short")
    *ahead, own = snapshot(broker, job).waiting
    assert [one.needs.keys() for one in ahead] == [{"cpu"}]
    assert own.needs.keys() == {"cpu", "gpu"}


def test_a_share_is_short_of_what_it_would_bring_and_the_stranger_is_named(
    tmp_path: Path,
) -> None:
    broker = Brokerage(tmp_path / "grass.db", "{cpu:2, gpu:1, vram:[48]}")
    user = "python (pid 4711, alice): 9.6G"
    broker.hear(Withheld({"vram": {"0": 96_000}}, {"0": [user]}))
    job = broker.enqueue(require="{gpu:0.5}")
    spec = broker.state.specs[broker.state.jobs[job].spec]
    reason = broker.state.scheduler.explain(job, 0.0)
    rows = list(queued_constraints(broker.state, spec, reason, {}))
    [memory] = [one for one in rows if not one.ok]
    assert (memory.what, memory.need, memory.have) == ("vram", "21.6G", "19.2G")
    assert memory.of == "48G"
    assert memory.note == (
        "what its share of a GPU brings now;"
        " python (pid 4711, alice) uses 9.6G of gpu 0"
    )
