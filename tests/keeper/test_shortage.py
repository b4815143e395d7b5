"""A machine that cannot start jobs now: they wait, daemons are told, and it goes on."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.start_failures import CALM_S, TOLD_AFTER
from grass.keeper.protocol import (
    AbleEntry,
    Entry,
    ForkedEntry,
    KeeperEntry,
    SpawningEntry,
    StopVerb,
    UnableEntry,
)
from grass.keeper.start_errors import CannotStart
from grass.keeper.system.records import Records
from grass.keeper.system.spawn import _exec_failure
from tests.support.building import typed
from tests.support.patience import until
from tests.support.shortage import ForkLimit, forks, make_room, small_disk, use_up_files

from .conversation import Daemon, kill_and_await
from .cores import asked, of, spawned, spec
from .successors import Make

__all__ = ["forks"]

NO_PROCESS = "no more processes are allowed"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 1 << 20, files=50) as disk:
        yield disk
        make_room(disk)


# Real ones.


@pytest.mark.parametrize("nice", [0, 1])
def test_what_cannot_be_forked_waits_and_starts_when_it_can(
    daemon: Daemon, forks: ForkLimit, nice: int
) -> None:
    """Started by the quick way, and by the careful one."""
    forks.deny(daemon.keeper)
    for id, program in (("a", "true"), ("b", "false"), ("c", "true")):
        daemon.start(id, program, nice=nice)
    assert daemon.expect("unable")["reason"] == NO_PROCESS
    forks.allow()
    ended: dict[str, int] = {}
    told = []
    while len(ended) < 3:
        line = daemon.receive()
        told.append(line["e"])
        if line["e"] == "exited":
            ended[line["id"]] = line["code"]
    assert ended == {"a": 0, "b": 1, "c": 0}
    assert told.count("able") == 1
    assert "unable" not in told


def test_what_cannot_be_forked_can_be_stopped_and_recalled(
    daemon: Daemon, forks: ForkLimit
) -> None:
    forks.deny(daemon.keeper)
    daemon.start("stopped", "true")
    daemon.start("recalled", "true")
    daemon.expect("unable")
    daemon.send(v="stop", id="stopped", reason="cancelled")
    exited = daemon.expect("exited", "stopped")
    assert (exited["code"], exited["reason"]) == (None, "cancelled")
    daemon.send(v="recall", ids=["recalled"])
    daemon.expect("recalled", "recalled")
    # Without a start that is due the keeper probes whether it can start again.
    forks.allow()
    daemon.expect("able")


def test_a_keeper_without_descriptors_starts_jobs_when_it_has_some(
    daemon: Daemon,
) -> None:
    before = resource.prlimit(daemon.keeper, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.keeper, resource.RLIMIT_NOFILE, (3, before[1]))
    daemon.start("a", "true")
    assert daemon.expect("unable")["reason"] == "too many open files"
    resource.prlimit(daemon.keeper, resource.RLIMIT_NOFILE, before)
    assert daemon.expect("exited", "a")["code"] == 0


def test_who_connects_hears_that_no_jobs_can_be_started_and_which_have_not_begun(
    daemon: Daemon, make_daemon: Make, forks: ForkLimit
) -> None:
    daemon.start("runs", "sleep", "100")
    daemon.expect("started")
    forks.deny(daemon.keeper)
    daemon.start("waits", "true")
    daemon.expect("unable")
    hello = make_daemon().hello
    assert hello["unable"] == NO_PROCESS
    begun = {line["id"]: line["begun"] for line in hello["attempts"]}
    assert begun == {"runs": True, "waits": False}


def test_a_successor_knows_nothing_of_what_could_not_be_forked(
    daemon: Daemon, make_daemon: Make, forks: ForkLimit
) -> None:
    forks.deny(daemon.keeper)
    daemon.start("a", "true")
    daemon.expect("unable")
    kill_and_await(daemon.keeper)
    assert make_daemon().hello["attempts"] == []


def test_output_that_cannot_be_made_on_a_full_disk_is_made_when_there_is_room(
    daemon: Daemon, disk: Path
) -> None:
    """The records lie elsewhere here, and can be written."""
    use_up_files(disk)
    path = str(disk / "project" / "1" / "1.log")
    daemon.start("a", "echo", "hi", output=path, own_output=True)
    assert daemon.expect("unable")["reason"] == "no space left on device"
    daemon.run("elsewhere", "true")
    make_room(disk)
    assert daemon.expect("exited", "a")["code"] == 0
    assert Path(path).read_text() == "hi\n"


def test_output_that_a_job_chose_itself_on_a_full_disk_fails_the_job(
    daemon: Daemon, disk: Path
) -> None:
    use_up_files(disk)
    exited = daemon.run("a", "echo", "hi", output=str(disk / "1" / "1.log"))
    assert exited["reason"].endswith("no space left on device")


def test_a_full_disk_without_the_socket_ends_no_job_when_somebody_sends_sigterm(
    disk: Path, make_daemon: Make
) -> None:
    daemon = make_daemon(disk)
    daemon.start("a", "sleep", "100")
    daemon.expect("started")
    (disk / "keeper.sock").unlink()
    use_up_files(disk)
    daemon.close()
    until(lambda: has_handled_signals(daemon.keeper), "the keeper sleeps")
    os.kill(daemon.keeper, signal.SIGTERM)
    until(lambda: has_handled_signals(daemon.keeper), "the keeper handles SIGTERM")
    make_room(disk)
    until((disk / "keeper.sock").exists, "the keeper makes its socket again")
    successor = make_daemon(disk)
    assert successor.keeper == daemon.keeper
    (state,) = successor.hello["attempts"]
    assert (state["state"], state.get("reason")) == ("running", None)
    successor.send(v="stop", id="a", signal=15, grace=9, reason="cancelled")
    assert successor.expect("exited", "a")["reason"] == "cancelled"


def has_handled_signals(pid: int) -> bool:
    """Return whether a process sleeps, with no signal pending."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return status["State"][0] == "S" and int(status["ShdPnd"], 16) == 0


