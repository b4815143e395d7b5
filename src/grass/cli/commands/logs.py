"""`grass logs`: print what jobs wrote: of one job byte for byte, of several by line."""

from __future__ import annotations

from _thread import allocate_lock  # `threading` costs an import

from grass.cli.parsing.options import (
    ANY,
    BROKER,
    Command,
    Option,
    chosen,
    names_one,
    read,
)
from grass.cli.printing.prefixed_output import (
    JsonLines,
    Plain,
    Prefixed,
    for_stdout,
    prefix,
)
from grass.cli.printing.streams import counted, warn
from grass.client.client import Client
from grass.client.connection import Broken
from grass.errors import GrassError, NoDaemon, NotFound, Unreachable, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document

    OutputWriter = Plain | Prefixed | JsonLines

OPTIONS = (
    ANY,
    Option("-f, --follow", about="go on until the jobs have ended"),
    Option("--tail", "N", "begin N lines from the end"),
    Option("--lines", "A-B", "only these lines, the first is 1; `A-` is up to the end"),
    Option("--grep", "PATTERN", "only lines that match, each after its number"),
    Option("--attempt", "N", "another attempt than the last"),
    Option("--stderr", about="the file given with `enqueue --stderr`"),
    Option("--raw", about="pass every byte to a terminal, not only text and colours"),
    BROKER,
    Option("--json", about="print JSON objects, each with a piece of text"),
)
MOST_FOLLOWED = 200
"""Each job that is followed costs a connection and a thread."""


def run(words: list[str]) -> int:
    """Copy jobs' output to stdout."""
    values, select = read(OPTIONS, words)
    if not select:
        raise UsageError("the job is missing")
    if (values.whole_number("tail") or 0) < 0:
        raise UsageError("--tail must not be negative")
    _check_combination(values)
    with Client(broker=values.broker) as client:
        client.outage.tell = warn
        if names_one(select):
            return _one(client, values, select[0])
        jobs: list[int] = client.select(chosen(values, select))["jobs"]
        if not jobs:
            raise NotFound("no such job", "`grass show --all` lists all")
        writers = _writers(values, jobs)
        if values.has("follow"):
            return _follow_all(client, values, writers)
        return _copy_all(client, values, writers)


def _check_combination(values: Values) -> None:
    given = [one for one in ("follow", "tail", "lines", "grep") if values.has(one)]
    if len(given) > 1 and given != ["follow", "tail"]:
        raise UsageError(f"--{given[0]} and --{given[1]} do not go together")


def _one(client: Client, values: Values, selector: str) -> int:
    follow, as_json = values.has("follow"), values.has("json")
    # `last` may be another job after a restart of the daemon; an id never is.
    known = client.job(selector) if follow or as_json else {"id": selector}
    job = known["id"]
    shown = for_stdout(raw=values.has("raw"))
    writer = JsonLines(int(job), allocate_lock()) if as_json else Plain(shown)
    try:
        if follow:
            _follow(client, values, known, writer)
        else:
            _copy(client, values, job, writer)
    except Broken:
        _check_worker(client, values, job)
        warn(_cut_off(client))
        return 1
    return 0


def _follow(
    client: Client, values: Values, job: Document, writer: OutputWriter
) -> None:
    """Copy what a job writes; say that it has not started, and how it ended."""
    from grass.cli.printing.waits.start_notice import StartNotice

    with StartNotice(client, job) as notice:
        _copy(client, values, job["id"], writer, notice.end)
    if not values.has("json"):
        _tell_end(client, job["id"])


def _tell_end(client: Client, job: int) -> None:
    from grass.cli.printing.wording import ENDED_STATES, ended

    try:
        now = client.job(job)
    except GrassError:
        # All that it wrote was printed; the job may have been forgotten meanwhile.
        return
    if now["state"] in ENDED_STATES:
        warn(ended(now))


def _check_worker(client: Client, values: Values, job: int | str) -> None:
    """Raise if the worker is gone rather than the daemon."""
    attempt, stderr = values.whole_number("attempt"), values.has("stderr")
    try:
        with client.beside(may_start=False) as aside:
            list(aside.output(job, attempt=attempt, stderr=stderr, tail=0))
    except (NoDaemon, Broken):
        return


