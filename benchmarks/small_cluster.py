"""A broker and its workers, each a daemon of its own, speaking TLS on loopback.

They are started the way the command line starts them. At the end all of them, and their
keepers, are gone before the folders are removed.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from benchmarks.fresh_home import QUEUE, FreshHome, keepers, see_off
from benchmarks.scratch import scratch_folder
from grass.client import autostart
from grass.client.client import Client
from grass.client.credentials import Credentials, JoinedBroker
from grass.config import LOCAL, Home
from grass.daemon.worker_setup import home_instance, worker_id
from grass.model.addresses import read_invitation

_HOST = "127.0.0.1"


@contextmanager
def small_cluster(workers: int, slots: int) -> Iterator[FreshHome]:
    """Start a broker without a worker, and workers with so many slots each."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        port = _free_port()
        options = [f"--bind={_HOST}:{port}", f"--advertise={_HOST}", "--no-worker"]
        broker = stack.enter_context(_daemon(folder, options))
        _join(broker, folder, port, "reader", "read")
        for number in range(workers):
            home = stack.enter_context(scratch_folder())
            _join(broker, home, port, f"w{number}", "machine")
            own = stack.enter_context(_daemon(home, [f"--name=w{number}"]))
            _await_worker(broker, f"w{number}")
            own.create_queue(QUEUE, {"capacity": f"{{slot:{slots}}}"})
        yield FreshHome(folder, broker)


@contextmanager
def _daemon(folder: Path, options: list[str]) -> Iterator[Client]:
    home = Home(str(folder))
    autostart.start(home, asked_for=True, options=options)[0].close()
    with Client(home, may_start=False, broker=LOCAL) as client:
        pid = client.overview()["daemon"]["pid"]
        try:
            yield client
        finally:
            processes = [psutil.Process(pid), *keepers(home)]
            client.stop()
            see_off(processes)


def _join(broker: Client, folder: Path, port: int, name: str, role: str) -> None:
    issued = broker.new_token(role=role, code=True)
    tcp = broker.overview()["daemon"]["tcp"]
    invitation = read_invitation(f"{_HOST}:{port}/{tcp['pin']}/{issued['code']}")
    home = Home(str(folder))
    home.make()
    with Client.invited(home, invitation) as stranger:
        identity = worker_id(home), home_instance(home)
        told = stranger.join(invitation.code, name, *identity)
    known = JoinedBroker(
        pin=invitation.pin,
        token=told["token"],
        role=told["role"],
        name=told["name"],
        addresses=(invitation.address,),
        cluster=told["cluster"],
        joined_at="",
    )
    Credentials.load(home).add(known)


def _await_worker(broker: Client, name: str) -> None:
    events = broker.beside().follow_events(after=0, kind="worker-connected")
    while next(events)["data"]["name"] != name:
        pass


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((_HOST, 0))
        port: int = one.getsockname()[1]
    return port
