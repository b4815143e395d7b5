"""Reading what a worker says before anything is changed by it.

A worker may be of another version, broken or hostile. What it says is looked at here,
once: a message that leaves this module names attempts, holds only what can be true, so
that the store can keep it and sums of it stay numbers, and is of bounded size. What a
person reads and a good worker may make too long is cut; all else is refused.
"""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from grass.errors import GrassError, ProtocolError
from grass.link.messages import (
    Exited,
    Hello,
    Overran,
    ProfileNoted,
    Readiness,
    Removed,
    Report,
    Returned,
    Started,
    ToBroker,
    Withheld,
)
from grass.link.requests import LineScan, ScannedLines
from grass.model.amounts import LARGEST
from grass.model.durations import LONGEST_S
from grass.model.ids import attempt_id
from grass.model.jobs.task_call import MOST_TOLD
from grass.model.resources import Units, check_units
from grass.model.times import LATEST
from grass.model.usage.attempt_usage import ResourceUse
from grass.model.usage.enforcement import FEATURES
from grass.model.usage.profile_lines import MOST_MARKS
from grass.model.worker import FoundUnits, capacity_of, check_label

MOST_LABELS = 64
MOST_REPORTS = 64 * 1024
"""More attempts than a machine has processes for; of a hello, all lists together."""
MOST_KINDS = 64
MOST_DETAILS = 16
MOST_GPUS = 1024
MOST_NAMED = 64
"""How many processes a worker names of one GPU."""
MOST_PROCESSES = MOST_GPUS * MOST_NAMED
LONGEST_DETAIL = 256
LONGEST_TEXT = 4096
LONGEST_PATH = 64 * 1024
LONGEST_REASON = 1000
"""A longer reason is cut: it is kept with the attempt, and shown in one line."""
LONGEST_RETURN = 200
"""The reason of each returned start is written into the journal."""
LONGEST_LEASE_S = 1e9
LARGEST_SIZE = 2**50
MOST_CPU_S = 1e12
MOST_RAN_S = 1e10
_BOUNDS = {
    "at": (0, LATEST),
    "started_at": (0, LATEST),
    "placed_at": (0, LATEST),
    "pid": (1, 2**31),
    "exit_code": (0, 255),
    "signal": (1, 64),
    "output_offset": (0, LARGEST_SIZE),
    "stderr_offset": (0, LARGEST_SIZE),
    "output_bytes": (0, LARGEST_SIZE),
    "max_rss": (0, LARGEST_SIZE),
    "cpu_s": (0, MOST_CPU_S),
    "ran_s": (0, MOST_RAN_S),
    "to_peak_s": (0, MOST_RAN_S),
    "memory": (0, LARGEST_SIZE),
    "used": (0, LARGEST_SIZE),
    "reserved": (0, LARGEST_SIZE),
}
MOST_CORES = 1e6
MOST_GPUS = 256
_PATHS = ("output", "stderr", "usage", "missing")
_AboutAttempt = Report | Exited | Started | Returned | ProfileNoted | Overran


def check(message: ToBroker) -> None:
    """Raise `ProtocolError` for a message that cannot be acted on."""
    match message:
        case Hello():
            _check_hello(message)
        case Readiness():
            _check_unable(message.unable)
        case Withheld():
            _check_withheld(message)
        case Report() | Exited() | Started() | Returned() | ProfileNoted() | Overran():
            _check_each([message])
        case Removed():
            _check_text(message.reason)
            message.reason = message.reason[:LONGEST_RETURN]
        case _:
            pass


def _check_hello(message: Hello) -> None:
    _check_text(message.worker, message.name, message.boot, message.instance)
    _check_unable(message.unable)
    if message.withheld is not None:
        _check_withheld(message.withheld)
    if not message.worker:
        raise ProtocolError("a worker has no id")
    if len(message.labels) > MOST_LABELS:
        raise ProtocolError(f"{len(message.labels)} labels")
    # A worker of a later version may know more.
    message.enforces = tuple(one for one in FEATURES if one in message.enforces)
    reports: list[_AboutAttempt] = [*message.running, *message.exited, *message.started]
    if len(reports) > MOST_REPORTS:
        raise ProtocolError(f"{len(reports)} attempts in a hello are too many")
    lease_s = message.lease_s
    if lease_s is not None and not 0 < lease_s <= LONGEST_LEASE_S:
        raise ProtocolError(f"a lease of {lease_s} s")
    left_s = message.time_left_s
    if left_s is not None and not 0 <= left_s <= LONGEST_S:
        raise ProtocolError(f"a worker with {left_s} s left")
    try:
        for label in message.labels:
            check_label(label)
        _check_found(message.found)
    except GrassError as error:
        raise ProtocolError(error.message) from None
    _check_each(reports)


def _check_found(found: FoundUnits) -> None:
    if len(found) > MOST_KINDS:
        raise ProtocolError(f"{len(found)} kinds of units")
    check_units(capacity_of(found))
    for units in found.values():
        for unit in units.values():
            if len(unit.details) > MOST_DETAILS:
                raise ProtocolError(f"{len(unit.details)} details of a unit")
            for name, detail in unit.details.items():
                _check_detail(name)
                _check_detail(detail)


def _check_detail(said: str | int) -> None:
    if isinstance(said, int):
        if abs(said) > LARGEST_SIZE:
            raise ProtocolError("a detail of a unit is too large")
        return
    _check_length(said, LONGEST_DETAIL)
    _check_readable(said)


def _check_unable(reason: str) -> None:
    _check_length(reason, LONGEST_REASON)
    _check_readable(reason)


