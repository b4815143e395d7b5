"""One round of HyperQueue; run by the Python of the peers' own environment.

`python hyperqueue_round.py FOLDER JOBS CORES COMMAND...` prints the seconds from the
submit until the last task's output file was made, and when that was. Server and worker
are HyperQueue's own local cluster, which listens on every address: this must run in a
network namespace of its own, where loopback is the only one.
"""

import sys
import time
from pathlib import Path

# mypy: disable-error-code="import-not-found,import-untyped"
from hyperqueue import Client, Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def main(folder: Path, jobs: int, cores: int, command: list[str]) -> None:
    """Run the tasks on a cluster of their own and print how long they took."""
    config = WorkerConfig(cores=cores)
    with LocalCluster(
        server_dir=str(folder / "server"), worker_config=config
    ) as cluster:
        print(run_tasks(cluster.client(), folder, jobs, command))


def run_tasks(client: Client, folder: Path, jobs: int, command: list[str]) -> str:
    """Run a command so many times; tell how long it took, and when the last began."""
    output = folder / "output"
    output.mkdir()
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
    return f"elapsed {max(made) - started} at {max(made)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
