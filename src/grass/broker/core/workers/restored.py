"""After a restore, jobs of the backup wait until all workers have reported.

A job that waited when the backup was made may run on any worker by now. So nothing is
placed while such a job is queued, until each worker of the database has reported what
it runs, or was forgotten. Workers of pools are not waited for.
"""

from grass.broker.core.state import State
from grass.model.restored import RESTORED_LAST_JOB

MAX_NAMED = 5
"""The workers that one reason names."""


def follow(state: State) -> None:
    """Remove the mark of the restore when all have reported; else keep jobs waiting."""
    if not state.restored_last_job:
        return
    if not state.unreported():
        state.restored_last_job = 0
        state.batch.changes.meta[RESTORED_LAST_JOB] = "0"
        state.batch.urgent = True
    state.daemon.apply_pause(state)


def reason(names: list[str]) -> str:
    """Name the workers that are waited for, and what to do if one never comes."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    named = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    return (
        f"the database was restored, and jobs of the backup may run on {named}{more}:"
        " nothing starts until it reports, or"
        f" `grass workers forget {names[0]}`"
    )
