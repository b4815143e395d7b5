"""One round of HyperQueue's automatic allocation on a Slurm.

`python -m benchmarks.hyperqueue_allocation FOLDER JOBS WORKERS CORES COMMAND...`, run
by the Python of the peers' own environment, prints what `hyperqueue_round` does.

HyperQueue's own are the server with its automatic allocation, all intervals of which
are left as they are; the script that it gives to `sbatch`; the scheduling of tasks; and
the workers. Ours are two pieces of `hq`, which the package for Python does not have:
the message that `hq alloc add` would send, which is written here, and the start of the
worker in an allocation, see `hyperqueue_worker`. The queue is that of

    hq alloc add slurm --backlog=WORKERS --max-worker-count=WORKERS --cpus=CORES
    --time-limit=30m --worker-wrap-cmd=... -- --cpus-per-task=CORES

Without `--cpus` and with the usual backlog of one, its workers would come one by one.
A server of the package has no key, so that messages are neither signed nor encrypted:
this must run in a network of its own, see `peers.own_network`.
"""

import json
import random
import shlex
import socket
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path

# mypy: disable-error-code="import-not-found,import-untyped"
from hyperqueue import LocalCluster
from hyperqueue.ffi import ffi

from benchmarks.hyperqueue_round import run_tasks

_TICK_S = 5.0
"""How often HyperQueue asks for allocations, unless it is told otherwise."""
_TIME_S = 30 * 60
_WORKER = Path(__file__).with_name("hyperqueue_worker.py")


def main(folder: Path, jobs: int, workers: int, cores: int, command: list[str]) -> None:
    """Run the tasks in allocations that are yet to be made; print how long it took."""
    with LocalCluster(server_dir=str(folder / "server")) as cluster:
        _add_queue(folder / "server", _queue(workers, cores))
        # Its ticks count from its start.
        time.sleep(random.uniform(0, _TICK_S))
        print(run_tasks(cluster.client(), folder, jobs, command))


def _add_queue(server: Path, queue: bytes) -> None:
    record = json.loads((server / "hq-current" / "access.json").read_text())["client"]
    address = (record["host"], record["port"])
    with socket.create_connection(address) as channel:
        # Each side tells the version of the protocol and who it is, then that it
        # agrees to do without a key.
        _called(channel, _number(0) + _text("hq-client") + _NO_KEY)
        _called(channel, _NO_KEY)
        reply = _called(channel, _ADD_QUEUE + queue + _WITHOUT_TRIAL)
    if not reply.startswith(_QUEUE_CREATED):
        raise RuntimeError(f"HyperQueue does not add the queue: {reply!r}")


def _called(channel: socket.socket, message: bytes) -> bytes:
    """Send a message; return the next one of the other side."""
    channel.sendall(_number(len(message)) + message)
    (length,) = struct.unpack("<I", channel.recv(4, socket.MSG_WAITALL))
    return channel.recv(length, socket.MSG_WAITALL)


def _queue(workers: int, cores: int) -> bytes:
    """Write the parameters of a queue in the order in which HyperQueue has them."""
    python = [sys.executable, "-I", "-S"]
    wrap = shlex.join([*python, str(_WORKER), ffi.__file__])
    options = ["--cpus", str(cores), "--on-server-lost", "finish-running"]
    return b"".join(
        [
            _SLURM,
            _number(1),  # workers in an allocation
            _number(workers),  # allocations that may wait
            _duration(_TIME_S),
            _NONE,  # name
            _some(_number(workers)),  # workers at most
            struct.pack("<f", 0.0),  # utilization at least
            _list(map(_text, [f"--cpus-per-task={cores}"])),
            _NONE,  # command before a worker
            _NONE,  # command after it
            _some(_text(wrap)),
            _some(_list([_text("cpus") + _cores(cores)]) + _list([])),
            _list(map(_text, options)),
            _NONE,  # time after which an idle worker ends
        ]
    )


def _number(value: int) -> bytes:
    return struct.pack("<I", value)


def _list(items: Iterable[bytes]) -> bytes:
    each = list(items)
    return struct.pack("<Q", len(each)) + b"".join(each)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _duration(seconds: int) -> bytes:
    return struct.pack("<QI", seconds, 0)


def _some(value: bytes) -> bytes:
    return b"\1" + value


def _cores(count: int) -> bytes:
    """Write the range of all cores, both ends included."""
    return _number(2) + _number(0) + _number(count - 1)


_NONE = b"\0"
_WITHOUT_TRIAL = b"\0"
# Variants are numbers: of a message, of its request or response, and of that one's.
_NO_KEY = _number(0)
_SLURM = _number(1)
_ADD_QUEUE = _number(9) + _number(3)
_QUEUE_CREATED = _number(9) + _number(0) + _number(0)


if __name__ == "__main__":
    where, *numbers = sys.argv[1:5]
    tasks, most, cpus = map(int, numbers)
    main(Path(where), tasks, most, cpus, sys.argv[5:])
