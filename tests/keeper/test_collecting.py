"""A killed keeper's jobs become children of init, which may be slow to collect them."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from tests.support.processes import without_core_s

from .conversation import Daemon, kill_and_await, wait_readable
from .earlier import SPAWNING, STARTED
from .successors import tells

_PR_SET_CHILD_SUBREAPER = 36
LONG_PAUSE_S = 1.0
"""The keeper looks less and less often; by now it would not for another second."""
AT_ONCE_S = 0.5


@pytest.fixture
def init() -> Iterator[None]:
    """Be the process that orphans go to."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@tells
def test_an_exit_is_told_as_soon_as_the_process_is_collected(
    init: None, make_daemon: Callable[..., Daemon]
) -> None:
    first = make_daemon()
    first.start("a", "/bin/sh", "-c", "sleep 0.3; exit 42")
    pid = first.expect("started")["pid"]
    kill_and_await(first.keeper)
    os.waitpid(first.keeper, 0)
    second = make_daemon()
    ended = os.pidfd_open(pid)
    assert wait_readable(ended)
    os.close(ended)
    time.sleep(LONG_PAUSE_S)
    began = active_s(second.keeper)
    os.waitpid(pid, 0)
    exited = second.expect("exited")
    assert (exited["code"], exited["lost"]) == (42, False)
    assert active_s(second.keeper) - began < AT_ONCE_S


def active_s(keeper: int) -> float:
    """Return the time, less what the keeper and this process had to wait for a core."""
    waited_s = sum(map(without_core_s, (keeper, os.getpid())))
    return time.monotonic() - waited_s


def test_a_process_whose_end_is_known_is_not_asked_after_again() -> None:
    core = KeeperCore(pid=1, boot="boot")
    core.step(events.Restored([SPAWNING, STARTED]), 0.0)
    core.step(events.Adopted("a", 7, 8, 9), 0.0)
    core.step(events.AdoptedUnclear("a", True, 9), 0.0)
    core.step(events.AdoptedEnded("a", 42 << 8, 9), 0.01)
    core.step(events.Surveyed("a", False, 0), 0.01)
    wanted = core.step(events.TimerTick(), 1.0)
    assert not [one for one in wanted if isinstance(one, effects.Inspect)]
    assert core.attempts["a"].code == 42
