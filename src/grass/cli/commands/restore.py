"""`grass restore`: put a backup in the place of the queue's database."""

from grass.cli.parsing.hosting_options import chosen_store
from grass.cli.parsing.options import JSON, Command, one_word, read
from grass.cli.printing.streams import counted, print_document, say
from grass.config import home

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Restore a backup."""
    values, rest = read(OPTIONS, words)
    file = one_word(rest, "a file")
    from grass.daemon.database.store_care import restore

    jobs = restore(home(), chosen_store(), file)
    if values.has("json"):
        print_document({"file": file, "jobs": jobs})
        return 0
    say(f"the database has {counted(jobs, 'job')} again, as of {file}")
    return 0


COMMAND = Command(
    usage="FILE",
    about=(
        "Put the database back that `grass backup` has copied; the daemon is stopped. "
        "One that is there already is kept beside it, as grass.db.before-restore, "
        "or with a number after it."
    ),
    options=OPTIONS,
    examples=("grass restore ~/grass-monday.backup",),
    run=run,
)
