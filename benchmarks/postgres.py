"""The same jobs with the store in PostgreSQL and in SQLite, both of them syncing.

The server runs on the same machine and takes its part of the processors.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.postgres import PostgresServer, missing_program

from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.fresh_home import ONE_SLOT, fresh_home
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_POSTGRES, _SQLITE = "PostgreSQL", "SQLite"
_BULK, _RUN = "in one call", "run"
_VARIABLE = "GRASS_STORE_URL"
_SETTINGS = "-c listen_addresses= -c shared_buffers=128MB"


def postgres(sizes: Sizes) -> Benchmark:
    """Return both stores, or none where there is no server."""
    missing = missing_program()
    if missing is not None:
        return Benchmark("postgres", [], [], "jobs/s", [f"left out: no {missing}"])
    contenders: list[Contender] = [
        lambda: _measured(_SQLITE, sizes),
        lambda: _on_server(lambda: _measured(_POSTGRES, sizes)),
    ]
    return Benchmark("postgres", contenders, _claims(sizes), "jobs/s")


def _claims(sizes: Sizes) -> list[Claim]:
    return [
        Claim(
            f"{sizes.bulk_jobs:,} jobs enqueued in one call, PostgreSQL against SQLite",
            lambda f: f[f"{_POSTGRES}, {_BULK}"] / f[f"{_SQLITE}, {_BULK}"],
            bar=0.5,
            goal=0.8,
            unit="x",
        ),
        Claim(
            "`true` jobs/s, PostgreSQL against SQLite",
            lambda f: f[f"{_POSTGRES}, {_RUN}"] / f[f"{_SQLITE}, {_RUN}"],
            bar=0.6,
            goal=0.9,
            unit="x",
        ),
    ]


def _measured(store: str, sizes: Sizes) -> Figures:
    with fresh_home(slots=2) as fresh:
        started = time.perf_counter()
        fresh.run(sizes.throughput_jobs, ["true"])
        run_s = time.perf_counter() - started
        fresh.client.pause()
        commands = [["true"]] * sizes.bulk_jobs
        started = time.perf_counter()
        fresh.client.enqueue_many(commands, **ONE_SLOT)
        bulk_s = time.perf_counter() - started
    return {
        f"{store}, {_RUN}": sizes.throughput_jobs / run_s,
        f"{store}, {_BULK}": sizes.bulk_jobs / bulk_s,
    }


def _on_server(measure: Callable[[], Figures]) -> Figures:
    with syncing_server() as url:
        os.environ[_VARIABLE] = url
        try:
            return measure()
        finally:
            del os.environ[_VARIABLE]


@contextmanager
def syncing_server() -> Iterator[str]:
    """Run a server on the disk that homes are on."""
    with scratch_folder() as folder:
        folder.chmod(0o755)
        server = PostgresServer(folder / "server", _SETTINGS)
        server.create()
        server.start()
        try:
            server.execute("CREATE DATABASE grass")
            yield server.url("grass")
        finally:
            server.stop()
            shutil.rmtree(server.folder)
