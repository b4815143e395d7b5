"""Which output the auditor expects to be removed, where calls share a batch."""

import pytest

from grass.model.worker import Worker
from grass.store.changes import Changes, Event
from tests.simulation.memory_store import MemoryDisk, new_disk
from tests.simulation.pruned_output import PrunedOutput
from tests.support.building import an_attempt

ID, OUTPUT = "w1", "/out/1.log"
CONNECTED = ("worker-connected", '{"worker":"w1"}')
FORGOTTEN = ("worker-forgotten", '{"worker":"w1"}')
PRUNED = ("pruned", '{"jobs":1,"ids":[[1,1]]}')


@pytest.fixture
def disk() -> MemoryDisk:
    disk = new_disk("0" * 16)
    disk.attempts[1] = {1: an_attempt(1, worker=ID, output=OUTPUT)}
    return disk


@pytest.mark.parametrize(
    ("known", "lines", "removed"),
    [
        (True, (PRUNED,), True),
        (False, (PRUNED,), False),
        (False, (CONNECTED, PRUNED), True),
        (True, (FORGOTTEN, PRUNED, CONNECTED), False),
        (True, (PRUNED, FORGOTTEN, CONNECTED), False),
        (True, (FORGOTTEN, CONNECTED, PRUNED), True),
    ],
)
def test_output_goes_where_its_machine_was_known_when_the_job_was_pruned(
    disk: MemoryDisk, known: bool, lines: tuple[tuple[str, str], ...], removed: bool
) -> None:
    if known:
        disk.workers[ID] = Worker(ID, "desk")
    expected = PrunedOutput(disk)
    events = [Event(0, "uid:1", kind, data=data) for kind, data in lines]
    expected.written(Changes(events=events))
    assert expected.of(ID) == ({OUTPUT} if removed else set())