# Whose fault a failure is.


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.E2BIG])
def test_what_a_job_got_wrong_itself_fails_it(number: int) -> None:
    failure = _exec_failure(OSError(number, "x"), "/bin/x")
    assert isinstance(failure, CannotStart)


@pytest.mark.parametrize(
    "number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE]
)
def test_what_the_machine_is_short_of_does_not_fail_the_job(number: int) -> None:
    failure = _exec_failure(OSError(number, "x"), "/bin/x")
    assert not isinstance(failure, CannotStart)


# The core.


def core_with(*ids: str) -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    for id in ids:
        core.step(asked(spec(id)), 0.0)
    return core


def fail(core: KeeperCore, id: str, now: float) -> list[effects.Effect]:
    core.starts.begin(id)
    return core.step(events.CannotSpawn(spec(id), "short", 1), now)


def told(wanted: list[effects.Effect]) -> list[Entry]:
    return [effect.entry for effect in of(wanted, effects.Tell)]


def test_what_could_not_be_spawned_is_taken_off_the_record_and_goes_last() -> None:
    core = core_with("a", "b")
    wanted = fail(core, "a", 0.0)
    [unrecorded] = of(wanted, effects.Unrecord)
    assert [type(entry) for entry in unrecorded.entries] == [SpawningEntry]
    assert of(wanted, effects.Spawn) == [effects.Spawn(spec("a"))]
    assert core.snapshot() == []
    assert not core.start_failures.may_try


def test_daemons_are_told_once_it_lasts_and_once_it_is_over() -> None:
    core, now, heard = core_with("a"), 0.0, []
    for _ in range(TOLD_AFTER + 3):
        heard += told(fail(core, "a", now))
        now = core.timers.next_due() or now
        heard += told(core.step(events.TimerTick(), now))
    assert typed(heard) == typed([UnableEntry("short")])
    core.starts.begin("a")
    assert typed(told(core.step(spawned("a"), now))) == typed([AbleEntry()])
    assert core.start_failures.may_try


def test_a_failure_that_passes_at_once_is_not_told() -> None:
    core = core_with("a")
    assert told(fail(core, "a", 0.0)) == []
    core.step(events.TimerTick(), 1.0)
    core.starts.begin("a")
    assert told(core.step(spawned("a"), 1.0)) == []


def test_pauses_stay_long_while_it_comes_and_goes() -> None:
    core, now = core_with("a"), 0.0
    for _ in range(20):
        fail(core, "a", now)
        now = core.timers.next_due() or now
        core.step(events.TimerTick(), now)
        core.step(events.Probed(None, None), now)
    fail(core, "a", now)
    assert core.timers.next_due() == now + 5.0
    core.step(events.TimerTick(), now + 5.0)
    core.step(events.Probed(None, None), now + 5.0)
    fail(core, "a", now + 5.0 + CALM_S)
    assert core.timers.next_due() == pytest.approx(now + 5.0 + CALM_S + 0.02)


def test_a_careful_start_that_the_machine_cannot_make_is_put_back() -> None:
    core = core_with("a")
    core.starts.begin("a")
    core.step(events.Forked("a", 100, 5), 0.0)
    wanted = core.step(events.CannotSpawn(spec("a"), "short", 1), 0.0)
    [unrecorded] = of(wanted, effects.Unrecord)
    assert [type(entry) for entry in unrecorded.entries] == [SpawningEntry, ForkedEntry]
    assert of(wanted, effects.ReleaseAttempt) == [effects.ReleaseAttempt("a")]
    assert core.step(events.ChildEnded(100, 0, None, 1), 0.0) == []


def test_a_careful_start_that_is_to_be_stopped_meanwhile_ends_as_that_says() -> None:
    core = core_with("a")
    core.starts.begin("a")
    core.step(events.Forked("a", 100, 5), 0.0)
    core.step(asked(StopVerb("a", 15, 5.0, "cancelled")), 0.0)
    wanted = core.step(events.CannotSpawn(spec("a"), "short", 1), 0.0)
    [published] = of(wanted, effects.Publish)
    assert (published.entry.e, published.entry.reason) == ("exited", "cancelled")
    assert not of(wanted, effects.Unrecord)


# The file.


def test_the_last_lines_are_cut_off_and_others_get_a_note(tmp_path: Path) -> None:
    records = Records(str(tmp_path), KeeperEntry(2, 1, 5, "x"))
    first, second, note = (
        b'{"e":"%s"}\n' % word for word in (b"first", b"second", b"note")
    )
    records.rewrite([])
    for line in (first, second):
        records.add(line)
        records.flush(list, False)
    header = os.path.getsize(tmp_path / "records") - len(first + second)
    records.take_back(second, note)
    records.flush(list, False)
    assert (tmp_path / "records").read_bytes()[header:] == first
    records.take_back(first, note)
    records.flush(list, False)
    assert (tmp_path / "records").read_bytes()[header:] == first + note
