"""The keeper's entries as the worker's messages to the broker.

A keeper that took over from a killed one may not know how an attempt ended, and calls
it lost. If the kernel still knows the exit status, it is filled in here, before the
entry is used; if the attempt was stopped for a reason, that is its outcome anyway.
"""

import os
from base64 import b64decode
from collections.abc import Callable
from typing import TypeVar

from grass.keeper.exit_reasons import KEEPER_KILLED
from grass.keeper.protocol import (
    AdoptVerb,
    Entry,
    ErrorEntry,
    ExitEntry,
    HelloEntry,
    Notes,
    StartedEntry,
    StateEntry,
    Usage,
)
from grass.link.messages import Exited, Search, Started
from grass.model.usage.attempt_usage import ResourceUse
from grass.worker.core.attempt_table import AttemptTable, WorkerAttempt
from grass.worker.core.causes import NO_CAUSE, Cause
from grass.worker.core.usage.memory_curves import MemoryCurve

OF_A_START = "`start`"
"""How an error begins that answers a start; a keeper of version 0.1 says only this."""

_Exit = TypeVar("_Exit", ExitEntry, StateEntry)


def with_kernel_status(entry: Entry, status_of: Callable[[str], int | None]) -> Entry:
    """Fill in the exits that a killed keeper lost, if the kernel knows them."""
    match entry:
        case HelloEntry():
            states = [_with_status(one, status_of) for one in entry.attempts]
            return entry._replace(attempts=states)
        case ExitEntry():
            return _with_status(entry, status_of)
        case StateEntry():
            return _with_status(entry, status_of)
        case _:
            return entry


def _with_status(entry: _Exit, status_of: Callable[[str], int | None]) -> _Exit:
    if not entry.lost:
        return entry
    reason = _reason_to_stop(entry.reason)
    status = status_of(entry.id)
    if status is None:
        # Only the exit code is lost of one that was stopped: its outcome is known.
        return entry if reason is None else entry._replace(lost=False)
    code = os.waitstatus_to_exitcode(status)
    return entry._replace(
        code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        lost=False,
        reason=reason,
    )


def _reason_to_stop(reason: str | None) -> str | None:
    """Return why an attempt was stopped: a time limit was reached all the same."""
    gone = reason is None or reason.startswith(KEEPER_KILLED)
    return None if gone else reason


def attempt_of(state: StateEntry) -> WorkerAttempt:
    """Make an attempt that a daemon before this one started."""
    after = None
    if state.state == "waiting":
        # Its present predecessor; the one it was started behind may be gone.
        after = state.after or state.meta.after
    return WorkerAttempt(state.meta, after, begun=state.begun)


def lost_entry(name: str, attempt: WorkerAttempt) -> ExitEntry:
    """Make the end of an attempt that no keeper knows any more."""
    reason = "its keeper was killed and left no trace of it"
    at = attempt.started.at if attempt.started else 0
    return ExitEntry("exited", name, reason=reason, lost=True, at=at)


def note_listed(table: AttemptTable, state: StateEntry) -> StartedEntry | None:
    """Note what a keeper's hello has of an attempt; return its start, if it ran."""
    if state.id not in table.attempts:
        # A daemon before this one started it.
        table.add(state.id, attempt_of(state))
    attempt = table.attempts[state.id]
    attempt.stopping, attempt.suspended = state.stopping, state.suspended
    attempt.begun = state.begun
    started = start_in(state)
    if started is not None:
        note_start(attempt, started)
    return started


def adopt_verb(name: str, attempt: WorkerAttempt, now_s: float) -> AdoptVerb:
    """Return the verb that has a keeper look for an attempt's processes."""
    notes, since, limit_s = attempt.notes, attempt.since, attempt.time_limit_s
    if limit_s is not None and since is not None:
        limit_s = max(0.0, limit_s - (now_s - since))
    output = notes.output or os.devnull
    return AdoptVerb(name, output, notes.stderr, attempt.grace_s, limit_s, notes)


