"""Functions that a broker does not take: each is refused in one sentence."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

import grass
from grass.client.credentials import Credentials
from grass.errors import Forbidden, GrassError
from grass.verbs import task_jobs
from tests.support.homes import GrassHome
from tests.support.machines import Machine, new_line

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

SAID = "this needs the right `submit`, which the role `read` does not have"


async def main() -> None:
    async with grass.open_waitgroup() as wg:
        wg.submit(grass.Cores(1), abs, -1)


def refusal(call: Callable[[], Any], kind: type[GrassError]) -> GrassError:
    """Return the one error of a call, which may be in groups."""
    try:
        call()
    except BaseExceptionGroup as group:
        (error,) = group.exceptions
        assert isinstance(error, kind)
        return error
    except kind as error:
        return error
    raise AssertionError("it was not refused")


def test_a_token_that_may_only_read_enqueues_no_function(
    hub: GrassHome, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack = machine("rack")
    rack.ok("join", "--name", "rack", new_line(hub, "--role", "read"))
    for name in ("GRASS_HOME", "PATH"):
        monkeypatch.setenv(name, rack.environment[name])
    monkeypatch.setattr(task_jobs, "_uploaded", {})
    address = Credentials.load(rack.client.home).all[0].place
    calls: list[Callable[[], Any]] = [
        lambda: grass.enqueue(abs, -1),
        lambda: grass.map(abs, [-1, -2]),
        lambda: grass.run_combine(main, broker=address),
        lambda: grass.run_combine(main, [address], grass.Cores(1)),
    ]
    for call in calls:
        assert refusal(call, Forbidden).message == SAID
        # A connection that is left open is a warning, and so fails here.
        gc.collect()