def _check_withheld(message: Withheld) -> None:
    """Refuse amounts that cannot be, and more text than is worth keeping."""
    if message.units.keys() - {"vram"}:
        raise ProtocolError(f"{', '.join(message.units)} cannot be withheld")
    withheld = message.units.get("vram", {})
    told_units = withheld, message.strangers, message.faults, message.busy
    for told in (*told_units, message.passing):
        if len(told) > MOST_GPUS:
            raise ProtocolError(f"{len(told)} units are too many")
        _check_text(*told)
    for unit, amount in withheld.items():
        if not 0 <= amount <= LARGEST:
            raise ProtocolError(f"{amount} of vram {unit[:60]} is withheld")
    for named in message.strangers.values():
        if len(named) > MOST_NAMED:
            raise ProtocolError(f"{len(named)} processes of a unit are too many")
        for name in named:
            _check_detail(name)
    for fault in message.faults.values():
        _check_unable(fault)
    _check_processes(message.processes)


def _check_processes(processes: dict[int, Units]) -> None:
    if len(processes) > MOST_PROCESSES:
        raise ProtocolError(f"{len(processes)} processes are too many")
    for own in processes.values():
        if len(own) > MOST_GPUS:
            raise ProtocolError(f"{len(own)} units of a process are too many")
        _check_text(*own)
        if not all(0 <= amount <= LARGEST for amount in own.values()):
            raise ProtocolError("a process has an amount of vram that cannot be")


class _Checked(NamedTuple):
    """What of a message is checked: numbers with bounds, and paths."""

    numbers: Callable[[object], tuple[float | None, ...]]
    bounds: list[tuple[str, float, float]]
    paths: Callable[[object], tuple[str | None, ...]]


@cache
def _checked_fields(kind: type[_AboutAttempt]) -> _Checked:
    names = kind.__struct_fields__
    bounds: list[tuple[str, float, float]] = [
        (name, least, most) for name, (least, most) in _BOUNDS.items() if name in names
    ]
    paths = [name for name in _PATHS if name in names]
    return _Checked(_values_of([one[0] for one in bounds]), bounds, _values_of(paths))


def _values_of(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return what gives the values of these fields, with one call for all of them."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda message: tuple(getattr(message, name) for name in names)


def _check_each(reports: Iterable[_AboutAttempt]) -> None:
    for report in reports:
        attempt_id(report.attempt)
        numbers, bounds, paths = _checked_fields(type(report))
        for number, (name, least, most) in zip(numbers(report), bounds, strict=True):
            # Of what is no number at all neither side of this holds.
            if number is not None and not least <= number <= most:
                raise ProtocolError(f"{name} of {report.attempt} is {number}")
        for path in paths(report):
            if path:
                _check_length(path, LONGEST_PATH)
        if isinstance(report, Report):
            _check_detail(report.title[:LONGEST_DETAIL])
            report.title = report.title[:LONGEST_DETAIL]
        if isinstance(report, Overran):
            _check_detail(report.unit)
        if isinstance(report, Exited):
            _check_cause(report)
        if isinstance(report, (Exited, Returned)) and report.reason:
            _check_readable(report.reason)
            short = isinstance(report, Returned) and not report.missing
            report.reason = report.reason[: LONGEST_RETURN if short else LONGEST_REASON]


def _check_cause(ended: Exited) -> None:
    if ended.peak is not None:
        check_use(ended.peak)
    if ended.blamed:
        attempt_id(ended.blamed)
    if len(ended.result) > MOST_TOLD:
        raise ProtocolError(f"{ended.attempt} tells {len(ended.result)} bytes")
    if len(ended.marks) > MOST_MARKS:
        raise ProtocolError(f"{len(ended.marks)} marks of one attempt")
    if not all(0 <= mark <= LARGEST_SIZE for mark in ended.marks):
        raise ProtocolError(f"{ended.attempt} has marks that cannot be")
    _check_length(ended.cause, LONGEST_RETURN)
    _check_readable(ended.cause)


def check_use(use: ResourceUse) -> None:
    """Raise `ProtocolError` for a measurement that cannot be true."""
    _check_length(use.note, LONGEST_RETURN)
    _check_readable(use.note)
    if len(use.gpus) > MOST_GPUS:
        raise ProtocolError(f"{len(use.gpus)} GPUs of one attempt")
    numbers = [(use.memory, LARGEST_SIZE), (use.cpu, MOST_CORES)]
    for unit, gpu in use.gpus.items():
        _check_detail(unit)
        numbers += [(gpu.memory, LARGEST_SIZE), (gpu.utilization, 100.0)]
    for number, largest in numbers:
        if number is not None and not 0 <= number <= largest:
            raise ProtocolError(f"a measurement is {number}")


def check_scanned(found: ScannedLines, offset: int, wanted: LineScan) -> None:
    """Refuse what cannot have been found in a part of a file."""
    end, size = found.end, found.size
    room = end - offset
    likely = 0 <= room <= max(0, wanted.until - offset) and 0 <= size <= LARGEST_SIZE
    lines = 0 <= found.newlines <= room and 0 <= found.count <= room
    marks = all(
        0 <= line <= found.newlines and offset <= at <= end for line, at in found.marks
    )
    matches = len(found.matches) <= wanted.most and all(
        0 <= one.line <= found.newlines and offset <= one.offset <= end
        for one in found.matches
    )
    if not (likely and lines and marks and matches):
        raise ProtocolError("the worker tells of lines that cannot be there")


def _check_text(*texts: str) -> None:
    for text in texts:
        _check_length(text, LONGEST_TEXT)
        _check_readable(text)


def _check_length(text: str, most: int) -> None:
    if len(text) > most:
        raise ProtocolError(f"a text of {len(text)} characters")


def _check_readable(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeError:
            raise ProtocolError(f"{text[:60]!a} is not text") from None
