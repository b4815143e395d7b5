"""Finding a process of which only the start was recorded, in the keeper's own hands."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from grass.keeper import pidfd
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.mounts import Mounts
from grass.keeper.process_table import ProcessTable, start_ticks
from grass.keeper.system.cgroups import Cgroups
from grass.keeper.system.poller import Poller
from grass.keeper.system.processes import JobProcesses
from grass.keeper.system.rlimits import OpenFiles

ID = "5ea2c4000000aaaa.1.1"


@pytest.fixture
def carrier() -> Iterator[int]:
    environment = {**os.environ, "GRASS_ATTEMPT_ID": ID}
    process = subprocess.Popen(
        ["sleep", "1000"], env=environment, start_new_session=True
    )
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def jobs() -> JobProcesses:
    jobs = JobProcesses(Mounts(), Cgroups("", os.getpid()), OpenFiles())
    jobs.connect(Poller(), lambda _: None)
    jobs.know(effects.Know(ID, 0, 0, None, []))
    return jobs


def test_a_process_that_cannot_be_opened_at_first_is_found_again(
    jobs: JobProcesses, carrier: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(_pid: int, _ticks: int) -> int:
        raise OSError("too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(pidfd, "open_checked", too_many)
        assert isinstance(
            jobs.adopted.search(effects.Search(ID)), events.AdoptedUnclear
        )
    adopted = jobs.adopted.inspect(effects.Inspect(ID))
    assert isinstance(adopted, events.Adopted)
    assert adopted.pid == carrier
    jobs.release(effects.ReleaseAttempt(ID))


def test_the_child_that_syncs_records_is_of_no_attempt(carrier: int) -> None:
    """A runner is older than most children: it would be taken for its leftover."""
    table = ProcessTable(os.getpid())
    main = table.add("a", carrier, start_ticks(carrier) or 0, adopted=False)
    child = os.posix_spawn("/bin/sleep", ["sleep", "100"], {})
    try:
        assert table.anything_left(main.id)
        table.apart.add(child)
        assert not table.anything_left(main.id)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
