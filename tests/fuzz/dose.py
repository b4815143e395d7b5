"""How much is tried, and how long one example may take.

In the suite every test tries a third of its examples, the same on each run.
`GRASS_FUZZ=20` tries twenty times all of them, and others each time. An example that
takes too long is ended and is a failure like any other: a hang is what nobody would
report.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

Test = TypeVar("Test", bound=Callable[..., Any])

MORE = int(os.environ.get("GRASS_FUZZ", "0"))
SUITE_SHARE = 3
"""One in so many examples is tried in the suite."""
PATIENCE_S = 20.0
ALL_S = 300.0
"""How long all examples of a test may take, on a machine that is busy with others."""
_ALARM = signal.ITIMER_REAL, signal.SIGALRM
_CPU_ALARM = signal.ITIMER_PROF, signal.SIGPROF


class Hung(Exception):
    """An example took longer than any may."""


def examples(count: int) -> Callable[[Test], Test]:
    """Try this many examples, times what the environment says, or a few of them."""
    how = settings(
        max_examples=count * MORE or count // SUITE_SHARE,
        derandomize=not MORE,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: pytest.mark.timeout(ALL_S * max(1, MORE))(how(test))


@contextlib.contextmanager
def bounded(seconds: float = PATIENCE_S, *, cpu: bool = False) -> Iterator[None]:
    """End what takes longer; works in the main thread, where tests run.

    With `cpu` the processor time of the process counts, which does not grow on a busy
    machine; for what never waits.
    """

    def on_alarm(_number: int, _frame: object) -> None:
        raise Hung(f"still at it after {seconds} s")

    timer, number = _CPU_ALARM if cpu else _ALARM
    before = signal.signal(number, on_alarm)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
