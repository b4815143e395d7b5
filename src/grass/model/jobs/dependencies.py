"""Dependencies: a job that waits for others to end.

`7` or `7:succeeded` waits until job 7 has succeeded, `7:failed` until it has failed,
`7:any` until it has ended in any way; `3-9` names each of a range. When a dependency
can no longer be met, the job is cancelled with that reason.
"""

from collections.abc import Iterable
from typing import NamedTuple

from grass.errors import UsageError
from grass.model import selectors
from grass.model.jobs.lifecycle import ENDED, JobState

NEEDS = ("succeeded", "failed", "any")
MOST_DEPENDENCIES = 100_000
VERBS = {"any": "end", "succeeded": "succeed", "failed": "fail"}
"""What a job must do to meet each need."""
HAS_ENDED = {
    JobState.SUCCEEDED: "has succeeded",
    JobState.FAILED: "has failed",
    JobState.CANCELLED: "was cancelled",
    JobState.LOST: "is lost",
}


class After(NamedTuple):
    """One job that another waits for, and how it must end."""

    job: int
    need: str

    def __str__(self) -> str:
        """Return the text of the dependency."""
        return f"{self.job}:{self.need}"


def read(texts: Iterable[str], last_job: int) -> tuple[After, ...]:
    """Read dependencies; `last` means the newest job."""
    found: dict[After, None] = {}
    named = 0
    for text in texts:
        for part in text.split(","):
            need, jobs = _read_one(part.strip(), last_job)
            # Repeated ids count each time, which bounds the work for a short text.
            named += len(jobs)
            if named > MOST_DEPENDENCIES:
                raise UsageError(f"a job waits for at most {MOST_DEPENDENCIES} others")
            found.update(dict.fromkeys(After(job, need) for job in jobs))
    return tuple(found)


def met(need: str, state: JobState) -> bool | None:
    """Return whether a dependency is met; None: the job has not ended."""
    if state not in ENDED:
        return None
    return need == "any" or state.value == need


def _read_one(text: str, last_job: int) -> tuple[str, range]:
    which, colon, need = text.partition(":")
    need = need if colon else "succeeded"
    if need not in NEEDS:
        raise UsageError(
            f"--after `{text}`: a job ends as {', '.join(NEEDS)}", "write 7:failed"
        )
    first, last = _range(which, text, last_job)
    return need, range(first, last + 1)


def _range(which: str, text: str, last_job: int) -> tuple[int, int]:
    if which == "last":
        if not last_job:
            raise UsageError(
                "--after `last`: there is no job yet", "name one by its id"
            )
        return last_job, last_job
    if not which[:1].isdecimal():
        raise UsageError(
            f"--after `{text}` names no job", "write 7, 7:any, 3-9 or @project"
        )
    ids = selectors.read(which).ids
    assert ids is not None
    return ids
