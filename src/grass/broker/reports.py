"""Reading what a worker says before anything is changed by it.

A worker may be of another version, broken or not ours. What it says is looked at here,
once: a message that leaves this module names real attempts and holds only what the
store can keep.
"""

import math
from collections.abc import Iterable

from grass.errors import GrassError, ProtocolError
from grass.link.messages import Exited, Hello, Report, Returned, Started, ToBroker
from grass.model.ids import attempt_id
from grass.model.resources import check_units
from grass.model.worker import capacity_of, check_label

MOST_LABELS = 64
LONGEST_TEXT = 4096
LONGEST_LEASE_S = 1e9
_NUMBERS = (
    "at",
    "pid",
    "started_at",
    "exit_code",
    "signal",
    "output_offset",
    "stderr_offset",
    "output_bytes",
    "max_rss",
)


def check(message: ToBroker) -> None:
    """Raise `ProtocolError` for a message that cannot be acted on."""
    match message:
        case Hello():
            _check_hello(message)
        case Report() | Exited() | Started() | Returned():
            _check_each([message])
        case _:
            pass


def _check_hello(message: Hello) -> None:
    _check_text(message.worker, message.name, message.boot)
    if not message.worker:
        raise ProtocolError("a worker has no id")
    if len(message.labels) > MOST_LABELS:
        raise ProtocolError(f"{len(message.labels)} labels")
    lease_s = message.lease_s
    if lease_s is not None and not 0 < lease_s <= LONGEST_LEASE_S:
        raise ProtocolError(f"a lease of {lease_s} s")
    try:
        for label in message.labels:
            check_label(label)
        check_units(capacity_of(message.found))
    except GrassError as error:
        raise ProtocolError(error.message) from None
    _check_each([*message.running, *message.exited, *message.started])


def _check_each(reports: Iterable[Report | Exited | Started | Returned]) -> None:
    for report in reports:
        attempt_id(report.attempt)
        for name in _NUMBERS:
            number = getattr(report, name, None)
            if number is not None and not -(2**63) <= number < 2**63:
                raise ProtocolError(f"{name} of {report.attempt} is {number}")
        if isinstance(report, Exited | Returned):
            _check_text(report.reason or "")
        cpu_s = getattr(report, "cpu_s", None)
        if cpu_s is not None and not math.isfinite(cpu_s):
            raise ProtocolError(f"cpu_s of {report.attempt} is {cpu_s}")


def _check_text(*texts: str) -> None:
    for text in texts:
        if len(text) > LONGEST_TEXT:
            raise ProtocolError(f"a text of {len(text)} characters")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeError:
                raise ProtocolError(f"{text[:60]!a} is not text") from None
