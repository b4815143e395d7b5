"""Exits that a killed keeper took along, where the kernel still knows them."""

from typing import Any

import pytest

from grass.keeper.core import effects, events
from grass.keeper.core.keeper_core import KeeperCore
from grass.worker.core.keeper_lines import tell_exits

ID = f"{'a' * 16}.1.1"
LIMITS: dict[str, Any] = {
    "output": "/o",
    "stderr": None,
    "grace": 15.0,
    "time_limit": 5.0,
    "max_output": None,
    "own_output": True,
    "meta": {},
}
STARTED: dict[str, Any] = {
    "e": "started",
    "id": ID,
    "pid": 99,
    "ticks": 5,
    "at": 1,
    "offset": 0,
    "stderr_offset": 0,
    "since": 0.0,
    "found": False,
}


def told_by_successor(reason: str | None) -> dict[str, Any]:
    """Let a keeper die with an attempt; give what the real next one says of its end."""
    records = [{"e": "spawning", "id": ID, **LIMITS}, STARTED]
    if reason is not None:
        stop = {"e": "stopping", "id": ID, "signal": 15, "kill_at": 100.0}
        records.append({**stop, "reason": reason})
    core, told = KeeperCore(1, "boot"), list[dict[str, Any]]()
    waiting: list[events.Event] = [events.Restored(records)]
    while waiting:
        for effect in core.step(waiting.pop(0), 10.0):
            if isinstance(effect, effects.Adopt):
                waiting.append(events.Missing(ID, 7))
            elif isinstance(effect, effects.Survey):
                waiting.append(events.Surveyed(ID, True, 0))
            elif isinstance(effect, effects.Publish):
                told.append(effect.entry)
    return told[-1]


def end_of(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("code", "signal", "reason", "lost"))


@pytest.mark.parametrize(
    ("status", "code", "signal"), [(0, 0, None), (3 << 8, 3, None), (9, None, 9)]
)
def test_with_the_exit_the_loss_is_mended(
    status: int, code: int | None, signal: int | None
) -> None:
    line = told_by_successor(None)
    assert line["lost"]
    assert line["reason"]
    tell_exits(line, {ID: status}.get)
    assert end_of(line) == (code, signal, None, False)


@pytest.mark.parametrize(
    "reason", ["time limit", "output limit", "cut off from the broker", "cancelled"]
)
def test_why_an_attempt_was_stopped_is_kept(reason: str) -> None:
    line = told_by_successor(reason)
    assert line["lost"]
    tell_exits(line, {ID: 0}.get)
    assert end_of(line) == (0, None, reason, False)


def test_what_the_kernel_does_not_know_stays_lost() -> None:
    line = told_by_successor("time limit")
    before = dict(line)
    tell_exits(line, lambda attempt: None)
    assert line == before


def test_an_exit_that_the_keeper_saw_is_left_alone() -> None:
    line = {"e": "exited", "id": ID, "code": 3, "signal": None, "lost": False}
    tell_exits(line, lambda attempt: 0)
    assert line["code"] == 3


def test_the_list_that_a_keeper_begins_with_is_looked_through() -> None:
    lost = told_by_successor(None)
    runs = {"id": "other", "lost": False, "code": None}
    tell_exits({"e": "hello", "attempts": [runs, lost]}, lambda attempt: 0)
    assert (runs["code"], lost["code"]) == (None, 0)
