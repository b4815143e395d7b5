"""`grass backup`: copy the queue's database into a file."""

from grass.cli.parsing.hosting_options import chosen_store
from grass.cli.parsing.options import JSON, Command, one_word, read
from grass.cli.printing.streams import counted, print_document, say
from grass.config import home

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Back the database up."""
    values, rest = read(OPTIONS, words)
    file = one_word(rest, "a file")
    from grass.daemon.database.store_care import back_up

    jobs, blobs = back_up(home(), chosen_store(), file)
    if values.has("json"):
        print_document({"file": file, "jobs": jobs, "blobs": blobs})
        return 0
    said = f"{counted(jobs, 'job')} and {counted(blobs, 'blob')}"
    say(f"{file} has the database with {said}")
    return 0


COMMAND = Command(
    usage="FILE",
    about=(
        "Copy the database of this machine's queue into a file, also while the daemon "
        "runs: the state of one moment, with the functions and arguments of tasks, the "
        "broker's private key, its worker's id and the options of its daemon. "
        "Output of jobs is not in it. An older backup of this name is replaced, any "
        "other file is not. `grass restore FILE` puts it back."
    ),
    options=OPTIONS,
    examples=("grass backup ~/grass-monday.backup",),
    run=run,
)
