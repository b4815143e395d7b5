"""Dependencies that are named by selectors: `--after @project`, `queue:q1:any`.

A selector means the unfinished jobs that match at the time of the call. Ids are left as
they are: the broker reads those.
"""

from collections.abc import Container, Iterable

from grass.api.routes.request_bodies import EnqueueBody
from grass.broker.shell.service import Broker
from grass.errors import GrassError
from grass.model.id_runs import runs
from grass.model.jobs.dependencies import NEEDS, After
from grass.queries.selection import select


class AfterSelectors:
    """The selectors of one call, each resolved once."""

    def __init__(self, broker: Broker, besides: Container[int] = ()) -> None:
        """Leave out jobs that would wait for themselves."""
        self._broker = broker
        self._besides = besides
        self._known: dict[str, list[str]] = {}
        self.notes: list[str] = []

    async def resolve_all(self, body: EnqueueBody) -> None:
        """Replace the selectors of all jobs of a request by ids."""
        for job in (body.defaults, *body.jobs):
            if job.after:
                job.after = await self.resolved(job.after)

    async def resolved(self, texts: Iterable[str]) -> list[str]:
        """Return dependencies with ids in the place of selectors."""
        found: list[str] = []
        for text in texts:
            for part in map(str.strip, text.split(",")):
                found += [part] if _names_ids(part) else await self._one(part)
        return found

    async def _one(self, text: str) -> list[str]:
        if text not in self._known:
            which, need = _split(text)
            try:
                ids = await select(self._broker, [which])
            except GrassError as error:
                raise type(error)(f"--after: {error.message}", error.hint) from None
            unfinished = self._broker.state.jobs
            jobs = [
                one for one in ids if one in unfinished and one not in self._besides
            ]
            self._known[text] = [str(After(need, *run)) for run in runs(jobs)]
            if not jobs:
                self.notes.append(f"--after {text}: no unfinished job matches")
        return self._known[text]


def _names_ids(text: str) -> bool:
    which = text.partition(":")[0]
    return not which or which[0].isdecimal() or which == "last"


def _split(text: str) -> tuple[str, str]:
    """Split how jobs must end off a selector, which may hold colons itself."""
    which, colon, need = text.rpartition(":")
    if colon and need in NEEDS and which not in ("state", "queue"):
        return which, need
    return text, "succeeded"
