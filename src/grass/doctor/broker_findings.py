"""The daemon here, the way to the broker, the workers, and the clocks."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import grass
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.config import LOCAL, Home
from grass.daemon.hosting import RemoteBroker
from grass.doctor.finding import Finding, note, ok, wrong
from grass.errors import GrassError, NoDaemon

SLOW_S = 1.0
MAX_NAMED = 5


def broker_findings(home: Home, works_for: RemoteBroker | None) -> Iterator[Finding]:
    """Look for the daemon and the broker; neither is started."""
    try:
        with Client(home, may_start=False, broker=LOCAL) as client:
            daemon = client.overview()["daemon"]
    except NoDaemon as error:
        daemon = None
        yield note("daemon", error.message, _start(home))
    except GrassError as error:
        daemon = None
        yield wrong("daemon", error.message, error.hint or f"see {home.log}")
    if daemon is not None:
        yield _daemon(daemon)
    if works_for is not None:
        yield from _way(home, works_for)
    elif daemon is not None:
        yield from _workers(home)


def _start(home: Home) -> str:
    stopped = os.path.exists(home.stopped)
    return f"`grass start`{'' if stopped else ', or any command,'} starts it"


def _daemon(daemon: Document) -> Finding:
    text = f"it runs (pid {daemon['pid']}, version {daemon['version']})"
    if daemon["version"] != grass.__version__:
        return wrong(
            "daemon", f"{text}, this is {grass.__version__}", "`grass restart`"
        )
    return ok("daemon", text)


def _way(home: Home, works_for: RemoteBroker) -> Iterator[Finding]:
    """Call the broker of another machine."""
    place = ",".join(map(str, works_for.addresses))
    began_s = time.monotonic()
    try:
        with Client(home, may_start=False, broker=place) as client:
            workers = client.workers()["workers"]
    except GrassError as error:
        fix = error.hint or "see that it runs, and that its port is open"
        yield wrong("broker", f"{place}: {error.message}", fix)
        return
    took_s = time.monotonic() - began_s
    text = f"{place} answers after {1000 * took_s:.0f} ms"
    fix = "the network or the broker is slow"
    yield note("broker", text, fix) if took_s > SLOW_S else ok("broker", text)
    yield from _gpus(workers)
    own = _own_id(home)
    yield from _clocks([one for one in workers if one["id"] == own])


def _workers(home: Home) -> Iterator[Finding]:
    """Look at the workers of the broker here."""
    try:
        with Client(home, may_start=False, broker=LOCAL) as client:
            workers = client.workers()["workers"]
    except GrassError as error:
        yield wrong("workers", error.message, error.hint or f"see {home.log}")
        return
    for worker in workers:
        if not worker["connected"]:
            name = worker["name"]
            fix = f"`grass doctor` there, or `grass workers forget {name}`"
            yield note("workers", f"{name} is not connected", fix)
        elif worker.get("unable"):
            fix = f"`grass doctor` on {worker['name']}"
            yield wrong("workers", f"{worker['name']}: {worker['unable']}", fix)
        yield from _foreign(worker)
        for one in worker.get("held_back") or ():
            text = f"{worker['name']} gets no `{one['jobs']}`: {one['reason']}"
            fix = (
                f"see `grass logs` of one that failed; `grass resume {worker['name']}`"
            )
            yield note("workers", text, f"{fix} tries it again")
    yield from _gpus(workers)
    yield from _clocks(workers)


def _foreign(worker: Document) -> Iterator[Finding]:
    """Look for attempts that run there and that the database knows nothing of."""
    undecided = [one for one in worker.get("foreign") or () if not one["kept"]]
    if undecided:
        names = ", ".join(one["attempt"] for one in undecided[:MAX_NAMED])
        text = f"{worker['name']} runs attempts unknown to the database: {names}"
        yield note("workers", text, "`grass workers foreign` lists them")


def _gpus(workers: list[Document]) -> Iterator[Finding]:
    """Report the faults of the GPUs of all workers, connected or not."""
    for worker in workers:
        for unit, fault in (worker.get("faults") or {}).items():
            fix = f"`nvidia-smi -q` and the kernel's log on {worker['name']} have more"
            if fault["works_since"] is not None:
                fix = f"`grass resume gpu:{unit} --worker {worker['name']}`"
            yield wrong(f"gpu {unit} of {worker['name']}", fault["why"], fix)


def _clocks(workers: list[Document]) -> Iterator[Finding]:
    skewed = [one for one in workers if one["connected"] and one.get("clock_skew_s")]
    for worker in skewed:
        skew_s = worker["clock_skew_s"]
        side = "ahead of" if skew_s > 0 else "behind"
        text = f"that of {worker['name']} is {abs(skew_s):.0f} s {side} the broker's"
        yield wrong(
            "clock", text, "let both keep time, with `timedatectl set-ntp true`"
        )
    if not skewed:
        yield ok("clock", "as the broker's")


def _own_id(home: Home) -> str:
    try:
        return Path(home.worker_id).read_text(errors="replace").strip()
    except OSError:
        return ""
