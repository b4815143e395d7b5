"""A keeper's core with a job, and what may happen to it, made up."""

from __future__ import annotations

from typing import Any

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.protocol import StartVerb, Verb


def spec(id: str = "a", **fields: Any) -> StartVerb:
    plain = StartVerb(
        id=id,
        argv=["true"],
        env={},
        cwd="/",
        umask=0o022,
        output="/o",
        stderr=None,
        grace=15.0,
        time_limit=None,
        max_output=None,
        own_output=False,
        nice=0,
        cpus=None,
        after=None,
        meta={},
    )
    return plain._replace(**fields)


def asked(verb: Verb, connection: int = 7) -> events.VerbReceived:
    return events.VerbReceived(connection, verb)


def spawned(id: str = "a", pid: int = 100) -> events.Spawned:
    return events.Spawned(id, pid, 5, 1_000_000, 0, 0)


def ended(pid: int = 100, status: int = 0) -> events.ChildEnded:
    return events.ChildEnded(pid, status, None, 2_000_000)


def core_with_job(**fields: Any) -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Restored([]), 0.0)
    core.step(events.Opened(7), 0.0)
    core.step(asked(spec(**fields)), 0.0)
    core.starts.begin("a")
    core.step(spawned(), 0.0)
    return core


def of(wanted: list[effects.Effect], kind: type) -> list[Any]:
    return [effect for effect in wanted if type(effect) is kind]
