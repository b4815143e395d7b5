"""`grass store`: move the queue to another database, and check the one that it has."""

from __future__ import annotations

from grass.cli.parsing.hosting_options import chosen_store
from grass.cli.parsing.options import JSON, Command, Values, at_most, read, subcommand
from grass.cli.printing.streams import counted, print_document, say
from grass.client.autostart import remembered
from grass.config import home
from grass.errors import NoDatabase, UsageError

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {"move": _move, "check": _check, "forget-environments": _forget}
    _, handler = subcommand("store", known, rest, default="check")
    return handler(values, rest[1:])


def _move(values: Values, rest: list[str]) -> int:
    if len(rest) != len(("source", "target")):
        raise UsageError("name two databases", "grass store move sqlite URL")
    source, target = map(_database, rest)
    from grass.daemon.database.store_care import move
    from grass.daemon.hosting import save_options

    rows = move(home(), source, target)
    others = [word for word in remembered(home()) if not word.startswith("--store=")]
    save_options(home(), [*others, f"--store={target}"])
    if values.has("json"):
        print_document({"from": source, "to": target, "rows": rows})
        return 0
    moved = f"{counted(rows['jobs'], 'job')} and {counted(rows['events'], 'event')}"
    say(f"moved {moved} to {target}; every row was compared")
    say("`grass start` uses it from now on")
    return 0


def _database(text: str) -> str:
    from grass.setting_values import check_store

    try:
        return check_store(text)
    except UsageError as error:
        raise NoDatabase(error.message, error.hint) from None


def _named(rest: list[str]) -> str:
    """Return the database that is named; that of this home's queue if none is."""
    at_most(rest, 1)
    return _database(rest[0]) if rest else chosen_store()


def _check(values: Values, rest: list[str]) -> int:
    url = _named(rest)
    from grass.daemon.database.store_care import check

    sizes, problems = check(home(), url)
    if values.has("json"):
        print_document({"store": url, "rows": sizes, "problems": problems})
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    rows = ", ".join(f"{number:,} {table}" for table, number in sizes.items())
    say(f"{url}: {rows}; {counted(len(problems), 'problem')}")
    return 1 if problems else 0


def _forget(values: Values, rest: list[str]) -> int:
    url = _named(rest)
    from grass.daemon.database.store_care import forget_environments

    removed = forget_environments(home(), url)
    if values.has("json"):
        print_document({"store": url, "environments": removed})
    else:
        say(f"{url}: {counted(removed, 'environment')} removed")
    return 0


COMMAND = Command(
    usage="check [DATABASE]|move SOURCE TARGET|forget-environments [DATABASE]",
    about=(
        "`check` looks at every row of the database that the queue is in, or of one "
        "that is named, also while the daemon runs, and exits with 1 if something is "
        "wrong. `move` copies "
        "queue, jobs and history from `sqlite`, the file in the state directory, to "
        "an empty PostgreSQL database or back; the daemon is stopped. All rows are "
        "compared before the new database counts, and an interruption leaves the old "
        "one as it was. `forget-environments` is for a PostgreSQL database whose "
        "brokers have lost their key: it removes the environments that were sealed "
        "with it, and jobs that wait with one start with the worker's own."
    ),
    options=OPTIONS,
    examples=(
        "grass store check",
        "grass store move sqlite postgresql://grass@db/grass",
        "grass store move postgresql://grass@db/grass sqlite",
    ),
    run=run,
)
