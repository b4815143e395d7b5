"""A worker's core between a broker and a keeper that are played by hand."""

import json
from typing import Any

from grass.keeper.codec import decode_entry, name_of
from grass.keeper.protocol import AbleEntry, Entry, Verb
from grass.link.messages import Hello, KnownUnits, Resync, Start
from grass.model.amount_text import WHOLE
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore
from tests.support.building import units

AROUND = Surroundings("/out", "/home/me", "/bin/sh", {"PATH": "/bin"})
FIRST, SECOND, THIRD = (f"{'a' * 16}.{job}.1" for job in (1, 2, 3))
ONE_CORE = {"cpu": {"0": WHOLE}}


class Lab:
    """A worker core, and what it wants to say."""

    def __init__(self, cores: int = 1) -> None:
        who = WorkerIdentity("w", "desk", "boot", units(f"{{cpu:{cores}}}"))
        self.core = WorkerCore(who, AROUND)
        self.core.from_broker(
            KnownUnits({"cpu": {str(n): WHOLE for n in range(cores)}})
        )

    def broker(self, message: Any) -> Any:
        self.core.from_broker(message)
        return self.core.take()

    def keeper(self, event: str, **fields: Any) -> Any:
        self.core.from_keeper(entry_of({"e": event, **fields}))
        return self.core.take()

    def start(self, name: str = FIRST, allocation: Any = None, **more: Any) -> Any:
        held = ONE_CORE if allocation is None else allocation
        job = int(name.split(".")[1])
        start = Start(name, job, 1, "n", "p", ("true",), False, held, **more)
        return self.broker(start)

    def reported(self) -> Hello:
        (hello,) = self.broker(Resync()).to_broker
        assert isinstance(hello, Hello)
        return hello


def verbs_of(verbs: list[Verb]) -> list[str]:
    return [name_of(type(verb)) for verb in verbs]


def entry_of(document: dict[str, Any]) -> Entry:
    """Give what a worker reads in a keeper's line."""
    entry = decode_entry(json.dumps(document).encode())
    # One of a kind that is unknown is not even passed on.
    return AbleEntry() if entry is None else entry


def ready(cores: int = 1) -> Lab:
    lab = Lab(cores)
    lab.keeper("hello", attempts=[])
    return lab


def listed(name: str, state: str, **fields: Any) -> dict[str, Any]:
    """Give an attempt as a keeper lists it."""
    line = {
        "id": name,
        "state": state,
        "meta": {"allocation": ONE_CORE, "output": "/o", "stderr": None},
        "started_at": 5,
        "pid": 7,
        "ticks": 9,
    }
    return {**line, **fields}
