"""`grass top`: GPUs, jobs and logs on a whole terminal, with keys and mouse."""

from __future__ import annotations

import os
import sys

from grass.cli.parsing.options import ANY, BROKER, Command, Option, is_selector, read
from grass.client.client import Client
from grass.errors import GrassError, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.tui.actions import Access

OPTIONS = (
    ANY,
    Option("--readonly", about="look only: nothing can be changed from this screen"),
    BROKER,
)
INSTALL = "pip install 'grass-scheduler[tui]'"


def run(words: list[str]) -> int:
    """Show the screen until it is left."""
    values, select = read(OPTIONS, words)
    for word in select:
        if not is_selector(word):
            raise UsageError(f"`{word}` is no selector", f"queue:{word} is a queue")
    _check_textual()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("top needs a terminal", "`grass show` prints the same")
    with Client(broker=values.broker) as client:
        client.overview()
        access = _access(client, readonly=values.has("readonly"))
        home = client.home
    from grass.cli.printing.signs import signs_of_terminal
    from grass.tui.app import TopApp
    from grass.tui.reader import Reader

    def connect() -> Reader:
        return Reader(home, values.broker)

    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)  # The terminal itself knows its size.
    if values.has("any"):
        select = [*ANY.names, *select]
    app = TopApp(connect, signs_of_terminal(), access, select)
    app.run()
    return app.return_code or 0


def _check_textual() -> None:
    try:
        import textual
    except ImportError:
        raise GrassError(
            "top needs the package textual, which is not installed", INSTALL
        ) from None
    del textual


def _access(client: Client, *, readonly: bool) -> Access:
    """Return what the caller may do, as far as the daemon tells."""
    from grass.tui.actions import EVERYTHING, READ_ONLY, Access

    if readonly:
        return READ_ONLY
    try:
        session = client.session()
    except NotFound:
        # A daemon of an earlier version; it refuses what is not allowed.
        return Access("", EVERYTHING)
    return Access(session["actor"], frozenset(session["rights"]))


COMMAND = Command(
    usage="[--any] [--readonly] [--broker ADDRESS] [SELECTOR...]",
    about=(
        "Show the GPUs, the jobs and the log of a job on the whole terminal, as they "
        "are now; with selectors, the jobs that they mean together. Keys and mouse do "
        "what the commands do: `?` lists them, `q` quits. "
        "What your role may not do is not offered. It needs the extra `tui`: "
        f"{INSTALL}."
    ),
    options=OPTIONS,
    examples=("grass top", "grass top @thesis", "grass top --readonly"),
    run=run,
)
