"""`python -m benchmarks [--rounds N] [--only NAME] [--quick]`."""

import argparse
from collections.abc import Callable

from benchmarks.backlog import backlog
from benchmarks.bulk import bulk
from benchmarks.command_line import command_line, imports
from benchmarks.failover import failover
from benchmarks.figures import Benchmark
from benchmarks.fleet import fleet
from benchmarks.followers import followers
from benchmarks.following import following
from benchmarks.gap import gap
from benchmarks.history import history
from benchmarks.looks import looks
from benchmarks.memory import memory
from benchmarks.million import million
from benchmarks.page import page
from benchmarks.placement import placement
from benchmarks.pools import pools
from benchmarks.postgres import postgres
from benchmarks.queues import queues
from benchmarks.remote import remote
from benchmarks.report import report
from benchmarks.rounds import run_rounds
from benchmarks.sampling import sampling
from benchmarks.scratch import HERE
from benchmarks.sizes import FULL, QUICK, Sizes
from benchmarks.task_jobs import (
    runner_memory,
    task_calls,
    task_job_arrays,
    task_jobs,
)
from benchmarks.tasks import task_arrays, task_memory, tasks
from benchmarks.throughput import throughput
from benchmarks.verbs import verbs

BENCHMARKS: dict[str, Callable[[Sizes], Benchmark]] = {
    "throughput": throughput,
    "gap": gap,
    "cli": command_line,
    "imports": imports,
    "bulk": bulk,
    "placement": placement,
    "backlog": backlog,
    "memory": memory,
    "verbs": verbs,
    "remote": remote,
    "fleet": fleet,
    "following": following,
    "queues": queues,
    "million": million,
    "looks": looks,
    "sampling": sampling,
    "followers": followers,
    "history": history,
    "postgres": postgres,
    "failover": failover,
    "page": page,
    "pools": pools,
    "tasks": tasks,
    "task-arrays": task_arrays,
    "task-memory": task_memory,
    "task-jobs": task_jobs,
    "task-calls": task_calls,
    "task-job-arrays": task_job_arrays,
    "runner-memory": runner_memory,
}


def main() -> None:
    """Run what was asked for, print the table and write it to a file."""
    options = _options()
    names = options.only or list(BENCHMARKS)
    sizes = QUICK if options.quick else FULL
    benchmarks = [BENCHMARKS[name](sizes) for name in dict.fromkeys(names)]
    samples = run_rounds(benchmarks, options.rounds)
    text = report(benchmarks, samples, options.rounds)
    print(text, end="")
    name = "-".join(options.only or ["all"]) + ("-quick" if options.quick else "")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.md").write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", allow_abbrev=False)
    parser.add_argument("--rounds", type=_positive, default=5, metavar="N")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(BENCHMARKS),
        metavar="NAME",
        help=f"may be given again; one of {', '.join(BENCHMARKS)}",
    )
    parser.add_argument("--quick", action="store_true", help="fewer jobs, no figures")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one round")
    return number


if __name__ == "__main__":
    main()
