"""One round of HyperQueue; run by the Python of the peers' own environment.

`python hyperqueue_round.py FOLDER JOBS CORES COMMAND...` prints the seconds from the
submit until the last task's output file was made, and when that was. Server and worker
are HyperQueue's own local cluster, which listens on every address: this must run in a
network namespace of its own, where loopback is the only one.
"""

import fcntl
import socket
import struct
import sys
import time
from pathlib import Path

# mypy: disable-error-code="import-not-found,import-untyped"
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

_SET_FLAGS = 0x8914
_UP_AND_RUNNING = 0x41


def main(folder: Path, jobs: int, cores: int, command: list[str]) -> None:
    """Run the tasks and print how long they took."""
    _raise_loopback()
    output = folder / "output"
    output.mkdir()
    config = WorkerConfig(cores=cores)
    with LocalCluster(
        server_dir=str(folder / "server"), worker_config=config
    ) as cluster:
        client = cluster.client()
        started = time.time()
        job = Job(default_workdir=folder)
        for number in range(jobs):
            job.program(command, stdout=output / f"{number}.log", stderr=None)
        client.wait_for_jobs([client.submit(job)])
        # Its own wait looks once a second; the last file is made as the last task
        # starts, which flatters it by the length of that one task.
        made = [entry.stat().st_mtime for entry in output.iterdir()]
    if len(made) != jobs:
        raise RuntimeError(f"{len(made)} output files for {jobs} tasks")
    print(f"elapsed {max(made) - started} at {max(made)}")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        interface = struct.pack("16sh14x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(channel, _SET_FLAGS, interface)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
