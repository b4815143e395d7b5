"""Memory and cores held by the kernel, where controllers of cgroup v2 can be had."""

import os
import sys
from collections.abc import Iterator

import pytest

from grass.keeper.mounts import find_cgroup2, read_mountinfo
from grass.keeper.process_table import cgroup_of
from grass.keeper.system.cgroups import enter
from grass.model.jobs.endings import OUT_OF_HOST_MEMORY
from tests.support.homes import GrassHome

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("root_cgroup"),
]

CANNOT = 6
TAKE = "held = bytearray(400 << 20); print('took it', flush=True)"
SPIN = """
import os, time
began = time.monotonic()
while os.times().user < 1.0:
    pass
print(time.monotonic() - began)
"""


@pytest.fixture
def root_cgroup() -> Iterator[None]:
    """Run in the root of all cgroups, which may pass controllers on to jobs.

    Without systemd a keeper shares the cgroup of the shell that it comes from, and a
    cgroup with processes cannot.
    """
    mount, own = find_cgroup2(read_mountinfo()), cgroup_of(os.getpid())
    if mount is None or own is None:
        pytest.skip("the controller of cgroup v2 cannot be had")
    enter(mount, os.getpid())
    yield
    enter(os.path.join(mount, own.lstrip("/")), os.getpid())


def enqueue_enforced(home: GrassHome, *words: str) -> int:
    """Enqueue a program whose request is enforced, where it can be."""
    ran = home.run("enqueue", "--enforce", *words)
    if ran.returncode == CANNOT:
        assert "can enforce its" in ran.stderr
        pytest.skip("the controller of cgroup v2 cannot be had")
    return int(ran.stdout)


def test_a_job_above_its_memory_fails_alone_and_says_so(home: GrassHome) -> None:
    words = ("--", sys.executable, "-c", TAKE)
    above = enqueue_enforced(home, "-m", "200M", *words)
    below = enqueue_enforced(home, "-m", "800M", *words)
    job = home.wait(above)
    assert job["state"] == "failed"
    assert job["attempts"][0]["cause"] == OUT_OF_HOST_MEMORY
    assert job["reason"].startswith("out of memory (asked 200 MiB, peak ")
    assert home.wait(below)["state"] == "succeeded"
    assert home.logs(below) == "took it\n"


def test_a_job_gets_no_more_cores_than_it_asked_for(home: GrassHome) -> None:
    job = enqueue_enforced(home, "-c", "0.25", "--", sys.executable, "-c", SPIN)
    assert home.wait(job)["state"] == "succeeded"
    # A second of processor time takes four; the quota of its beginning is a period.
    assert float(home.logs(job)) > 3.0
