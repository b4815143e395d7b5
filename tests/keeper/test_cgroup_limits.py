"""Limits by cgroup: on a folder that looks like one, as controllers are rare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.exit_reasons import MEMORY_LIMIT
from grass.keeper.process_table import cgroup_of
from grass.keeper.protocol import StartVerb
from grass.keeper.system.cgroups import Cgroups, oom_killed
from tests.keeper.cores import of

GIB = 2**30


class FakeMount:
    """A folder in place of cgroup v2, with the files that the kernel would make."""

    def __init__(self, path: Path, *, processes: str, controllers: str) -> None:
        self.mountinfo = f"30 24 0:26 / {path} rw - cgroup2 cgroup2 rw"
        own = cgroup_of(os.getpid()) or "/"
        self.beside = path / own.lstrip("/")
        self.beside.mkdir(parents=True, exist_ok=True)
        self.write("cgroup.type", "domain")
        self.write("cgroup.procs", processes)
        self.write("cgroup.controllers", controllers)
        self.write("cgroup.subtree_control", "")

    def write(self, name: str, text: str) -> None:
        path = self.beside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("others", "controllers", "found"),
    [
        ([], "cpuset cpu io memory", ["memory", "cpu"]),
        ([], "cpu", ["cpu"]),
        ([1], "cpu memory", []),
        ([], "pids", []),
    ],
)
def test_controllers_can_be_had_where_nothing_else_is_in_the_cgroup(
    tmp_path: Path, others: list[int], controllers: str, found: list[str]
) -> None:
    processes = "".join(f"{pid}\n" for pid in (os.getpid(), *others))
    mount = FakeMount(tmp_path, processes=processes, controllers=controllers)
    assert Cgroups(mount.mountinfo, os.getpid()).controllers() == found


def test_without_cgroups_nothing_can_be_limited() -> None:
    assert Cgroups("", os.getpid()).controllers() == []


def test_limits_are_written_for_a_job_that_has_them(tmp_path: Path) -> None:
    mount = FakeMount(tmp_path, processes="", controllers="cpu memory")
    own = Cgroups(mount.mountinfo, os.getpid())
    path = own.make()
    assert path is not None
    for name in ("memory.max", "memory.swap.max", "cpu.max"):
        Path(path, name).write_text("max")
    Path(path, "cgroup.controllers").write_text("cpu memory")
    own.limit(path, 8 * GIB, 2.5)
    assert Path(path, "memory.max").read_text() == str(8 * GIB)
    assert Path(path, "memory.swap.max").read_text().startswith("0")
    assert Path(path, "cpu.max").read_text() == "250000 100000"


def test_a_kill_at_the_limit_is_seen(tmp_path: Path) -> None:
    assert not oom_killed(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")
    assert not oom_killed(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert oom_killed(str(tmp_path))


def test_an_attempt_with_limits_has_its_cgroup_at_once_and_dies_of_them() -> None:
    core = KeeperCore(1, "boot")
    start = StartVerb("a", ["x"], {}, "/", 0, "/o", memory_max=GIB, cpu_max=2.0)
    core.step(events.Restored([]), 0.0)
    core.step(events.VerbReceived(1, start), 0.0)
    wanted = core.step(events.Spawned("a", 7, 9, 5, 0, 0), 0.0)
    assert of(wanted, effects.Enclose) == [effects.Enclose("a", GIB, 2.0)]
    core.step(events.Enclosed("a", "/c/1"), 0.0)
    core.step(events.ChildEnded(7, 9, None, 6), 1.0)
    survey = events.Surveyed("a", True, 0, oom_killed=True)
    (published,) = of(core.step(survey, 1.0), effects.Publish)
    assert published.entry.reason == MEMORY_LIMIT
