"""`grass capacity`: show a worker's units, add and remove some."""

import sys

from grass.cli.commands.drain import check_unit, on_worker, owner
from grass.cli.parsing.options import (
    JSON,
    Command,
    Option,
    Values,
    at_most,
    one_word,
    read,
    subcommand,
)
from grass.cli.printing.streams import print_document, printable, report_change
from grass.client.client import Client
from grass.client.json_codec import Document

OPTIONS = (
    Option("--worker", "WORKER", "this worker of the broker (default: this machine)"),
    JSON,
)


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {"show": _show, "add": _add, "remove": _remove}
    _, handler = subcommand("capacity", known, rest, default="show")
    return handler(values, rest[1:])


def _show(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    with Client(broker=owner(values)) as client:
        workers = _chosen(client.workers()["workers"], values.text("worker"))
    if values.has("json"):
        print_document({"workers": workers})
        return 0
    from grass.cli.printing import table
    from grass.cli.printing.show import summary
    from grass.cli.printing.wording import TINTS

    rows = summary.worker_rows(workers)
    screen = table.this_screen()
    shown = table.render(summary.WORKERS, rows, screen, TINTS)
    sys.stdout.write(printable(shown))
    return 0


def _chosen(workers: list[Document], name: str | None) -> list[Document]:
    chosen = [one for one in workers if name is None or one["name"] == name]
    if name is not None and not chosen:
        from grass.errors import NotFound

        raise NotFound(f"there is no worker `{name}`", "`grass capacity` lists all")
    return chosen


def _add(values: Values, rest: list[str]) -> int:
    capacity = one_word(rest, "the capacity")
    with Client(broker=owner(values)) as client:
        done = client.add_capacity(capacity, values.text("worker"))
    what = on_worker(capacity, values)
    return report_change(values, done, f"added {what}", f"{what} was there already")


def _remove(values: Values, rest: list[str]) -> int:
    unit = check_unit(one_word(rest, "the unit"))
    with Client(broker=owner(values)) as client:
        done = client.remove_capacity(unit, values.text("worker"))
    what = on_worker(unit, values)
    return report_change(
        values, done, f"removed {what}", f"{what} is being removed already"
    )


COMMAND = Command(
    usage="[--worker WORKER] [--json] [show | add CAPACITY | remove KIND:UNIT]",
    about=(
        "Show the units of this machine, add units that were not found, or take away "
        "those that were added, and GPUs with a fault that are gone. A unit that a "
        "job holds goes when the job has ended. Where this machine is a broker, the "
        "units of all its workers are shown."
    ),
    options=OPTIONS,
    examples=(
        "grass capacity show",
        "grass capacity add '{gpu:{\"4\":1}}'",
        "grass capacity remove gpu:4",
    ),
    run=run,
)
