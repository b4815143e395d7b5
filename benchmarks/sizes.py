"""How much is run: the full benchmark, or a quick look at whether it works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of jobs, pairs and turns."""

    throughput_jobs: int = 5_000
    spooler_jobs: int = 500
    gap_jobs: int = 300
    command_pairs: int = 30
    bulk_jobs: int = 10_000
    short_line: int = 100
    long_line: int = 100_000
    placement_turns: int = 5_000
    backlog_jobs: int = 2_000
    memory_jobs: int = 20
    few_jobs: int = 10_000
    many_jobs: int = 300_000
    remote_jobs: int = 5_000
    pool_jobs: int = 500
    pool_starts: int = 20
    fleet: int = 200
    output_bytes: int = 1 << 30
    output_jobs: int = 1_000
    queues: int = 1_000
    queue_jobs: int = 2_000
    short_queue: int = 1_000
    long_queue: int = 1_000_000
    looks: int = 50
    shown_jobs: int = 100_000
    measured_jobs: int = 64
    measured_s: float = 30.0
    followed_jobs: int = 5_000
    history: int = 100_000
    listed: int = 5_000
    log_bytes: int = 200_000_000
    written_s: int = 10
    tasks: int = 20_000
    task_arrays: int = 10
    pending_tasks: int = 100_000
    task_jobs: int = 5_000
    task_calls: int = 200


FULL = Sizes()
QUICK = Sizes(
    tasks=1_000,
    task_arrays=2,
    pending_tasks=5_000,
    task_jobs=300,
    task_calls=20,
    followed_jobs=500,
    history=4_000,
    listed=2_000,
    log_bytes=2_000_000,
    written_s=1,
    measured_jobs=8,
    measured_s=3.0,
    throughput_jobs=300,
    spooler_jobs=50,
    gap_jobs=40,
    command_pairs=5,
    bulk_jobs=1_000,
    long_line=5_000,
    placement_turns=1_000,
    backlog_jobs=200,
    few_jobs=1_000,
    many_jobs=10_000,
    remote_jobs=300,
    pool_jobs=60,
    pool_starts=3,
    fleet=20,
    output_bytes=1 << 26,
    output_jobs=200,
    queues=50,
    queue_jobs=200,
    long_queue=20_000,
    looks=5,
    shown_jobs=4_000,
)
