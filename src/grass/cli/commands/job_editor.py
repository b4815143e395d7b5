"""Changing one job in the user's editor: what `edit` and `rerun --edit` share.

What was written is sent; where it is refused, the user edits it again. The text is only
removed once it was applied, or where it says nothing new.
"""

from __future__ import annotations

import os
import sys

from grass.cli.parsing.job_options import check_paths
from grass.cli.parsing.job_text import JobText
from grass.cli.printing.streams import safe_lines
from grass.cli.printing.wording import UNSTARTED
from grass.errors import GrassError, Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from grass.cli.parsing.options import Option, Values
    from grass.client.client import Client
    from grass.client.json_codec import Document

    Read = Callable[[Values], Document]
    Send = Callable[[Client, list[str], Document], Document]


def can_open_editor() -> bool:
    """Tell whether there is a terminal for an editor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


class JobEditor:
    """One job in an editor, until its changes were accepted or given up."""

    def __init__(
        self,
        connect: Callable[[], Client],
        selector: str,
        states: Sequence[str],
        options: Sequence[Option],
    ) -> None:
        """Read a job, which these options can change in these states."""
        self._connect = connect
        self._states = states
        with connect() as client:
            job = client.job(selector)
        self._id = int(job["id"])
        if job["state"] not in states:
            raise Refused(f"job {self._id} is {job['state']}", _step(job))
        self._text = JobText(job, options)
        self._path = _write(self._text.text, self._id)

    def run(self, read: Read, send: Send) -> Document | None:
        """Have the user change the job; return the reply, None if nothing was sent."""
        while True:
            text = self._edited()
            try:
                changes = self._text.changes(text, read)
                done = self._send(changes, send) if changes else None
            except GrassError as error:
                self._ask_again(text, error)
            else:
                os.unlink(self._path)
                return done

    def _send(self, changes: Document, send: Send) -> Document:
        # Another connection: the first has long been closed when the editor is.
        with self._connect() as client:
            check_paths(client, changes)
            return send(client, [str(self._id)], changes)

    def _edited(self) -> str:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        failed = _open(editor, self._path)
        with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
        if failed:
            self._give_up(text, GrassError(f"`{editor}` failed; nothing was changed"))
        return text

    def _ask_again(self, text: str, error: GrassError) -> None:
        """Print an error; return if the user wants to go on, otherwise raise it."""
        if not isinstance(error, UsageError) and not self._can_change():
            self._give_up(text, error)
        where = ""
        if not error.message.startswith(("line ", "the text ")):
            where = self._text.place(text, error)
        hint = f" ({error.hint})" if error.hint else ""
        sys.stderr.write(safe_lines(f"grass: {where}{error.message}{hint}") + "\n")
        sys.stderr.write("edit again? [Y/n] ")
        sys.stderr.flush()
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            answer = ""
        if not answer or answer.strip().lower() in ("n", "no"):
            self._give_up(text, type(error)("nothing was changed"))

    def _can_change(self) -> bool:
        with self._connect() as client:
            return client.job(self._id)["state"] in self._states

    def _give_up(self, text: str, error: GrassError) -> NoReturn:
        if text == self._text.text:
            os.unlink(self._path)
            raise error
        raise type(error)(error.message, f"your text is kept in {self._path}")


def _open(editor: str, path: str) -> bool:
    """Run the user's editor to its end; tell whether it failed."""
    import signal
    import subprocess

    # By a shell, as git does it: the variable may hold words in quotes.
    words = ["sh", "-c", f'{editor} "$@"', editor, path]
    # Ctrl-C is a key of the editor. It has the default again: a handler, other than
    # one that ignores, does not outlive the start of another program.
    before = signal.signal(signal.SIGINT, lambda _signal, _frame: None)
    try:
        return subprocess.call(words) != 0
    finally:
        signal.signal(signal.SIGINT, before)


def _step(job: Document) -> str:
    """Say how a job can be changed in the state that it is in."""
    if job["state"] == "running":
        return f"`grass cancel {job['id']}` first"
    verb = "edit {}" if job["state"] in UNSTARTED else "rerun {} --edit"
    return f"`grass {verb.format(job['id'])}`"


def _write(text: str, id: int) -> str:
    from tempfile import mkstemp

    descriptor, path = mkstemp(prefix=f"grass-job-{id}-", suffix=".toml")
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    return path
