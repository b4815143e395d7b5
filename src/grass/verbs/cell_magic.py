"""`%%grass` in notebooks: the code of a cell runs as a job, and the cell shows it.

The cell is the command of a `grass run`, which is a child of the notebook's process.
So it says what the job waits for, follows every attempt and ends the job on an
interrupt as a terminal's does, and there is no second way to do these things.
"""

from __future__ import annotations

import codecs
import os
import selectors
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from grass.cli.parsing.options import HelpWanted, Values, scan
from grass.cli.parsing.stdin_script import flag_of
from grass.errors import GrassError, UsageError
from grass.model.jobs.commands import LONGEST_WORD
from grass.verbs.enqueueing import OPTIONS

if TYPE_CHECKING:
    from typing import IO, Any

# `-P`: a `grass.py` beside the notebook is not meant.
_RUN = (sys.executable, "-P", "-m", "grass", "run")
_DEFAULTS = ("--name=cell", "--verbatim")
"""Options that those of the cell come after. Braces are part of the code."""
_PIECE = 65536
_GRASS_FAILED = 124
"""What `grass run` exits with where the job was refused, or its end is not known."""


class CellFailed(GrassError):
    """The job of a cell did not succeed; what follows the cell is not run."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of the frames of this module."""
        return [f"{type(self).__name__}: {self}"]


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 -- IPython is optional
    """Add `%%grass` to a notebook: `%load_ext grass` calls this."""
    shell.register_magic_function(run_cell, "cell", "grass")


def run_cell(line: str, cell: str) -> None:
    """Run a cell as a job: `%%grass -g 1`, or with a program: `%%grass bash`.

    Before the program come options of `grass run`. Without one it is this notebook's
    Python. What the job writes is shown as it comes. An interrupt cancels the job, a
    second one leaves it to itself.
    """
    try:
        words = cell_words(line, cell)
    except GrassError as error:
        raise CellFailed(error.message, error.hint) from None
    except HelpWanted:
        raise CellFailed("`grass run --help` tells the options") from None
    code, was_interrupted = _run([*_RUN, *words])
    if was_interrupted:
        raise KeyboardInterrupt
    if code == _GRASS_FAILED:
        raise CellFailed(
            "grass itself failed, as it says above, or the cell exited with 124"
        )
    if code:
        raise CellFailed(f"the job of this cell failed with exit code {code}")


def cell_words(line: str, cell: str) -> list[str]:
    """Return the words of `grass run` for a cell and the line that it begins with."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%grass {line}: {str(error).lower()}") from None
    at = scan(OPTIONS, words, 0, Values())
    program = words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]
    program = program or [sys.executable]
    flag = flag_of(program[0])
    if flag is None:
        raise UsageError(
            f"it is not known how `{program[0]}` runs the code of a cell",
            "save it as a file and enqueue that",
        )
    size = len(os.fsencode(cell))
    if size > LONGEST_WORD:
        raise UsageError(
            f"the cell has {size:,} bytes, and at most {LONGEST_WORD:,} can be a job",
            "save it as a file and enqueue that",
        )
    return [*_DEFAULTS, *words[:at], "--", *program, flag, cell]


def _run(words: list[str]) -> tuple[int, bool]:
    """Run a command and show what it writes; pass interrupts on to it."""
    was_interrupted = False
    # In a session of its own, because an interrupt goes to all of the notebook's.
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        shown = _Shown(child.stdout, child.stderr)
        while True:
            try:
                shown.copy()
                return child.wait(), was_interrupted
            except KeyboardInterrupt:
                was_interrupted = True
                child.send_signal(signal.SIGINT)


class _Shown:
    """What a child writes to its two pipes, as text of the cell."""

    def __init__(self, output: IO[bytes], errors: IO[bytes]) -> None:
        self._pipes = selectors.DefaultSelector()
        for pipe, stream in ((output, sys.stdout), (errors, sys.stderr)):
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._pipes.register(pipe, selectors.EVENT_READ, (stream, decoder))

    def copy(self) -> None:
        """Show what comes until both pipes are closed."""
        while self._pipes.get_map():
            for key, _ in self._pipes.select():
                stream, decoder = key.data
                piece = os.read(key.fd, _PIECE)
                stream.write(decoder.decode(piece, final=not piece))
                stream.flush()
                if not piece:
                    self._pipes.unregister(key.fileobj)
        self._pipes.close()
