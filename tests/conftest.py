"""What holds for every test, wherever the suite is started.

In CI a skipped test fails, unless `allowed_skips.txt` gives it leave. A shell that
starts the suite in the background has it ignore Ctrl-C and hangups, and every process
inherits what is ignored: tests that send these signals need the usual dispositions.
Homes and databases are kept in memory where there is room: a run makes thousands, and
none of them has to outlive a loss of power.
What the tests' own processes compile is kept, whatever the environment says of that:
each of them imports every test, and commands read what they have compiled.
What is imported and collected is no garbage: looking for some in there would take most
of the time of collecting, and much of that of the tests.
Tests that wait for minutes begin first: the others run beside them, and none of them is
left for the end, when the other processes have nothing to do.
"""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.simulation import fresh_seeds
from tests.support.skips import leave_to_skip

_ALLOWED = Path(__file__).with_name("allowed_skips.txt")
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30


def _has_room_in_memory() -> bool:
    try:
        memory = os.statvfs(_MEMORY)
    except OSError:
        return False
    free_bytes = memory.f_bavail * memory.f_frsize
    may_run_programs = not memory.f_flag & os.ST_NOEXEC
    return (
        may_run_programs and free_bytes >= _ROOM_BYTES and os.access(_MEMORY, os.W_OK)
    )


sys.dont_write_bytecode = False

# How long an example takes says more of the machine than of what is tested. Where only
# the GPU is tested, Hypothesis need not be installed.
with suppress(ImportError):
    from hypothesis import settings

    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

if _has_room_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    tempfile.tempdir = str(_MEMORY)

signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(_number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_configure() -> None:
    """Draw the seeds of the simulation, before the processes of xdist begin."""
    fresh_seeds.first_seed()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seeds of the simulation, if it ran."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports(
        "failed"
    )
    if any(one.nodeid.startswith("tests/simulation/") for one in reports):
        first = fresh_seeds.first_seed()
        terminalreporter.write_line(
            f"simulation: seeds from {first}; {fresh_seeds.FIRST}={first} repeats them"
        )


def pytest_sessionfinish() -> None:
    known = sys.modules.get("tests.support.postgres")
    if known is not None:
        known.leave_shared_server()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    _fail_without_leave(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    report = yield
    _fail_without_leave(report)
    return report


def _fail_without_leave(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not os.environ.get("CI") or report.outcome != "skipped":
        return
    if hasattr(report, "wasxfail"):
        return
    if not leave_to_skip(report.nodeid, _ALLOWED.read_text().splitlines()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        report.outcome = "failed"
        report.longrepr = f"skipped, but not on {_ALLOWED.name}: {reason}"
