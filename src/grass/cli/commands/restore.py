"""`grass restore`: put a backup in the place of the queue's database."""

import sys

from grass.cli.parsing.hosting_options import chosen_store
from grass.cli.parsing.options import JSON, Command, Option, one_word, read
from grass.cli.printing.streams import counted, print_document, say
from grass.config import home

OPTIONS = (
    Option("--replace", about="the machine that was backed up will never run again"),
    JSON,
)


def run(words: list[str]) -> int:
    """Restore a backup."""
    values, rest = read(OPTIONS, words)
    file = one_word(rest, "a file")
    from grass.daemon.database.store_care import replaced_machine, restore

    machine = replaced_machine(home(), chosen_store(), file)
    if machine is not None and not values.has("replace"):
        _ask(machine, file)
    jobs = restore(home(), chosen_store(), file)
    if values.has("json"):
        print_document({"file": file, "jobs": jobs})
        return 0
    say(f"the database has {counted(jobs, 'job')} again, as of {file}")
    return 0


def _ask(machine: str, file: str) -> None:
    """Ask whether this machine takes the identity of another; no without a terminal."""
    from grass.daemon.database.identity_files import refuse_replacing

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise refuse_replacing(machine, file)
    sys.stderr.write(
        f"{file} is of {machine}. Will the grass there never run again, so that this"
        " machine takes its place? [y/N] "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise refuse_replacing(machine, file)


COMMAND = Command(
    usage="[--replace] FILE",
    about=(
        "Put the database back that `grass backup` has copied; the daemon is stopped. "
        "One that is there already is kept beside it, as grass.db.before-restore, "
        "or with a number after it. In another home the backup brings the broker back "
        "with its identity, its key and its worker's id, so that other machines need "
        "not join again. Two machines must not have one identity, so it asks whether "
        "the first is gone for good; --replace says so. Jobs that run and are not in "
        "the backup run on: see `grass workers foreign`."
    ),
    options=OPTIONS,
    examples=(
        "grass restore ~/grass-monday.backup",
        "grass restore --replace ~/grass-monday.backup",
    ),
    run=run,
)
