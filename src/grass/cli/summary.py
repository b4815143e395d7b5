"""The rows of `show`: workers, queues and jobs in the fewest words that tell all."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from grass.cli.durations import brief, size_text

Document = Mapping[str, Any]

WORKERS = ("WORKER", "KIND", "ORIGIN", "FREE/CAPACITY OF EACH UNIT")
QUEUES = ("QUEUE", "RUNNING", "WAITING", "LIMITS", "COMMAND")
JOBS = ("ID", "STATE", "QUEUE", "NAME", "UNITS", "TIME", "COMMAND OR REASON")
TINTS = {
    "running": "green",
    "stopping": "yellow",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
    "succeeded": "grey",
    "declared": "cyan",
}
_ENDED = ("succeeded", "failed", "cancelled", "lost")


def worker_rows(workers: Iterable[Document]) -> list[list[str]]:
    """Give a row to each worker, kind and origin."""
    rows = []
    for worker in workers:
        name = worker["name"] if worker["connected"] else f"{worker['name']} (gone)"
        for kind, units in worker["capacity"].items():
            origins = worker["origin"].get(kind, {})
            for origin in dict.fromkeys(origins.get(unit, "") for unit in units):
                chosen = [unit for unit in units if origins.get(unit, "") == origin]
                free = worker["free"].get(kind, {})
                shares = {
                    unit: f"{number(free.get(unit, 0))}/{number(units[unit])}"
                    for unit in chosen
                }
                rows.append([name, kind, origin, "  ".join(folded(shares))])
                name = ""
    return rows


def folded(shares: Mapping[str, str]) -> list[str]:
    """Write units, with a run of equal ones as a range: `0-15: 1/1`."""
    runs: list[tuple[str, str, str]] = []
    for unit, share in shares.items():
        if runs and runs[-1][2] == share and _follows(runs[-1][1], unit):
            runs[-1] = (runs[-1][0], unit, share)
        else:
            runs.append((unit, unit, share))
    return [
        f"{first}: {share}" if first == last else f"{first}-{last}: {share}"
        for first, last, share in runs
    ]


def queue_rows(queues: Iterable[Document]) -> list[list[str]]:
    """Give a row to each queue."""
    return [
        [
            queue["name"],
            str(queue["running"]),
            str(queue["waiting"]),
            _limits(queue),
            next((_line(view["command"]) for view in queue["views"].values()), ""),
        ]
        for queue in queues
    ]


def job_rows(jobs: Iterable[Document], now: datetime) -> list[list[str]]:
    """Give a row to each job."""
    return [
        [
            str(job["id"]),
            "stopping" if "stopping" in job["flags"] else job["state"],
            job["queue"],
            job["name"],
            _units(job["allocation"]),
            _time(job, now),
            _detail(job),
        ]
        for job in jobs
    ]


def summary(daemon: Document) -> str:
    """Give all jobs by state, and what their output takes, in one line."""
    counts = [f"{count} {state}" for state, count in daemon["jobs"].items() if count]
    text = ", ".join(counts) or "no jobs yet"
    paused = "; paused, `grass resume` starts jobs again" if daemon["paused"] else ""
    return f"{text}; output takes {size_text(daemon['output_bytes'])}{paused}"


def number(amount: float) -> str:
    """Write an amount in the fewest digits that matter."""
    return f"{amount:.4f}".rstrip("0").rstrip(".")


def _follows(one: str, other: str) -> bool:
    return one.isdecimal() and other.isdecimal() and int(other) == int(one) + 1


def _limits(queue: Document) -> str:
    limits = ["paused"] if queue["paused"] else []
    if queue["max_running"] is not None:
        limits.append(f"max {queue['max_running']}")
    for view in queue["views"].values():
        limits += [
            f"{kind} {number(sum(units.values()))}"
            for kind, units in view["capacity"].items()
        ]
    return ", ".join(limits)


def _units(allocation: Document) -> str:
    return " ".join(
        f"{kind}:" + ",".join(_unit(name, amount) for name, amount in units.items())
        for kind, units in allocation.items()
    )


def _unit(name: str, amount: float) -> str:
    return name if amount == 1 else f"{name}({number(amount)})"


def _time(job: Document, now: datetime) -> str:
    if job["state"] in _ENDED:
        return f"{brief(_age(job['finished_at'], now))} ago"
    return brief(_age(job["started_at"] or job["created_at"], now))


def _age(text: str | None, now: datetime) -> float:
    return (now - datetime.fromisoformat(text)).total_seconds() if text else 0


def _detail(job: Document) -> str:
    command = _line(job["command"])
    if job["state"] == "failed" and job["signal"] is not None:
        return f"signal {job['signal']}: {command}"
    if job["state"] == "failed" and job["exit_code"] is not None:
        return f"exit {job['exit_code']}: {command}"
    return f"{job['reason']}: {command}" if job["reason"] else command


def _line(words: Sequence[str]) -> str:
    return " ".join(words)


def utc_now() -> datetime:
    """Return the time that ages are counted from."""
    return datetime.now(UTC)