def searched(
    table: AttemptTable, message: Search, now_s: float
) -> WorkerAttempt | None:
    """Add an attempt that the broker has as running and no record has.

    None: the worker knows it by now.
    """
    if message.attempt in table.attempts:
        return None
    notes = Notes(
        message.allocation,
        message.output,
        message.stderr,
        placed_at=message.placed_at,
        usage=message.usage,
        title=message.title,
    )
    found = WorkerAttempt(notes, since=now_s - message.ran_s)
    found.grace_s, found.time_limit_s = message.grace_s, message.time_limit_s
    table.add(message.attempt, found)
    return found


def change_in(
    entry: StartedEntry | ExitEntry | StateEntry,
) -> StartedEntry | ExitEntry | None:
    """Return how an attempt started or ended, if it did.

    A state is the answer to the start of an attempt that the keeper knows already.
    """
    if not isinstance(entry, StateEntry):
        return entry
    return exit_in(entry) if entry.state == "exited" else start_in(entry)


def start_in(state: StateEntry) -> StartedEntry | None:
    """Return how an attempt started, if its program ran."""
    if state.started_at is None or state.pid is None:
        return None
    return StartedEntry(
        state.id,
        state.pid,
        state.ticks or 0,
        state.started_at,
        state.offset,
        state.stderr_offset,
        state.since,
        state.found,
    )


def exit_in(state: StateEntry) -> ExitEntry:
    """Return how an attempt ended that has exited."""
    return ExitEntry(
        "exited",
        state.id,
        state.code,
        state.signal,
        state.reason,
        state.lost,
        state.at or 0,
        state.ran_s,
        state.output_bytes,
        state.rusage,
        state.result,
    )


def note_start(attempt: WorkerAttempt, entry: StartedEntry) -> Started:
    """Note that an attempt's program runs, and return the message about it."""
    attempt.started, attempt.since = started_of(attempt, entry), entry.since
    attempt.ticks = entry.ticks
    attempt.start, attempt.begun = None, True
    return attempt.started


def started_of(attempt: WorkerAttempt, entry: StartedEntry) -> Started:
    """Return the message that an attempt's program runs."""
    notes = attempt.notes
    return Started(
        entry.id,
        entry.pid,
        entry.at,
        notes.output,
        entry.offset,
        notes.stderr,
        entry.stderr_offset,
        notes.placed_at,
        usage=notes.usage,
    )


def exited_of(
    attempt: WorkerAttempt,
    entry: ExitEntry,
    peak: ResourceUse | None = None,
    cause: Cause = NO_CAUSE,
) -> Exited:
    """Return the message that an attempt has ended."""
    # If the start is unknown, it may have written only if the exit is unknown, too.
    wrote = attempt.started is not None or entry.lost
    notes, usage = attempt.notes, entry.rusage
    return Exited(
        entry.id,
        entry.at,
        entry.code,
        entry.signal,
        _clean(cause.reason or entry.reason),
        entry.lost,
        entry.output_bytes,
        None if usage is None else usage.max_rss,
        _cpu_s(usage),
        notes.output if wrote else None,
        notes.stderr if wrote else None,
        notes.placed_at,
        entry.ran_s,
        peak,
        notes.usage if wrote else None,
        cause.word,
        cause.blamed,
        result=_bytes(entry.result),
    )


def _bytes(result: str) -> bytes:
    """Read a result that came with an exit; one that is not whole is none."""
    try:
        return b64decode(result, validate=True)
    except ValueError:
        return b""


def refusal_of(entry: ErrorEntry) -> str | None:
    """Return why the keeper refuses a start, if this error says so.

    An unknown attempt is no refusal: a stop may have crossed the answer to a recall,
    and the attempt may have been placed again by now.
    """
    if entry.verb != "start" and not entry.message.startswith(OF_A_START):
        return None
    return entry.message.removeprefix(OF_A_START).removeprefix(":").strip()


def add_curve(ended: Exited, curve: MemoryCurve | None) -> None:
    """Add how the memory grew of an attempt that was followed from its beginning."""
    if curve is not None and curve.is_whole:
        ended.to_peak_s, ended.marks = round(curve.to_peak_s, 2), tuple(curve.marks)


def _cpu_s(usage: Usage | None) -> float | None:
    return None if usage is None else round(usage.user_s + usage.system_s, 6)


def _clean(reason: str | None) -> str | None:
    """Make a reason valid text; it may quote a program's name, which need not be."""
    return None if reason is None else reason.encode("utf-8", "replace").decode()
