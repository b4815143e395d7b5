"""The verbs that one job and several have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.cli.parsing import cancel_options, job_changes
from grass.cli.parsing.job_options import check_paths
from grass.client.long_calls import await_cancelled
from grass.verbs.calling import Caller, in_coroutines
from grass.verbs.keywords import as_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self, Unpack

    from grass.cli.parsing.options import Option
    from grass.client.json_codec import Document
    from grass.verbs.keywords import ChangesBeforeStart, Duration, JobChanges


class Selected:
    """Jobs that are known by their ids, at one broker."""

    def __init__(self, broker: str | None) -> None:
        self._broker = broker

    @property
    def selectors(self) -> list[str]:
        """The jobs as the command line names them: `["3-9", "12"]`."""
        raise NotImplementedError

    def _was_done(self, client: Caller, done: Document) -> Self:
        """Return what a verb was done to."""
        raise NotImplementedError

    def _caller(self) -> Caller:
        return Caller(broker=self._broker)

    def cancel(
        self,
        *,
        now: bool = False,
        signal: str | None = None,
        grace: Duration | None = None,
        no_wait: bool = False,
    ) -> Self:
        """End what is unfinished, and return when it is gone.

        It gets SIGTERM or `signal`, and after its grace SIGKILL; with `now` SIGKILL at
        once. What has ended already is left as it is. A job whose worker is unreachable
        is not waited for, nor any with `no_wait`.
        """
        given = {"now": now, "signal": signal, "grace": grace}
        how = cancel_options.signal_and_grace(
            as_values(cancel_options.HOW_TO_END, given)
        )

        def end(client: Caller) -> Document:
            done = client.cancel(self.selectors, **how)
            if not no_wait:
                await_cancelled(client, done["jobs"], lambda _: None)
            return done

        return self._do(end)

    def hold(self) -> Self:
        """Keep what has not started from starting, until it is released."""
        return self._do(lambda client: client.hold(self.selectors))

    def release(self) -> Self:
        """Let what is held start."""
        return self._do(lambda client: client.release(self.selectors))

    def rerun(
        self,
        command: Sequence[str] | str | None = None,
        *,
        hold: bool = False,
        **changes: Unpack[JobChanges],
    ) -> Self:
        """Give what has ended a new attempt, changed if so said; ids stay the same."""

        def run_again(client: Caller) -> Document:
            wanted = _changed(client, job_changes.CHANGES, command, changes)
            return client.rerun(self.selectors, hold=hold, **wanted)

        return self._do(run_again)

    def edit(
        self,
        command: Sequence[str] | str | None = None,
        **changes: Unpack[ChangesBeforeStart],
    ) -> Self:
        """Change what has not started; what is not named stays as it is."""

        def change(client: Caller) -> Document:
            options = job_changes.CHANGES_BEFORE_START
            wanted = _changed(client, options, command, changes)
            return client.edit(self.selectors, **wanted)

        return self._do(change)

    def _do(self, verb: Callable[[Caller], Document]) -> Self:
        if not self.selectors:
            return self
        with self._caller() as client:
            return self._was_done(client, verb(client))

    cancel_async = in_coroutines(cancel)
    hold_async = in_coroutines(hold)
    release_async = in_coroutines(release)
    rerun_async = in_coroutines(rerun)
    edit_async = in_coroutines(edit)


def _changed(
    client: Caller,
    options: Sequence[Option],
    command: Sequence[str] | str | None,
    changes: JobChanges,
) -> Document:
    values = as_values(options, {**changes}, job_changes.NONE)
    fields = job_changes.changes(values, None)
    if command is not None:
        fields["command"] = command if isinstance(command, str) else list(command)
    check_paths(client, fields)
    return fields
