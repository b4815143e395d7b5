"""Starts that are returned, as another machine may have what is missing here."""

from __future__ import annotations

from pathlib import Path

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.protocol import RecalledEntry, SpawningEntry, StopVerb

from .conversation import Daemon
from .cores import asked, of, spec

WAYS = pytest.mark.parametrize("nice", [0, 1], ids=["quick", "careful"])


def starting(id: str) -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Restored([]), 0.0)
    core.step(asked(spec(id)), 0.0)
    core.step(asked(spec("next", after=id)), 0.0)
    core.starts.begin(id)
    return core


def test_nothing_is_left_of_a_start_that_is_returned() -> None:
    core = starting("a")
    wanted = core.step(events.SpawnFailed("a", "no such folder", 1, "/x"), 0.0)
    [unrecorded] = of(wanted, effects.Unrecord)
    assert [type(entry) for entry in unrecorded.entries] == [SpawningEntry]
    [told] = of(wanted, effects.Tell)
    assert told.entry == RecalledEntry("a", "no such folder", "/x")
    assert [one.start.id for one in of(wanted, effects.Spawn)] == ["next"]
    assert list(core.attempts) == ["next"]


def test_one_that_is_to_be_stopped_ends() -> None:
    core = starting("a")
    core.step(events.Forked("a", 100, 5), 0.0)
    core.step(asked(StopVerb("a", 15, 5.0, "cancelled")), 0.0)
    wanted = core.step(events.SpawnFailed("a", "no such folder", 1, "/x"), 0.0)
    [published] = of(wanted, effects.Publish)
    assert (published.entry.e, published.entry.reason) == ("exited", "cancelled")


@WAYS
@pytest.mark.parametrize(
    ("given", "missing", "why"),
    [
        ({"cwd": "/no/such"}, "/no/such", "directory `/no/such`: no such file"),
        ({"program": "nosuch"}, "nosuch", "program `nosuch` not found in PATH or"),
        ({"program": "./sh"}, "./sh", "the interpreter of `./sh` was not found"),
        ({"script": "train.py"}, "train.py", "script `train.py` not found in"),
    ],
    ids=["directory", "program", "interpreter", "script"],
)
def test_what_is_missing_is_returned_with_its_name(
    daemon: Daemon,
    tmp_path: Path,
    nice: int,
    given: dict[str, str],
    missing: str,
    why: str,
) -> None:
    (tmp_path / "sh").write_text("#!/no/such/interpreter\n")
    (tmp_path / "sh").chmod(0o755)
    fields = {"cwd": str(tmp_path), "program": "true", **given}
    program = fields.pop("program")
    daemon.start("a", program, nice=nice, may_return=True, **fields)
    told = daemon.expect("recalled")
    assert (told["id"], told["missing"]) == ("a", missing)
    assert told["why"].startswith(f"could not start: {why}")
    daemon.start("b", program, nice=nice, **fields)
    ended = daemon.expect("exited")
    assert ended["id"] == "b"
