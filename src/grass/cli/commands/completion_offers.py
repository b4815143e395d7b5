"""The words that a shell offers at one place, read from the daemon when Tab is pressed.

`grass completion --offer KIND WORD` prints them, each with a few words about it after a
tab, and nothing where no daemon runs. What begins with `@`, `state:` or `queue:` is
completed as such a selector; otherwise ids are offered, only those of jobs in the
states that the command is for.
"""

from __future__ import annotations

from grass.cli.printing.streams import safe
from grass.cli.printing.wording import ENDED_STATES, UNFINISHED_STATES
from grass.client.client import Client
from grass.client.connection import Broken
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grass.client.json_codec import Document

JOBS, QUEUES, WORKERS, UNITS = "jobs", "queues", "workers", "units"
_MOST = 200
_SELECTORS = ("last", "all", "@", "name~", "queue:", "state:")


def offers(kind: str, word: str) -> list[str]:
    """Return what may stand where a word is begun; `kind` may name states of jobs."""
    kind, _, states = kind.partition("=")
    if kind == JOBS and word.startswith("state:"):
        known = states.split(",") if states else [*UNFINISHED_STATES, *ENDED_STATES]
        return [f"state:{state}" for state in known]
    try:
        with Client() as client:
            return _read(client, kind, states.split(",") if states else [], word)
    except (GrassError, Broken, OSError):
        return []


def _read(client: Client, kind: str, states: Sequence[str], word: str) -> list[str]:
    overview = client.overview()
    if kind == QUEUES:
        return [queue["name"] for queue in overview["queues"]]
    if kind == WORKERS:
        return [worker["name"] for worker in overview["workers"]]
    if kind == UNITS:
        return _units(overview["workers"])
    if word.startswith("queue:"):
        return [f"queue:{queue['name']}" for queue in overview["queues"]]
    jobs = [one for one in overview["jobs"] if not states or one["state"] in states]
    if not jobs and states:
        # The overview shows a few jobs of each kind only.
        found = client.jobs(states=states)
        jobs = [job for job, _ in zip(found, range(_MOST), strict=False)]
    if word.startswith("@"):
        return list(dict.fromkeys(f"@{job['project']}" for job in jobs))
    return [*map(_job, jobs), *(_SELECTORS if jobs else ())]


def _job(job: Document) -> str:
    return f"{job['id']}\t{safe(job['name'])}, {job['state']}"


def _units(workers: Iterable[Document]) -> list[str]:
    units = {
        f"{kind}:{unit}": None
        for worker in workers
        for kind, named in worker["capacity"].items()
        for unit in named
    }
    return list(units)
