"""Bugs of a worker or a keeper that the simulation must find, one at a time."""

import pytest

from grass.keeper.core.attempt import KeeperAttempt
from grass.keeper.core.exits import Exits, UnsyncedExits
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.keeper_events import (
    Adopted,
    AdoptedEnded,
    Answered,
    CannotSpawn,
    SpawnFailed,
)
from grass.keeper.core.runners import Runner, Runners
from grass.keeper.core.starts import Starts
from grass.keeper.core.takeover import Takeover
from grass.keeper.protocol import Entry, StartVerb, StateEntry
from grass.link.messages import Start
from grass.worker.core.start_checks import StartChecks
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
            self._units.free(held.notes.allocation)
        real(self, message)

    def keeper_start(self: KeeperCore, verb: StartVerb, _by: int, _now: float) -> None:
        self.starts.add(verb)

    patch.setattr(WorkerCore, "_start", start)
    patch.setattr(KeeperCore, "_start", keeper_start)


@bug("the keeper spawns before it records")
def _spawn_first(patch: pytest.MonkeyPatch) -> None:
    def begin(self: Starts, id: str) -> list[Entry]:
        del self._due[id]
        self._state.attempts[id].state = "starting"
        return []

    patch.setattr(Starts, "begin", begin)


@bug("an attempt fails when its machine cannot fork")
def _fork_fails_job(patch: pytest.MonkeyPatch) -> None:
    def cannot_spawn(self: Exits, event: CannotSpawn, now: float) -> None:
        failed = SpawnFailed(event.start.id, event.reason, event.at)
        self.spawn_failed(failed, now)

    patch.setattr(Exits, "cannot_spawn", cannot_spawn)


@bug("an attempt that could not be forked stays on record as begun")
def _unspawned_on_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimKeeper, "_unrecord", lambda self, effect: None)


@bug("a daemon takes what waits in the keeper for begun")
def _taken_for_begun(patch: pytest.MonkeyPatch) -> None:
    real = KeeperAttempt.state_entry

    def state_entry(self: KeeperAttempt) -> StateEntry:
        return real(self)._replace(begun=True)

    patch.setattr(KeeperAttempt, "state_entry", state_entry)


@bug("a worker keeps what it cannot start")
def _kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorkerCore, "_return_unbegun", lambda self: None)


@bug("a start is not checked by what is free of its devices")
def _unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StartChecks, "refusal", lambda self, attempt: None)


@bug("a start does not wait for a look at its devices")
def _not_looked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StartChecks, "holds", lambda self, attempt, now_s: False)


@bug("the keeper tells an exit while children live")
def _children_ignored(patch: pytest.MonkeyPatch) -> None:
    def main_ended(self: Exits, attempt: KeeperAttempt) -> None:
        self._finish(attempt, 0.0)

    patch.setattr(Exits, "main_ended", main_ended)


@bug("the keeper takes a missing exit code for success")
def _exit_guessed(patch: pytest.MonkeyPatch) -> None:
    real = KeeperAttempt.ended_adopted

    def ended(self: KeeperAttempt, status: int | None, at: int) -> None:
        real(self, 0 if status is None else status, at)

    patch.setattr(KeeperAttempt, "ended_adopted", ended)


@bug("a successor forgets what its predecessor had on record")
def _records_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Takeover, "restore", lambda self, entries: None)


@bug("a keeper whose socket was deleted leaves it at that")
def _socket_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimKeeper, "_put_socket_back", lambda self, effect: None)


@bug("exits of an earlier boot are thrown away")
def _exits_of_a_boot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Takeover, "restore_exits", lambda self, entries: None)


@bug("exits that are not forgotten are not synced")
def _never_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnsyncedExits, "begin", lambda self: False)


@bug("the end of a guest's process is missed")
def _guest_end_missed(patch: pytest.MonkeyPatch) -> None:
    ended = Takeover.adopted_ended

    def adopted_ended(self: Takeover, event: AdoptedEnded, now: float) -> None:
        if not self._state.attempts[event.id].is_guest:
            ended(self, event, now)

    patch.setattr(Takeover, "adopted_ended", adopted_ended)


@bug("a runner is handed an attempt while it has another")
def _handed_twice(patch: pytest.MonkeyPatch) -> None:
    def taken(self: Runners, key: str) -> Runner | None:
        return next((one for one in self._idle if one.key == key), None)

    patch.setattr(Runners, "_taken", taken)


@bug("the end of a task is told while its orphans live")
def _orphans_ignored(patch: pytest.MonkeyPatch) -> None:
    def answered(self: Exits, event: Answered, now: float) -> None:
        attempt = self._state.by_pid.pop(event.pid, None)
        if attempt is not None:
            attempt.ended(event, now)
            self._finish(attempt, now)

    patch.setattr(Exits, "answered", answered)


@bug("the code of a runner's last task is taken for that of the next")
def _code_of_another(patch: pytest.MonkeyPatch) -> None:
    real = Takeover.adopted

    def adopted(self: Takeover, event: Adopted, now: float) -> None:
        attempt = self._state.attempts[event.id]
        attempt.spawning = attempt.spawning._replace(runner=False)
        real(self, event, now)

    patch.setattr(Takeover, "adopted", adopted)
