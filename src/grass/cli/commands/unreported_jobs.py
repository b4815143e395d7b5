"""Warnings about jobs that the next daemon does not report to their broker.

A daemon may change its broker while jobs of the earlier one run. They go on under the
keeper, which knows them by their cluster, also without a daemon. Their broker is told
how they ended when this machine works for it again. For this machine's own queue the
daemon that still runs is asked, which also knows the jobs that have not started.
"""

from __future__ import annotations

from collections import Counter

from grass.cli.parsing.hosting_options import remote_broker_of
from grass.cli.printing.streams import counted, warn
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.client import Client
from grass.client.credentials import Credentials
from grass.config import LOCAL, home
from grass.errors import NoAnswer, NoDaemon
from grass.keeper.launch import state_of
from grass.keeper.protocol import cluster_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def warn_of_unreported(words: Sequence[str]) -> None:
    """Warn of jobs here that a daemon with these options will not report."""
    works_for = remote_broker_of(words)
    running = _running()
    if works_for is None and not running:
        return
    from grass.daemon.database.database_loss import own_cluster

    own = running.pop(own_cluster(home()) or "", 0)
    if works_for is not None:
        _warn_of_own(_unfinished_in_own_queue() or own)
        running.pop(works_for.known.cluster, None)
    names = {one.cluster: one.place for one in Credentials.load(home()).all}
    for cluster, jobs in running.items():
        _warn_of_another(jobs, names.get(cluster))


def _warn_of_own(jobs: int) -> None:
    if jobs:
        are = "is" if jobs == 1 else "are"
        warn(
            f"{counted(jobs, 'unfinished job')} of this machine's own queue {are} out"
            " of reach while it works for another; `grass leave`, then `grass restart`"
            " brings the queue back"
        )


def _warn_of_another(jobs: int, place: str | None) -> None:
    """Warn of another broker's jobs; a broker that was left has no address here."""
    go_on, them = "go on here and hold their units", "them"
    if jobs == 1:
        go_on, them = "goes on here and holds its units", "it"
    unfinished = counted(jobs, "unfinished job")
    if place is None:
        warn(f"{unfinished} of another broker {go_on}")
        return
    warn(
        f"{unfinished} of the broker at {place} {go_on};"
        f" that broker hears of {them} when this machine works for it again"
    )


def _unfinished_in_own_queue() -> int:
    """Count the unfinished jobs of the running daemon, if it has a queue."""
    try:
        with Client(may_start=False, broker=LOCAL) as client:
            daemon = client.overview()["daemon"]
    except NoAnswer:
        raise
    except NoDaemon:
        return 0
    if daemon.get("broker"):
        return 0
    return sum(daemon["jobs"].get(state, 0) for state in UNFINISHED_STATES)


def _running() -> Counter[str]:
    """Return how many attempts of each cluster the keeper has that have not ended."""
    hello = state_of(home().keeper)
    known = [] if hello is None else hello.attempts
    return Counter(cluster_of(one.id) for one in known if one.state != "exited")
