"""The MPS control daemons of this machine, which the keeper runs beside the attempts.

This stands between the worker's core and the keeper, and neither knows of it. A start
that uses MPS is held until the control daemon of its GPU is ready; that one starts with
the first client and is stopped after the last. It is one of the keeper's attempts, so
it outlives the daemon as jobs do. Where it cannot be started, clients start without it.

After a fault on its GPU a server takes no new clients before all of them have ended. So
starts are held until then, and a new server is started for them.
"""

from collections.abc import Iterator
from enum import Enum

from grass.keeper.protocol import (
    Entry,
    ErrorEntry,
    ExitEntry,
    ForgetVerb,
    HelloEntry,
    Notes,
    RecalledEntry,
    RecallVerb,
    StartedEntry,
    StartVerb,
    StateEntry,
    StopVerb,
    Verb,
)
from grass.worker.core.mps_limits import SERVER, MpsPlace, control_start, without_mps


class Stage(Enum):
    """How far a control daemon is."""

    STARTING = "starting"
    READY = "ready"
    FAULTED = "faulted"
    STOPPING = "stopping"


class MpsServers:
    """Control daemons by GPU, their clients, and the starts that wait for them."""

    def __init__(self, place: MpsPlace | None) -> None:
        self._place = place
        self._stages: dict[str, Stage] = {}
        self._held: dict[str, list[StartVerb]] = {}
        self._clients: dict[str, str] = {}
        """The GPU of each attempt that uses MPS, also of those that are held."""
        self._broken: set[str] = set()
        self._verbs: list[Verb] = []
        self.started: dict[str, int] = {}
        """Control daemons whose readiness the shell waits for: GPU to pid."""
        self.failed: list[str] = []
        """GPUs whose control daemon could not be started, for the log."""

    # To the keeper.

    def outgoing(self, verbs: list[Verb]) -> list[Verb]:
        """Return what the keeper is sent instead of these verbs."""
        for verb in verbs:
            unit = _unit_of(verb)
            if isinstance(verb, StartVerb) and unit:
                self._start(unit, verb)
            else:
                if self._held:
                    self._begin_named(verb)
                self._verbs.append(verb)
        taken, self._verbs = self._verbs, []
        return taken

    def _start(self, unit: str, verb: StartVerb) -> None:
        stage = self._stages.get(unit)
        if unit in self._broken or self._place is None:
            self._verbs.append(without_mps(verb))
            return
        self._clients[verb.id] = unit
        if stage is Stage.READY:
            self._verbs.append(verb)
            return
        self._held.setdefault(unit, []).append(verb)
        if stage is None:
            self._start_server(unit, verb)

    def _start_server(self, unit: str, client: StartVerb) -> None:
        assert self._place is not None
        self._stages[unit] = Stage.STARTING
        self._verbs.append(control_start(self._place, unit, client))

    def _begin_named(self, verb: Verb) -> None:
        """Begin a held start of which something else is asked: the keeper decides."""
        names = verb.ids if isinstance(verb, RecallVerb) else [getattr(verb, "id", "")]
        for unit, held in self._held.items():
            named = [one for one in held if one.id in names]
            self._verbs.extend(named)
            self._held[unit] = [one for one in held if one not in named]

    # From the keeper.

    def incoming(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries that are about attempts."""
        return [one for entry in entries for one in self._without_own(entry)]

    def _without_own(self, entry: Entry) -> Iterator[Entry]:
        if isinstance(entry, HelloEntry):
            yield self._listed(entry)
            return
        name = getattr(entry, "id", None)
        if isinstance(name, str) and name.startswith(SERVER):
            self._server_entry(name.removeprefix(SERVER), entry)
            return
        if isinstance(entry, (ExitEntry, RecalledEntry, ErrorEntry)) or _has_ended(
            entry
        ):
            self._left(name)
        yield entry

    def _listed(self, hello: HelloEntry) -> HelloEntry:
        """Take over what a keeper has; starts that were held are sent again."""
        self._held, self._verbs = {}, []
        own = [one for one in hello.attempts if one.id.startswith(SERVER)]
        others = [one for one in hello.attempts if not one.id.startswith(SERVER)]
        self._clients = {
            one.id: one.meta.mps
            for one in others
            if one.meta.mps and one.state != "exited"
        }
        self._stages = {}
        for one in own:
            unit = one.id.removeprefix(SERVER)
            self._stages[unit] = Stage.STOPPING if one.stopping else Stage.STARTING
            if one.state == "exited":
                self._ended(unit)
            elif one.pid is not None:
                self.started[unit] = one.pid
            self._stop_unused(unit)
        return hello._replace(attempts=others)

    def _server_entry(self, unit: str, entry: Entry) -> None:
        if isinstance(entry, StartedEntry):
            self.started[unit] = entry.pid
        elif isinstance(entry, (ExitEntry, ErrorEntry)) or _has_ended(entry):
            self._ended(unit)

    def ready(self, unit: str, is_ready: bool) -> None:
        """Begin what waited for a control daemon, or begin it without one."""
        if self._stages.get(unit) is not Stage.STARTING:
            return
        if is_ready:
            self._stages[unit] = Stage.READY
            self._verbs.extend(self._held.pop(unit, []))
        else:
            self._give_up(unit)
            self._stop(unit)

    def faulted(self, unit: str) -> None:
        """Note a fault on a GPU: its server takes no more clients."""
        if self._stages.get(unit) is Stage.READY:
            self._stages[unit] = Stage.FAULTED
            self._stop_unused(unit)

    def _ended(self, unit: str) -> None:
        self._verbs.append(ForgetVerb([f"{SERVER}{unit}"]))
        stage = self._stages.pop(unit, None)
        self.started.pop(unit, None)
        if stage is Stage.STARTING:
            self._give_up(unit)
        elif self._held.get(unit):
            self._start_server(unit, self._held[unit][0])

    def _give_up(self, unit: str) -> None:
        self._broken.add(unit)
        self.failed.append(unit)
        for one in self._held.pop(unit, []):
            self._clients.pop(one.id, None)
            self._verbs.append(without_mps(one))

    def _left(self, name: object) -> None:
        unit = self._clients.pop(name, None) if isinstance(name, str) else None
        if unit is not None:
            self._stop_unused(unit)

    def _stop_unused(self, unit: str) -> None:
        """Stop a control daemon whose last client is gone."""
        held = {one.id for one in self._held.get(unit, ())}
        stage = self._stages.get(unit)
        clients = {name for name, on in self._clients.items() if on == unit}
        waits = held and stage is not Stage.FAULTED
        if stage in (None, Stage.STOPPING) or waits or clients - held:
            return
        self._stop(unit)

    def _stop(self, unit: str) -> None:
        self._stages[unit] = Stage.STOPPING
        name = f"{SERVER}{unit}"
        self._verbs.append(StopVerb(name, grace=5.0, reason="not needed any more"))


def _unit_of(verb: Verb) -> str:
    notes = verb.meta if isinstance(verb, StartVerb) else None
    return notes.mps if isinstance(notes, Notes) else ""


def _has_ended(entry: Entry) -> bool:
    return isinstance(entry, StateEntry) and entry.state == "exited"
