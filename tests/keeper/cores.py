"""A keeper's core with a job, and what may happen to it, made up."""

from __future__ import annotations

from typing import Any

from grass.keeper.core import effects, events
from grass.keeper.core.keeper_core import KeeperCore


def spec(id: str = "a", **fields: Any) -> events.Spec:
    plain = events.Spec(
        id, ["true"], {}, "/", 0o022, "/o", None, 15.0, None, None, 0, None, {}
    )
    return plain._replace(**fields)


def spawned(id: str = "a", pid: int = 100) -> events.Spawned:
    return events.Spawned(id, pid, 5, 1_000_000, 0, 0)


def ended(pid: int = 100, status: int = 0) -> events.ChildEnded:
    return events.ChildEnded(pid, status, {}, 2_000_000)


def core_with_job(**fields: Any) -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Restored([]), 0.0)
    core.step(events.Opened(7), 0.0)
    core.step(events.Start(7, spec(**fields)), 0.0)
    core.spawning("a")
    core.step(spawned(), 0.0)
    return core


def of(wanted: list[effects.Effect], kind: type) -> list[Any]:
    return [effect for effect in wanted if type(effect) is kind]
