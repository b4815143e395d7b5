"""Bugs of a worker or a keeper that the simulation must find, one at a time."""

from typing import Any

import pytest

from grass.keeper.core.attempt import Attempt
from grass.keeper.core.events import CannotSpawn, Entry, SpawnFailed
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.supervision import Custody
from grass.keeper.system.record_sync import Syncing
from grass.link.messages import Start
from grass.worker.core.worker_core import WorkerCore
from tests.simulation.keeper_shell import SimKeeper
from tests.simulation.planting import bug


@bug("a start that comes twice is started twice")
def _start_twice(patch: pytest.MonkeyPatch) -> None:
    # Worker and keeper both look whether they know an attempt; here neither does.
    real = WorkerCore._start

    def start(self: WorkerCore, message: Start) -> None:
        held = self._attempts.pop(message.attempt, None)
        if held is not None and held.exited is None and held.after is None:
            self._ledger.release(held.allocation)
        real(self, message)

    def keeper_start(self: KeeperCore, event: Any, now: float) -> None:
        self._custody.take(event.spec, event.after)

    patch.setattr(WorkerCore, "_start", start)
    patch.setattr(KeeperCore, "_start", keeper_start)


@bug("the keeper spawns before it records")
def _spawn_first(patch: pytest.MonkeyPatch) -> None:
    def spawning(self: Custody, id: str) -> list[Entry]:
        del self._in_line[id]
        self.attempts[id].state = "starting"
        return []

    patch.setattr(Custody, "spawning", spawning)


@bug("an attempt fails when its machine cannot fork")
def _fork_fails_job(patch: pytest.MonkeyPatch) -> None:
    def cannot_spawn(self: Custody, event: CannotSpawn) -> None:
        failed = SpawnFailed(event.spec.id, event.reason, event.at)
        self._spawn_failed(failed, 0.0)

    patch.setattr(Custody, "cannot_spawn", cannot_spawn)


@bug("an attempt that could not be forked stays on record as begun")
def _unspawned_on_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimKeeper, "_unrecord", lambda self, effect: None)


@bug("a daemon takes what waits in the keeper for begun")
def _taken_for_begun(patch: pytest.MonkeyPatch) -> None:
    real = Attempt.full_entry

    def full_entry(self: Attempt) -> Entry:
        return {**real(self), "begun": True}

    patch.setattr(Attempt, "full_entry", full_entry)


@bug("a worker keeps what it cannot start")
def _kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorkerCore, "_give_back", lambda self: None)


@bug("the keeper tells an exit while children live")
def _children_ignored(patch: pytest.MonkeyPatch) -> None:
    def main_is_gone(self: Custody, attempt: Any) -> None:
        self._finish(attempt)

    patch.setattr(Custody, "_main_is_gone", main_is_gone)


@bug("the keeper takes a missing exit code for success")
def _exit_guessed(patch: pytest.MonkeyPatch) -> None:
    real = Attempt.ended_adopted

    def ended(self: Attempt, status: int | None, at: int) -> None:
        real(self, 0 if status is None else status, at)

    patch.setattr(Attempt, "ended_adopted", ended)


@bug("a successor forgets what its predecessor had on record")
def _records_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Custody, "restore", lambda self, entries: None)


@bug("a keeper whose socket was deleted leaves it at that")
def _socket_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimKeeper, "_put_socket_back", lambda self, effect: None)


@bug("exits of an earlier boot are thrown away")
def _exits_of_a_boot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Custody, "restore_exits", lambda self, entries: None)


@bug("exits that nobody has taken are not synced")
def _never_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Syncing, "begin", lambda self: False)
