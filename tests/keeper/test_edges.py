"""The keeper's edges one by one: mounts, records, limits, timers, cgroups."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from grass.keeper.codec import encode
from grass.keeper.core.deadlines import Timers
from grass.keeper.mounts import find_cgroup2, network_mount, read_mountinfo
from grass.keeper.pidfd import open_checked
from grass.keeper.process_table import ProcessTable, start_ticks
from grass.keeper.protocol import AbleEntry, KeeperEntry, RecalledEntry, UnableEntry
from grass.keeper.system import records as records_module
from grass.keeper.system.records import Records
from grass.keeper.system.rlimits import parse_limits
from tests.support.building import typed

ROOT = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"


def mounted(point: str, kind: str) -> str:
    return ROOT + f"40 22 0:40 / {point} rw,relatime shared:5 - {kind} host:/x rw\n"


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "ceph",
        "lustre",
        "9p",
        "fuse.sshfs",
        "afs",
        "gpfs",
        "autofs",
    ],
)
def test_path_beneath_a_network_mount_is_found(kind: str) -> None:
    assert network_mount("/data/set/x", mounted("/data", kind)) == "/data"
    assert network_mount("/data", mounted("/data", kind)) == "/data"
    assert network_mount("/database", mounted("/data", kind)) is None


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "fuseblk"])
def test_local_file_systems_are_not_of_the_network(kind: str) -> None:
    assert network_mount("/data/x", mounted("/data", kind)) is None


def test_local_mount_beneath_a_network_root_counts_as_reached_through_it() -> None:
    text = "22 1 0:1 / / rw - nfs host:/ rw\n30 22 8:1 / /scratch rw - ext4 /dev/a rw\n"
    assert network_mount("/scratch/x", text) == "/"


def test_links_are_followed_without_touching_the_network(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "link").symlink_to("near/../away/deep")
    (tmp_path / "near").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    text = mounted(str(away), "nfs")
    assert network_mount(f"{tmp_path}/link/x", text) == str(away)
    assert network_mount(f"{tmp_path}/near/../away", text) == str(away)
    assert network_mount(f"{tmp_path}/loop", text) is None


def test_mount_point_with_a_space_is_understood() -> None:
    assert network_mount("/my data/x", mounted("/my\\040data", "nfs")) == "/my data"


def test_cgroup2_is_found_alone_and_beside_the_old_hierarchies() -> None:
    alone = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    hybrid = (
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    assert find_cgroup2(alone) == "/sys/fs/cgroup"
    assert find_cgroup2(hybrid) == "/sys/fs/cgroup/unified"
    assert find_cgroup2(ROOT) is None
    assert read_mountinfo()


def test_limits_of_a_process_are_read_from_its_table() -> None:
    text = Path("/proc/self/limits").read_text()
    for which, pair in parse_limits(text).items():
        assert resource.getrlimit(which) == pair


def test_replaced_and_cancelled_deadlines_do_not_come_up() -> None:
    timers = Timers()
    timers.set("kill", "a", 5.0)
    timers.set("kill", "a", 3.0)
    timers.set("kill", "b", 1.0)
    timers.cancel("kill", "b")
    assert timers.next_due() == 3.0
    assert timers.take_due(9.0) == [("kill", "a")]
    assert timers.next_due() is None


def test_cancelled_deadlines_do_not_pile_up() -> None:
    timers = Timers()
    for number in range(10_000):
        timers.set("limit", str(number), 1e9)
        timers.cancel("limit", str(number))
    assert sys.getsizeof(timers._heap) < 10_000


def test_attempt_without_a_known_process_has_no_members() -> None:
    """Session 0 holds half a machine, and the first process begets all the others."""
    # The process of the tests may have children of other tests.
    with subprocess.Popen(["sleep", "1000"]) as childless:
        table = ProcessTable(childless.pid)
        for pid in (0, 1):
            table.add("a", pid, 0, adopted=True)
            assert table.members("a") == []
        childless.kill()


def test_keeper_and_what_it_descends_from_are_never_members() -> None:
    table = ProcessTable(os.getpid())
    parent = os.getppid()
    table.add("a", parent, start_ticks(parent) or 0, adopted=True)
    members = {stat.pid for stat in table.members("a")}
    assert not members & {0, 1, os.getpid(), parent}


def test_pids_of_no_process_and_of_init_are_never_opened() -> None:
    assert open_checked(0, 0) is None
    assert open_checked(1, start_ticks(1) or 0) is None


def records_in(directory: Path, boot: str = "this") -> Records:
    records = Records(str(directory), KeeperEntry(2, 1, 5, boot))
    records.rewrite([])
    return records


def add(records: Records, size: int = 1) -> None:
    records.add(b'{"e":"x","d":"%s"}\n' % (b"d" * size))


def test_records_are_read_back_in_order(tmp_path: Path) -> None:
    records = records_in(tmp_path)
    for id in "ab":
        records.add(encode(RecalledEntry(id)))
    records.flush(list, empty=False)
    kept, rebooted = Records(str(tmp_path), KeeperEntry(2, 1, 5, "this")).load()
    assert typed(kept) == typed([RecalledEntry("a"), RecalledEntry("b")])
    assert not rebooted
    assert Records(str(tmp_path), KeeperEntry(2, 1, 5, "other")).load() == (kept, True)


def test_large_records_are_emptied_when_nothing_is_kept(tmp_path: Path) -> None:
    records = records_in(tmp_path)
    add(records, records_module.TIDY_BYTES)
    records.flush(list, empty=False)
    assert (tmp_path / "records").stat().st_size > records_module.TIDY_BYTES
    add(records)
    records.flush(list, empty=True)
    assert (tmp_path / "records").read_text().count("\n") == 1


def test_very_large_records_are_compacted_to_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "COMPACT_BYTES", 1000)
    records = records_in(tmp_path)
    add(records, 2000)
    records.flush(lambda: [AbleEntry()], empty=False)
    assert (tmp_path / "records").read_text().splitlines()[1:] == ['{"e":"able"}']


def test_full_disk_leaves_whole_lines_and_is_made_good_later(tmp_path: Path) -> None:
    records = records_in(tmp_path)
    add(records)
    records.flush(list, empty=False)
    whole = (tmp_path / "records").read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 3, before[1]))
    try:
        add(records)
        with pytest.raises(OSError, match="large"):
            records.flush(lambda: [UnableEntry("x" * 100)], empty=False)
        assert (tmp_path / "records").read_bytes() == whole
        with pytest.raises(OSError, match="large"):
            records.flush(lambda: [UnableEntry("x" * 100)], empty=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    records.flush(lambda: [AbleEntry()], empty=False)
    assert (tmp_path / "records").read_text().splitlines()[1:] == ['{"e":"able"}']
    assert os.listdir(tmp_path) == ["records"]
