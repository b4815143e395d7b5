"""Machines by address: brokers that were joined, and a task host at each of them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import anyio
import anyio.to_thread

from grass.client.client import Client
from grass.client.connection import Broken
from grass.config import LOCAL
from grass.errors import GrassError, Untrusted, UsageError
from grass.model.amounts import decimal_number
from grass.resource import capacity_of, counted
from grass.tasks.machines.host_children import SentFunctions
from grass.tasks.machines.task_host import PATIENCE_S, TaskHost

MODULE = "grass.tasks.host"
"""The program of a task host."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.resource import Resource
    from grass.tasks.session import Session


def check_addresses(addresses: Sequence[str], rpw: Resource | None) -> None:
    """Refuse addresses that are none, or that nothing is asked of."""
    if isinstance(addresses, str):
        raise UsageError("addresses are a list", f'write ["{addresses}"]')
    for address in addresses:
        if address == LOCAL:
            raise UsageError(
                f"`{address}` is no address of a broker: write HOST:PORT",
                "this machine takes part by itself",
            )
    if addresses and (rpw is None or not counted(rpw)):
        raise UsageError(
            "`rpw` says what each machine gives, and is needed with addresses",
            "for example Node(N=16, M=28)",
        )


async def open_hosts(
    session: Session, addresses: Sequence[str], rpw: Resource, backend: str
) -> None:
    """Have a task host at each address while a session lasts.

    Raises what keeps a host from being enqueued. None is waited for.
    """
    clients: list[tuple[str, Client, int]] = []
    try:
        for address in addresses:
            found = await anyio.to_thread.run_sync(_enqueued, address, rpw, backend)
            clients.append(found)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_cancel_all, clients)
        raise
    functions, names = SentFunctions(), set[str]()
    for address, client, job in clients:
        name = f"{address} (job {job})" if address in names else address
        names.add(name)
        session.expect_machine(name, capacity_of(rpw))
        host = TaskHost(name, client, job, session, functions)
        session.start_soon(host.run)
        session.start_soon(host.tell_why)
        session.on_leave.append(host.leave)


def _enqueued(address: str, rpw: Resource, backend: str) -> tuple[str, Client, int]:
    """Enqueue a host at the broker of an address; return its client and job."""
    client = Client(broker=address, may_start=False)
    words = ["python", "-m", MODULE, backend, f"{PATIENCE_S:g}"]
    require = {kind: decimal_number(amount) for kind, amount in counted(rpw)}
    job = None
    try:
        job = client.enqueue(words, name=_name(), require=require, stdin="channel")
    except Untrusted as error:
        raise Untrusted(
            f"{error.message}, so no functions can run there", error.hint
        ) from None
    except Broken as error:
        raise UsageError(f"the broker at {address} went away: {error}") from None
    finally:
        if job is None:
            client.close()
    return address, client, job


def _name() -> str:
    """Return the name of a task host: after the program that uses it."""
    script = os.path.basename(sys.argv[0] or "") or "python"
    return f"tasks of {script}"


def _cancel_all(clients: list[tuple[str, Client, int]]) -> None:
    for _, client, job in clients:
        with suppress(GrassError, Broken, OSError):
            client.cancel([str(job)])
        client.close()
