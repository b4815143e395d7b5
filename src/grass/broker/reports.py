"""Reading what a worker says before anything is changed by it.

A worker may be of another version, broken or not ours. What it says is looked at here,
once: a message that leaves this module names real attempts and holds only what can be
true, so that the store can keep it and sums of it stay numbers.
"""

from collections.abc import Iterable

from grass.errors import GrassError, ProtocolError
from grass.link.messages import Exited, Hello, Report, Returned, Started, ToBroker
from grass.model.ids import attempt_id
from grass.model.resources import check_units
from grass.model.times import LATEST
from grass.model.worker import capacity_of, check_label

MOST_LABELS = 64
LONGEST_TEXT = 4096
LONGEST_OF_ATTEMPT = 64 * 1024
LONGEST_LEASE_S = 1e9
LARGEST_SIZE = 2**50
MOST_CPU_S = 1e12
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
}
_TEXTS = ("output", "stderr", "reason")


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
    _check_text(message.worker, message.name, message.boot, message.instance)
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
        for name, (least, most) in _BOUNDS.items():
            number = getattr(report, name, None)
            # Of what is no number at all neither side of this holds.
            if number is not None and not least <= number <= most:
                raise ProtocolError(f"{name} of {report.attempt} is {number}")
        for name in _TEXTS:
            _check_length(getattr(report, name, None) or "", LONGEST_OF_ATTEMPT)
        if isinstance(report, Exited | Returned):
            _check_readable(report.reason or "")


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
