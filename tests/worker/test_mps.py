"""MPS: what a client is told, and control daemons that come and go with clients."""

from typing import Any

import pytest

from grass.keeper.protocol import (
    Entry,
    ExitEntry,
    ForgetVerb,
    Notes,
    RecallVerb,
    StartedEntry,
    StartVerb,
    StopVerb,
    Verb,
)
from grass.model.amount_text import WHOLE
from grass.model.worker import Unit
from grass.worker.core.mps_limits import MpsPlace, mps_variables
from grass.worker.core.mps_servers import MpsServers
from tests.worker.lab import FIRST, SECOND, THIRD, entry_of, listed

PLACE = MpsPlace("/usr/bin/nvidia-cuda-mps-control", "/h/mps")
GPUS = {"1": Unit(WHOLE, {"uuid": "GPU-b", "index": 1})}
QUARTER = {"gpu": {"1": WHOLE // 4}, "vram": {"1": 8 * WHOLE}}
CLIENT = {
    "CUDA_MPS_PIPE_DIRECTORY": "/h/mps/1/pipe",
    "CUDA_MPS_LOG_DIRECTORY": "/h/mps/1/log",
    "CUDA_VISIBLE_DEVICES": "GPU-b",
}
SERVER = "mps:1"


def test_a_share_is_a_cap_on_multiprocessors_and_memory() -> None:
    assert mps_variables(PLACE, QUARTER, GPUS, {}) == {
        **CLIENT,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=8192M",
    }


@pytest.mark.parametrize(
    ("allocation", "environment", "place"),
    [
        ({"gpu": {"1": WHOLE}, "vram": {"1": 40 * WHOLE}}, {}, PLACE),
        ({"gpu": {"0": WHOLE, "1": WHOLE}}, {}, PLACE),
        ({"cpu": {"1": WHOLE}}, {}, PLACE),
        (QUARTER, {"CUDA_MPS_PIPE_DIRECTORY": "/mine"}, PLACE),
        (QUARTER, {}, None),
        ({"vram": {"7": WHOLE}}, {}, PLACE),
    ],
)
def test_who_is_no_client(allocation: Any, environment: Any, place: Any) -> None:
    assert mps_variables(place, allocation, GPUS, environment) == {}


def start(name: str, mps: str = "1") -> StartVerb:
    env = {"A": "b", **(CLIENT if mps else {})}
    notes = Notes(QUARTER, mps=mps)
    return StartVerb(name, ["true"], env, "/", 0, "/o", meta=notes)


def sent(servers: MpsServers, *verbs: Verb) -> list[str]:
    """Give the names of what the keeper is sent."""
    said = {StartVerb: "start", StopVerb: "stop", ForgetVerb: "forget"}
    return [
        f"{said.get(type(verb), 'other')} {getattr(verb, 'id', SERVER)}"
        for verb in servers.outgoing(list(verbs))
    ]


def heard(servers: MpsServers, *entries: Entry) -> list[Entry]:
    return servers.incoming(list(entries))


def exited(name: str) -> ExitEntry:
    return ExitEntry("exited", name, code=0)


def begun(*names: str) -> MpsServers:
    """Give a server that is ready, with clients."""
    servers = MpsServers(PLACE)
    sent(servers, *map(start, names))
    heard(servers, StartedEntry(SERVER, 70, 9, 5))
    servers.ready("1", True)
    assert sent(servers) == [f"start {name}" for name in names]
    return servers


def test_clients_are_held_until_their_server_is_ready() -> None:
    servers = MpsServers(PLACE)
    assert sent(servers, start(FIRST), start(THIRD, mps="")) == [
        f"start {SERVER}",
        f"start {THIRD}",
    ]
    assert sent(servers, start(SECOND)) == []
    assert heard(servers, StartedEntry(SERVER, 70, 9, 5)) == []
    assert servers.started == {"1": 70}
    servers.ready("1", True)
    assert sent(servers) == [f"start {FIRST}", f"start {SECOND}"]


def test_the_server_is_stopped_after_its_last_client() -> None:
    servers = begun(FIRST, SECOND)
    assert heard(servers, exited(FIRST)) == [exited(FIRST)]
    assert sent(servers) == []
    heard(servers, exited(SECOND))
    assert sent(servers) == [f"stop {SERVER}"]
    # Another client comes before it is gone.
    assert sent(servers, start(THIRD)) == []
    assert heard(servers, exited(SERVER)) == []
    assert sent(servers) == [f"forget {SERVER}", f"start {SERVER}"]


def test_without_a_server_clients_start_without_it() -> None:
    servers = MpsServers(PLACE)
    sent(servers, start(FIRST))
    heard(servers, exited(SERVER))
    forget, client = servers.outgoing([])
    assert isinstance(forget, ForgetVerb)
    assert isinstance(client, StartVerb)
    assert client.env == {"A": "b", "CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert servers.failed == ["1"]
    assert sent(servers, start(SECOND)) == [f"start {SECOND}"]


def test_a_server_that_does_not_get_ready_is_given_up() -> None:
    servers = MpsServers(PLACE)
    sent(servers, start(FIRST))
    servers.ready("1", False)
    assert sent(servers) == [f"start {FIRST}", f"stop {SERVER}"]


def test_what_is_asked_of_a_held_start_reaches_the_keeper_after_it() -> None:
    servers = MpsServers(PLACE)
    sent(servers, start(FIRST), start(SECOND))
    assert sent(servers, StopVerb(FIRST)) == [f"start {FIRST}", f"stop {FIRST}"]
    assert sent(servers, RecallVerb([SECOND])) == [f"start {SECOND}", f"other {SERVER}"]


def test_after_a_fault_a_new_server_serves_new_clients() -> None:
    servers = begun(FIRST, SECOND)
    servers.faulted("1")
    assert sent(servers, start(THIRD)) == []
    heard(servers, exited(FIRST))
    assert sent(servers) == []
    heard(servers, exited(SECOND))
    assert sent(servers) == [f"stop {SERVER}"]
    heard(servers, exited(SERVER))
    assert sent(servers) == [f"forget {SERVER}", f"start {SERVER}"]


@pytest.mark.parametrize("client_runs", [True, False])
def test_a_server_of_an_earlier_daemon_is_taken_over(client_runs: bool) -> None:
    servers = MpsServers(PLACE)
    notes = {"allocation": QUARTER, "mps": "1"}
    states = [listed(SERVER, "running", meta=None, pid=70)]
    states += [listed(FIRST, "running", meta=notes)] if client_runs else []
    (hello,) = heard(servers, entry_of({"e": "hello", "attempts": states}))
    assert [one.id for one in hello.attempts] == [FIRST] * client_runs  # type: ignore[union-attr]
    assert sent(servers) == ([] if client_runs else [f"stop {SERVER}"])
    assert servers.started == {"1": 70}
