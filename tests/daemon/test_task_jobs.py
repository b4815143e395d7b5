"""Functions as jobs on another machine: fetched over TLS, run there, and read back."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import grass
from grass.errors import Forbidden
from grass.verbs import task_jobs
from grass.verbs.packing import PYTHON
from tests.support.homes import GrassHome
from tests.support.machines import Machine, await_worker, join
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

MEBIBYTE = 2**20
PIECES = 2 * MEBIBYTE
"""By so much large arguments may raise a broker's resident size."""


@contextmanager
def at(home: GrassHome) -> Iterator[None]:
    """Be a program of this home's user."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GRASS_HOME", "PATH"):
            patch.setenv(name, home.environment[name])
        patch.chdir(home.desk)
        patch.setattr(task_jobs, "_uploaded", {})
        yield


def resident(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def blobs(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_function_runs_on_another_machine_with_large_arguments(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    data = os.urandom(3 * MEBIBYTE)

    def reverse(data: bytes) -> tuple[int, str, bytes]:
        return os.getpid(), sys.executable, data[::-1]

    with at(hub):
        job = grass.enqueue(reverse, data, worker="rack")
        pid, interpreter, back = job.result(PATIENCE_S)
        assert (interpreter, back) == (sys.executable, data[::-1])
        assert job.refresh().worker == "rack"
        fetched = blobs(rack.folder / "fetched-blobs")
        assert len(fetched) == 2
        # The next one finds all of it there.
        assert grass.enqueue(reverse, data, worker="rack").result(PATIENCE_S)[2] == back
        assert blobs(rack.folder / "fetched-blobs") == fetched
        rack.restart()
        await_worker(hub, "rack", connected=True)
        assert job.result(PATIENCE_S)[0] == pid
        hub.ok("remove", str(job.id))
    left = list((rack.folder / "output").rglob(f"{job.id}/*.result"))
    assert not left


def test_results_of_others_are_not_unpickled(hub: GrassHome, machine: Machine) -> None:
    rack = join(hub, machine("rack"), "rack")

    def answer() -> int:
        return 42

    with at(rack):
        job = grass.enqueue(answer)
        assert job.result(PATIENCE_S) == 42
    with at(hub), pytest.raises(Forbidden, match="enqueued by token:rack"):
        grass.jobs(job.id).result()


def grown(hub: GrassHome, run: Callable[[bytes], None]) -> int:
    """Return by how many bytes the daemon grows while large arguments go through."""
    pid = hub.daemon_pid()
    assert pid is not None
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = resident(pid, "VmRSS")
    run(os.urandom(100 * MEBIBYTE))
    return resident(pid, "VmHWM") - before


def test_large_arguments_do_not_make_the_broker_larger(
    hub: GrassHome, machine: Machine
) -> None:
    join(hub, machine("rack"), "rack")

    def size(data: bytes) -> int:
        return len(data)

    def run(data: bytes) -> None:
        job = grass.enqueue(size, data, worker="rack", request={"cpu": 1})
        assert job.result(PATIENCE_S) == len(data)

    with at(hub):
        run(os.urandom(8 * MEBIBYTE))
        # Other things may grow meanwhile, but not each time.
        assert any(grown(hub, run) <= PIECES for _ in range(3))


def test_a_missing_module_is_named_with_its_machine(
    hub: GrassHome, machine: Machine
) -> None:
    join(hub, machine("rack"), "rack")

    def needs() -> Any:
        import no_such_module_here  # type: ignore[import-not-found]

        return no_such_module_here

    with at(hub):
        job = grass.enqueue(needs, worker="rack")
        with pytest.raises(ModuleNotFoundError) as raised:
            job.result(PATIENCE_S)
        said = (
            f"`needs` needs the module `no_such_module_here`, which Python {PYTHON} on"
            f" {os.uname().nodename} does not have; it was sent by Python {PYTHON}"
        )
        assert str(raised.value) == said
        assert job.refresh().reason == said
