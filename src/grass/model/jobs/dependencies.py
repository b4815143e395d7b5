"""Dependencies: a job that waits for others to end.

`7` or `7:succeeded` waits until job 7 has succeeded, `7:failed` until it has failed,
`7:any` until it has ended in any way; `3-9` names each of a range. When a dependency
can no longer be met, the job is cancelled with that reason.

Dependencies are kept as ranges, which are short for arrays, however large. Those of one
job are sorted, and ranges with the same need do not overlap.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from grass.errors import UsageError
from grass.model import selectors
from grass.model.id_runs import merged_runs
from grass.model.jobs.lifecycle import ENDED, JobState

NEEDS = ("succeeded", "failed", "any")
MAX_DEPENDENCIES = 100_000
VERBS = {"any": "end", "succeeded": "succeed", "failed": "fail"}
"""What a job must do to meet each need."""
HAS_ENDED = {
    JobState.SUCCEEDED: "has succeeded",
    JobState.FAILED: "has failed",
    JobState.CANCELLED: "was cancelled",
    JobState.LOST: "is lost",
}


class After(NamedTuple):
    """A range of jobs that another waits for, and how each must end."""

    need: str
    first: int
    last: int

    def __str__(self) -> str:
        """Return the text of the dependency."""
        jobs = self.first if self.first == self.last else f"{self.first}-{self.last}"
        return f"{jobs}:{self.need}"

    @property
    def jobs(self) -> range:
        """The jobs of the range."""
        return range(self.first, self.last + 1)


def read(texts: Iterable[str], last_job: int) -> tuple[After, ...]:
    """Read dependencies; `last` means the newest job."""
    found: dict[str, list[tuple[int, int]]] = {}
    named = 0
    for text in texts:
        for part in text.split(","):
            need, first, last = _read_one(part.strip(), last_job)
            # Repeated ids count each time, which bounds the work for a short text.
            named += last - first + 1
            if named > MAX_DEPENDENCIES:
                raise UsageError(f"a job waits for at most {MAX_DEPENDENCIES} others")
            found.setdefault(need, []).append((first, last))
    return tuple(
        After(need, first, last)
        for need in sorted(found)
        for first, last in merged_runs(found[need])
    )


def runs_of(after: Iterable[After]) -> list[tuple[int, int]]:
    """Return the jobs that dependencies name, as ranges that do not overlap."""
    return merged_runs((one.first, one.last) for one in after)


def needs_of(after: tuple[After, ...], job: int) -> list[str]:
    """Return how one job must end."""
    needs = []
    for need in NEEDS:
        place = bisect_right(after, (need, job, selectors.LARGEST_ID)) - 1
        if place >= 0 and after[place].need == need and job <= after[place].last:
            needs.append(need)
    return needs


def met(need: str, state: JobState) -> bool | None:
    """Return whether a dependency is met; None: the job has not ended."""
    if state not in ENDED:
        return None
    return need == "any" or state.value == need


def _read_one(text: str, last_job: int) -> tuple[str, int, int]:
    which, colon, need = text.partition(":")
    need = need if colon else "succeeded"
    if need not in NEEDS:
        raise UsageError(
            f"--after `{text}`: a job ends as {', '.join(NEEDS)}", "write 7:failed"
        )
    return need, *_range(which, text, last_job)


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
