"""What the auditor counts as the end of a job that another one waits for."""

import pytest

from grass.model.jobs.dependencies import After
from grass.model.jobs.lifecycle import JobState
from grass.store.changes import Changes, Event
from tests.simulation.auditor import Auditor
from tests.simulation.memory_store import new_disk
from tests.simulation.witness import Witness
from tests.simulation.world import TAIL, Violation, World
from tests.support.building import a_job, a_spec, an_attempt

UNSTARTED, RUNNING = None, 1
CANCELLED = ("cancelled", UNSTARTED, "{}")
REQUESTED = ("cancelled", RUNNING, "{}")
FAILED = ("finished", RUNNING, '{"state":"failed"}')
LOST = ("finished", RUNNING, '{"state":"lost"}')
RETRIED = ("retried", UNSTARTED, "{}")
REQUEUED = ("requeued", UNSTARTED, "{}")
RERUN = ("rerun", UNSTARTED, "{}")

Line = tuple[str, int | None, str]


def start_after(*lines: Line) -> None:
    """Write lines about job 1, and in that batch the start of one that waited."""
    world = World(0, TAIL)
    auditor = Auditor(world, new_disk("0" * 16), Witness(world))
    events = [Event(0, "uid:1", kind, 1, number, data) for kind, number, data in lines]
    leader, waited = a_job(1), a_job(2, spec=2, state=JobState.RUNNING)
    changes = Changes(
        specs={1: a_spec(), 2: a_spec(after=(After("any", 1, 1),))},
        jobs={1: leader, 2: waited},
        attempts={(2, 1): an_attempt(2)},
        events=events,
    )
    auditor.written(changes)


@pytest.mark.parametrize("lines", [(CANCELLED, RERUN), (FAILED, RERUN)])
def test_a_job_run_again_in_the_batch_of_its_end_has_ended(
    lines: tuple[Line, ...],
) -> None:
    start_after(*lines)


@pytest.mark.parametrize(
    "lines", [(), (REQUESTED,), (FAILED, RETRIED), (LOST, REQUEUED)]
)
def test_a_requested_cancel_and_an_attempt_that_is_retried_are_no_end(
    lines: tuple[Line, ...],
) -> None:
    with pytest.raises(Violation, match="job 2 starts before 1:any"):
        start_after(*lines)
