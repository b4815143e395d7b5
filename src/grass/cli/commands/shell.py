"""`grass shell`: a shell on the units that a job asks for."""

from grass.cli.commands import run as run_command
from grass.cli.parsing.enqueue_line import EnqueueLine
from grass.cli.parsing.job_options import NAME
from grass.cli.parsing.options import Command
from grass.errors import UsageError

OPTIONS = tuple(
    option
    for option in run_command.OPTIONS
    if option not in (run_command.PTY, run_command.NO_STDIN)
)
_USERS_SHELL = (
    'for shell in "$SHELL" bash; do'
    ' command -v "$shell" >/dev/null 2>&1 && exec "$shell"; done; exec sh'
)
"""Which shells there are is known where the job runs."""


def run(words: list[str]) -> int:
    """Run the user's shell as a job with this terminal."""
    if "--" in words:
        raise UsageError(
            "a shell takes no command", "`grass run --pty -- COMMAND` runs one"
        )
    line = EnqueueLine(OPTIONS, [*words, "--", "sh", "-c", _USERS_SHELL])
    line.values.add(run_command.PTY, "")
    if not line.values.has("name"):
        line.values.add(NAME, "shell")
    return run_command.run_line(line)


COMMAND = Command(
    usage="[OPTIONS] [QUEUE]",
    about=(
        "Wait for units and open a shell on them, here or on the worker that has them: "
        "`$SHELL` of the job's environment, else bash, else sh. It is a job like any "
        "other, and holds its units until the shell ends. Enter ~ . leaves it to "
        "itself; a terminal that is closed ends it."
    ),
    options=OPTIONS,
    examples=(
        "grass shell -g 1",
        "grass shell -c 4 -m 16G --time-limit 2h",
        "grass shell --worker desk2",
    ),
    run=run,
)
