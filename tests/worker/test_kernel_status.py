"""Exits that a killed keeper took along, where the kernel still knows them."""

from typing import Any

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.protocol import (
    Entry,
    ExitEntry,
    HelloEntry,
    SpawningEntry,
    StartedEntry,
    StateEntry,
    StoppingEntry,
)
from grass.worker.core.keeper_entries import with_kernel_status
from tests.worker.lab import entry_of, listed

ID = f"{'a' * 16}.1.1"
SPAWNING = SpawningEntry(ID, "/o", None, 15.0, 5.0, None, True, {})
STARTED = StartedEntry(ID, 99, 5, 1, 0, 0, 0.0)


def told_by_successor(reason: str | None) -> ExitEntry:
    """Let a keeper die with an attempt; give what the real next one says of its end."""
    records: list[Entry] = [SPAWNING, STARTED]
    if reason is not None:
        records.append(StoppingEntry(ID, 15, reason, 100.0))
    core, told = KeeperCore(1, "boot"), list[Entry]()
    waiting: list[events.KeeperEvent] = [events.Restored(records)]
    while waiting:
        for effect in core.step(waiting.pop(0), 10.0):
            if isinstance(effect, effects.Adopt):
                waiting.append(events.Missing(ID, 7))
            elif isinstance(effect, effects.Survey):
                waiting.append(events.Surveyed(ID, True, 0))
            elif isinstance(effect, effects.Publish):
                told.append(effect.entry)
    assert isinstance(told[-1], ExitEntry)
    return told[-1]


def end_of(entry: Entry) -> tuple[Any, ...]:
    assert isinstance(entry, ExitEntry)
    return (entry.code, entry.signal, entry.reason, entry.lost)


@pytest.mark.parametrize(
    ("status", "code", "signal"), [(0, 0, None), (3 << 8, 3, None), (9, None, 9)]
)
def test_with_the_exit_the_loss_is_mended(
    status: int, code: int | None, signal: int | None
) -> None:
    line = told_by_successor(None)
    assert line.lost
    assert line.reason
    known = with_kernel_status(line, {ID: status}.get)
    assert end_of(known) == (code, signal, None, False)


@pytest.mark.parametrize(
    "reason", ["time limit", "output limit", "cut off from the broker", "cancelled"]
)
def test_why_an_attempt_was_stopped_is_kept(reason: str) -> None:
    line = told_by_successor(reason)
    assert line.lost
    assert end_of(with_kernel_status(line, {ID: 0}.get)) == (0, None, reason, False)
    unknown = with_kernel_status(line, lambda attempt: None)
    assert end_of(unknown) == (None, None, reason, False)


def test_what_the_kernel_does_not_know_stays_lost() -> None:
    line = told_by_successor(None)
    assert line.lost
    assert with_kernel_status(line, lambda attempt: None) == line


def test_an_exit_that_the_keeper_saw_is_left_alone() -> None:
    line = ExitEntry("exited", ID, 3)
    assert with_kernel_status(line, lambda attempt: 0) == line


def test_the_list_that_a_keeper_begins_with_is_looked_through() -> None:
    runs, lost = (
        entry_of({"e": "state", **listed(ID, state, lost=state == "exited")})
        for state in ("running", "exited")
    )
    assert isinstance(runs, StateEntry)
    assert isinstance(lost, StateEntry)
    hello = HelloEntry(2, 1, "boot", {}, None, [runs, lost])
    known = with_kernel_status(hello, lambda attempt: 0)
    assert isinstance(known, HelloEntry)
    assert [one.code for one in known.attempts] == [None, 0]