def _copy(
    client: Client,
    values: Values,
    job: int | str,
    writer: OutputWriter,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    for piece in _pieces(client, values, job):
        on_start()
        writer.write(piece)
    on_start()
    writer.end()


def _pieces(client: Client, values: Values, job: int | str) -> Iterator[bytes]:
    attempt, stderr = values.whole_number("attempt"), values.has("stderr")
    if pattern := values.text("grep"):
        for one in client.matching_lines(job, pattern, attempt=attempt, stderr=stderr):
            yield f"{one['line']}:{one['text']}\n".encode()
    elif text := values.text("lines"):
        first, last = _range(text)
        for line in client.output_lines(
            job, first, last, attempt=attempt, stderr=stderr
        ):
            yield f"{line}\n".encode()
    else:
        yield from client.output(
            job,
            follow=values.has("follow"),
            attempt=attempt,
            stderr=stderr,
            tail=values.whole_number("tail"),
            on_away=lambda job: warn(away(job)),
        )


def _range(text: str) -> tuple[int, int | None]:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or not last):
        raise UsageError(f"`{text}` is not a range of lines", "write 20-40")
    return int(first), int(last) if last else None if dash else int(first)


def away(job: Document) -> str:
    """Write for which worker following waits."""
    since = job.get("unreachable_since")
    lasts = f" since {since}" if since else ""
    return (
        f"worker `{job['worker']}` is unreachable{lasts}; job {job['id']} is followed"
        " on when it is back"
    )


def _writers(values: Values, jobs: list[int]) -> dict[int, OutputWriter]:
    from grass.cli.printing.table import this_screen

    lock = allocate_lock()
    if values.has("json"):
        return {job: JsonLines(job, lock) for job in jobs}
    width, coloured = len(str(max(jobs))), this_screen().colours
    return {
        job: Prefixed(
            prefix(job, width, place=place if coloured else None),
            lock,
            for_stdout(raw=values.has("raw")),
        )
        for place, job in enumerate(jobs)
    }


def _copy_all(client: Client, values: Values, writers: dict[int, OutputWriter]) -> int:
    silent, code = [], 0
    for job, writer in writers.items():
        try:
            _copy(client, values, job, writer)
        except NotFound:
            silent.append(job)
        except Unreachable as error:
            code = _judged(error)
    if silent:
        warn(f"{counted(len(silent), 'job')} had nothing to print yet")
    return code


def _follow_all(
    client: Client, values: Values, writers: dict[int, OutputWriter]
) -> int:
    if len(writers) > MOST_FOLLOWED:
        raise UsageError(
            f"{len(writers)} jobs are too many to follow at once",
            f"select at most {MOST_FOLLOWED}",
        )
    import threading
    from queue import SimpleQueue

    from grass.client.threads import CtrlCForMain

    ends: SimpleQueue[BaseException | None] = SimpleQueue()

    def follow(job: int, writer: OutputWriter) -> None:
        """Follow one job in a thread, over a connection of its own."""
        try:
            with client.beside() as own:
                _copy(own, values, job, writer)
                if not values.has("json"):
                    _tell_end(own, job)
            ends.put(None)
        except Broken:
            ends.put(GrassError(_cut_off(client)))
        except (GrassError, OSError) as error:
            ends.put(error)

    with CtrlCForMain():
        for pair in writers.items():
            threading.Thread(target=follow, args=pair, daemon=True).start()
    return max(_judged(ends.get()) for _ in writers)


def _cut_off(client: Client) -> str:
    return f"{client.peer} went away before all was read"


def _judged(error: BaseException | None) -> int:
    """Warn of an error of one job; raise one that concerns all."""
    if error is None:
        return 0
    if not isinstance(error, GrassError):
        raise error
    warn(str(error))
    return Unreachable.exit_code if isinstance(error, Unreachable) else 1


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "Print what jobs wrote to stdout and stderr; of several jobs with the job's id "
        "before each line. A terminal gets text, colours, tabs and carriage returns, a "
        "pipe or a file every byte. With -f a job that has not started is waited for; "
        "stderr has the reason, and at the end how it ended."
    ),
    options=OPTIONS,
    examples=(
        "grass logs 7",
        "grass logs -f last",
        "grass logs --tail 20 state:failed",
        "grass logs -f 7 8 9",
        "grass logs --grep 'nan|inf' 7",
        "grass logs --lines 100-120 7",
    ),
    run=run,
)
