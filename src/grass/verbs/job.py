"""One job, as Python programs see it: what is known of it, and the verbs on it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from grass.cli.printing.wording import ENDED_STATES
from grass.errors import Refused
from grass.verbs.calling import CallThread, in_coroutines
from grass.verbs.selected import Selected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator
    from typing import Self

    from grass.client.json_codec import Document
    from grass.verbs.calling import Caller
    from grass.verbs.keywords import Duration

T = TypeVar("T")
_text = getincrementaldecoder("utf-8")


class Field(Generic[T]):
    """An attribute of a job: a field of its document."""

    def __init__(
        self, about: str, read: Callable[[Any], T] = lambda given: given
    ) -> None:
        self.__doc__ = about
        self._read = read

    def __set_name__(self, owner: type[Job], name: str) -> None:
        """Take the name of the field."""
        self._field = name

    @overload
    def __get__(self, job: None, owner: type[Job]) -> Self: ...
    @overload
    def __get__(self, job: Job, owner: type[Job]) -> T: ...
    def __get__(self, job: Job | None, owner: type[Job]) -> Self | T:
        """Return what was read of a job."""
        return self if job is None else self._read(job.document[self._field])


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class Job(Selected):
    """A job, as it was when it was last read; `refresh` reads it anew.

    `wait` and the other verbs read it anew, too. An attribute of a job that was never
    read, as those of a long list, reads it first. Two are equal if they are one job.
    """

    name: Field[str] = Field("The job's name.")
    state: Field[str] = Field(
        "`held`, `waiting`, `queued`, `running`, `succeeded`, `failed`, `cancelled` or"
        " `lost`."
    )
    reason: Field[str | None] = Field("Why it waits, or why it ended as it did.")
    exit_code: Field[int | None] = Field("What its program exited with.")
    signal: Field[int | None] = Field("The signal that ended its program.")
    queue: Field[str] = Field("The queue that it is in.")
    project: Field[str] = Field("The project that it belongs to.")
    priority: Field[int] = Field("Higher starts earlier.")
    command: Field[list[str]] = Field("Its words, those of its queue first.")
    request: Field[dict[str, float | str]] = Field("What it asks for, by kind.")
    allocation: Field[dict[str, dict[str, float]]] = Field(
        "The units that it holds now, by kind, with their amounts."
    )
    worker: Field[str | None] = Field("Where it runs, or ran last.")
    index: Field[int | None] = Field("Its index in its array.")
    created_at: Field[datetime | None] = Field("When it was enqueued.", _moment)
    started_at: Field[datetime | None] = Field("When it started.", _moment)
    finished_at: Field[datetime | None] = Field("When it ended.", _moment)
    ran_s: Field[float | None] = Field("How long its last attempt ran, in seconds.")
    output: Field[str | None] = Field("The file that its output is in, at its worker.")

    def __init__(
        self,
        id: int,
        broker: str | None = None,
        document: Document | None = None,
        read: Callable[[Job], None] | None = None,
    ) -> None:
        """Name a job by its id; `grass.jobs(7)` is how a program does so."""
        super().__init__(broker)
        self.id = id
        self._document = document
        self._read = read

    def __repr__(self) -> str:
        """Return what is known of it."""
        if self._document is None:
            return f"<Job {self.id}>"
        return f"<Job {self.id} {self.name}: {self.state}>"

    def __eq__(self, other: object) -> bool:
        """Tell whether two are the same job."""
        return isinstance(other, Job) and self._key == other._key

    def __hash__(self) -> int:
        """Return what equal ones have in common."""
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, str | None]:
        return self.id, self._broker

    @property
    def selectors(self) -> list[str]:
        """The job as the command line names it: `["7"]`."""
        return [str(self.id)]

    @property
    def document(self) -> dict[str, Any]:
        """All that was read of it, as `grass show --json ID` prints it."""
        if self._document is None and self._read is not None:
            self._read(self)
        if self._document is None:
            self.refresh()
        assert self._document is not None
        return self._document

    @document.setter
    def document(self, document: Document) -> None:
        self._document = document

    @document.deleter
    def document(self) -> None:
        self._document = None

    @property
    def is_known(self) -> bool:
        """Whether it was read already."""
        return self._document is not None

    @property
    def has_ended(self) -> bool:
        """Whether its state is one that a job ends in."""
        return self.state in ENDED_STATES

    @property
    def has_succeeded(self) -> bool:
        """Whether its program has exited with 0."""
        return self.state == "succeeded"

    def refresh(self) -> Self:
        """Read it anew."""
        with self._caller() as client:
            self._document = client.job(self.id)
        return self

    def wait(self, timeout: Duration | None = None) -> Self:
        """Return when it has ended; raise `TimedOut` if that takes longer."""
        with self._caller() as client:
            client.wait(self.selectors, seconds_of(timeout))
            self._document = client.job(self.id)
        return self

    def result(self, timeout: Duration | None = None) -> Any:  # noqa: ANN401
        """Return what its function returned, or raise what that raised.

        Waits for its end; raises `TimedOut` if that takes longer. Also in another
        program, and later: a result is kept as long as its job. One that somebody else
        enqueued is refused, as reading it would run their code.
        """
        from grass.verbs.task_jobs import read_result

        with self._caller() as client:
            return read_result(client, self.id, seconds_of(timeout))

    def explain(self) -> str:
        """Say why it waits, or how it ended, as `grass explain` does."""
        from grass.cli.printing.explanation import explained
        from grass.cli.printing.table import Screen

        with self._caller() as client:
            return explained(client.explain(self.id), Screen(None, colours=False))

    def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        attempt: int | None = None,
        stderr: bool = False,
    ) -> Iterator[str]:
        """Give the lines that it wrote; with `follow`, as they come, to its end.

        `tail` begins so many lines from the end. `attempt` is another than the last.
        `stderr` reads the file that was given with the option of that name.
        """
        for lines in self._lines(follow, tail, attempt, stderr):
            yield from lines

    async def logs_async(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        attempt: int | None = None,
        stderr: bool = False,
    ) -> AsyncIterator[str]:
        """As `logs`, for `async for`."""
        thread, lines = CallThread(), self._lines(follow, tail, attempt, stderr)
        try:
            while (some := await thread.call(lambda: next(lines, None))) is not None:
                for line in some:
                    yield line
        finally:
            lines.close()

    def _lines(
        self, follow: bool, tail: int | None, attempt: int | None, stderr: bool
    ) -> Generator[list[str], None, None]:
        """Give lines, as many at a time as have come."""
        decoder, unended = _text("replace"), ""
        with self._caller() as client:
            for piece in client.output(
                self.id, follow=follow, tail=tail, attempt=attempt, stderr=stderr
            ):
                *lines, unended = (unended + decoder.decode(piece)).split("\n")
                yield lines
        unended += decoder.decode(b"", final=True)
        yield [unended] if unended else []

    def _was_done(self, client: Caller, done: Document) -> Self:
        warnings = done.get("warnings")
        if warnings and not done["jobs"]:
            raise Refused(warnings[0])
        self._document = client.job(self.id)
        return self

    refresh_async = in_coroutines(refresh)
    wait_async = in_coroutines(wait)
    result_async = in_coroutines(result)
    explain_async = in_coroutines(explain)


def seconds_of(duration: Duration | None) -> float | None:
    """Read a duration, as on the command line; what is left of one may be negative."""
    from grass.model.durations import seconds
    from grass.verbs.keywords import written

    if duration is None:
        return None
    if isinstance(duration, int | float):
        return max(0.0, duration)
    return seconds(written(duration))
