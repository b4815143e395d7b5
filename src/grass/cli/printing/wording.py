"""Short texts about a job: its state, units, request, and how it ended."""

from grass.cli.printing.quantities import in_local_time
from grass.client.connection import THIS_DAEMON, last_answer
from grass.client.json_codec import Document
from grass.model.amount_text import BYTE_KINDS, WHOLE, amount_text

UNSTARTED = ("held", "waiting", "queued")
UNFINISHED_STATES = (*UNSTARTED, "running")
ENDED_STATES = ("succeeded", "failed", "cancelled", "lost")
"""The states of jobs; to import the lifecycle itself would cost every command time."""

IN_ORDER = (
    *("running", "queued", "waiting", "held"),
    *("succeeded", "failed", "lost", "cancelled"),
)
"""All states, in the order in which they are counted."""

TINTS = {
    "running": "green",
    "queued": "cyan",
    "waiting": "cyan",
    "held": "yellow",
    "unreachable": "yellow",
    "stopping": "yellow",
    "suspended": "yellow",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
    "succeeded": "dim",
    "declared": "cyan",
}
ENDS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "was cancelled",
    "lost": "was lost",
}
_FLAGS = ("stopping", "suspended")
"""Flags that are shown instead of the state, the first one before the others."""


def state(job: Document) -> str:
    """Return a job's state, or the flags that are shown instead."""
    return ", ".join(telling(job)) or str(job["state"])


def telling(job: Document) -> list[str]:
    """Return the flags that are shown instead of the state."""
    asked = [one for one in _FLAGS if one in job["flags"]]
    unreachable = ["unreachable"] if "unreachable" in job["flags"] else []
    return unreachable + asked[:1]


def label(job: Document) -> str:
    """Write a job's id, with its index if it is a member of an array."""
    index = job.get("index")
    return str(job["id"]) if index is None else f"{job['id']} [{index}]"


def number(amount: float, kind: str = "") -> str:
    """Write an amount of a kind, a number of the API, as a broker writes it."""
    return amount_text(round(amount * WHOLE), kind)


def units(allocation: Document) -> str:
    """Write an allocation: `gpu:0,1(0.5) cpu:4 ram:3.5G`."""
    return " ".join(
        f"{kind}:{_units_of(kind, of_kind)}" for kind, of_kind in allocation.items()
    )


def asked(request: Document) -> str:
    """Write a request: `gpu 0.5, ram 8G`."""
    return ", ".join(
        f"{kind} {number(amount, kind) if isinstance(amount, (int, float)) else amount}"
        for kind, amount in request.items()
    )


def connection_state(worker: Document) -> str:
    """Return `connected`, `unreachable` or `off` for a worker."""
    if worker["connected"]:
        return "connected"
    # Only the worker that is, or was, part of the broker's own daemon has no address.
    return "off" if worker.get("address", "unknown") is None else "unreachable"


def ending(job: Document) -> str:
    """Write how a job or an attempt ended: `exit 3`, `killed by SIGTERM`."""
    if job["signal"] is not None:
        from grass.model.jobs.endings import killed

        # Every signal that a worker sends has a reason: cancelled, time limit.
        by_grass = bool(job.get("reason")) or job.get("state") == "cancelled"
        return killed(job["signal"], by_grass=by_grass)
    return "" if job["exit_code"] is None else f"exit {job['exit_code']}"


def reason(job: Document) -> str:
    """Write why a job waits, or why it failed."""
    if job["reason"]:
        return in_local_time(job["reason"])
    return ending(job) if job["state"] == "failed" else ""


def ended(job: Document, after: str = "") -> str:
    """Write how a job ended: `job 7 failed: exit 3`, `job 8 was cancelled`."""
    why = reason(job)
    text = f"job {job['id']} {ENDS[job['state']]}{after}"
    return f"{text}: {why}" if why not in ("", job["state"]) else text


def owner(actor: str) -> str:
    """Write who owns or did something: `uid:1000` by the name of the account.

    The user ids of a broker on another machine are that machine's, and are left alone.
    """
    user = actor.removeprefix("uid:")
    if user == actor or not user.isdecimal() or _speaks_to_another_machine():
        return actor.replace("token:", "token ", 1)
    from pwd import getpwuid

    try:
        return getpwuid(int(user)).pw_name
    except (KeyError, OverflowError):
        return actor


def _speaks_to_another_machine() -> bool:
    return last_answer.peer not in ("", THIS_DAEMON)


def _units_of(kind: str, named: Document) -> str:
    """Write the units of one kind; of the machine's memory only how much."""
    if kind == "ram" and list(named) == ["0"]:
        return number(named["0"], kind)
    return ",".join(
        # A share of memory is a size, so 1 GiB of it is not the whole unit.
        name if amount == 1 and kind not in BYTE_KINDS else f"{name}({text})"
        for name, amount in named.items()
        for text in [number(amount, kind)]
    )
