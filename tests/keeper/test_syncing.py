"""Exits that are not forgotten yet are on the disk within a second."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grass.keeper import crash_points, launch
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import SYNC_S, KeeperCore
from grass.keeper.protocol import ExitEntry, ForgetVerb, KeeperEntry, StopVerb
from grass.keeper.system.records import Records

from .conversation import Daemon, end_all, wait_readable
from .cores import asked, core_with_job, ended, of, spawned, spec

HEADER = KeeperEntry(2, 1, 5, "boot")


def core_with_exit() -> KeeperCore:
    core = core_with_job()
    core.step(ended(), 1.0)
    core.step(events.Surveyed("a", True, 0), 1.0)
    return core


def syncs(core: KeeperCore, now: float) -> int:
    return len(of(core.step(events.TimerTick(), now), effects.Sync))


def test_an_exit_that_is_kept_is_synced_once() -> None:
    core = core_with_exit()
    assert syncs(core, 1.1) == 0
    assert syncs(core, 1.0 + SYNC_S) == 1
    core.step(events.Synced(done=True), 2.0)
    assert [syncs(core, now) for now in (3.0, 4.0)] == [0, 0]


def test_an_exit_that_is_forgotten_in_time_costs_no_sync() -> None:
    core = core_with_exit()
    core.step(asked(ForgetVerb(["a"])), 1.1)
    assert [syncs(core, now) for now in (2.0, 3.0)] == [0, 0]


def test_exits_during_a_sync_are_synced_after_it() -> None:
    core = core_with_exit()
    assert syncs(core, 2.0) == 1
    core.step(asked(spec("b")), 2.0)
    core.starts.begin("b")
    core.step(spawned("b", 101), 2.0)
    core.step(ended(101), 2.0)
    core.step(events.Surveyed("b", True, 0), 2.0)
    assert [syncs(core, now) for now in (3.0, 9.0)] == [0, 0]
    core.step(events.Synced(done=True), 9.0)
    assert [syncs(core, now) for now in (9.1, 9.0 + SYNC_S)] == [0, 1]


def test_a_sync_that_fails_is_tried_again() -> None:
    core = core_with_exit()
    assert syncs(core, 2.0) == 1
    core.step(events.Synced(done=False), 2.0)
    assert syncs(core, 2.0 + SYNC_S) == 1


@pytest.mark.parametrize("rebooted", [False, True])
def test_restored_exits_are_synced(rebooted: bool) -> None:
    kept = core_with_exit().snapshot()
    core = KeeperCore(2, "boot")
    core.step(events.Restored(kept, rebooted), 5.0)
    assert list(core.attempts) == ["a"]
    assert syncs(core, 5.0 + SYNC_S) == 1


def test_what_was_being_ended_when_the_machine_went_down_has_ended() -> None:
    core = core_with_job()
    core.step(asked(StopVerb("a", 15, 9.0, "time limit")), 1.0)
    core.step(ended(status=15), 2.0)
    core.step(events.Surveyed("a", False, 0), 2.0)
    after = KeeperCore(2, "another boot")
    after.step(events.Restored(core.snapshot(), rebooted=True), 0.0)
    exit = after.attempts["a"].state_entry()
    assert (exit.state, exit.signal, exit.reason) == (
        "exited",
        15,
        "time limit",
    )


def test_a_sync_ends_well_and_holds_no_lock_of_its_keeper(tmp_path: Path) -> None:
    records = Records(str(tmp_path), HEADER)
    records.rewrite([ExitEntry("exited", "a")])
    reader, writer = os.pipe()
    child = records.begin_sync()
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert wait_readable(reader), "the child kept a descriptor"
    os.close(reader)


def test_synced_exits_stay_so_when_their_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    exit = ExitEntry("exited", "a")
    records = Records(str(tmp_path), HEADER)
    records.rewrite([exit])
    assert syncs == []
    os.waitpid(records.begin_sync(), 0)
    records.rewrite([exit])
    records.rewrite([exit])
    assert len(syncs) == 2
    records.rewrite([])
    records.rewrite([exit])
    assert len(syncs) == 2
    successor = Records(str(tmp_path), HEADER)
    successor.load()
    successor.rewrite([exit])
    assert len(syncs) == 3


def test_a_sync_that_cannot_be_done_says_so(tmp_path: Path) -> None:
    records = Records(str(tmp_path / "gone"), HEADER)
    child = records.begin_sync()
    assert os.waitpid(child, 0)[1] != 0


def test_a_keeper_syncs_exits_that_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        launch, "passed_on", lambda: {crash_points.VARIABLE: "keeper.after-sync"}
    )
    launch.start_keeper(str(tmp_path))
    daemon = Daemon(tmp_path)
    gone = os.pidfd_open(daemon.keeper)
    assert daemon.run("a", "true")["code"] == 0
    assert wait_readable(gone), "the keeper never synced"
    os.close(gone)
    daemon.close()
    monkeypatch.undo()
    launch.start_keeper(str(tmp_path))
    end_all(tmp_path)
