"""From the words of a shell to one command's module, and from errors to exit codes.

Nothing a user does wrong ends in a traceback: an error is one line on stderr and a
stable exit code. Output that nobody reads any more ends a command quietly.
"""

from __future__ import annotations

import os
import sys

from grass.cli.options import Command, HelpWanted
from grass.errors import GrassError, UsageError

COMMANDS = {
    "enqueue": "add a job to a queue",
    "show": "show workers, queues and jobs",
    "logs": "print what a job wrote",
    "wait": "wait until jobs have ended",
    "cancel": "end jobs",
    "create-queue": "create a queue",
    "delete-queue": "delete a queue",
    "pause": "start no more jobs",
    "resume": "start jobs again",
    "prune": "forget old jobs and their output",
    "start": "start the daemon in the background",
    "stop": "stop the daemon; running jobs go on",
    "restart": "stop the daemon and start it again",
    "daemon": "run the daemon in the foreground",
}
INTERRUPTED = 130
_BROKEN_PIPE = 141


def main() -> int:
    """Run the command that the process was called with; return its exit code."""
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except OSError as error:
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"grass: {where}{error.strerror}", "")
        return GrassError.exit_code
    return code


def dispatch(words: list[str]) -> int:
    """Run one command; return its exit code."""
    name = words[0] if words else "--help"
    if name in COMMANDS:
        return _run(name, words[1:])
    if name in ("-h", "--help", "help"):
        return _help(words[1:])
    if name in ("-V", "--version"):
        from grass import __version__

        sys.stdout.write(f"grass {__version__}\n")
        return 0
    return _unknown(name)


def command(name: str) -> Command:
    """Import a command's module and return its description."""
    module = "grass.cli." + name.replace("-", "_")
    __import__(module)
    found = sys.modules[module].COMMAND
    assert isinstance(found, Command)
    return found


def _run(name: str, words: list[str]) -> int:
    chosen = command(name)
    try:
        return chosen.run(words)
    except HelpWanted:
        return _help([name])
    except UsageError as error:
        usage = "" if "\n" in error.message else f"see `grass {name} --help`"
        hint = error.hint or usage
        _complain(f"grass {name}: {error.message}", hint)
        return error.exit_code
    except GrassError as error:
        _complain(f"grass: {error.message}", error.hint)
        return error.exit_code


def _help(words: list[str]) -> int:
    from grass.cli import help as texts

    if words and words[0] not in COMMANDS:
        return _unknown(words[0])
    if words:
        sys.stdout.write(texts.of_command(words[0], command(words[0])))
    else:
        sys.stdout.write(texts.of_all(COMMANDS))
    return 0


def _drop_output() -> None:
    """Keep what is left in the buffer from failing again when Python closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    kind = "option" if name.startswith("-") else "command"
    near = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean `grass {near[0]}`?" if near else "`grass --help` lists all"
    _complain(f"grass: there is no {kind} `{name}`", hint)
    return UsageError.exit_code


def _complain(message: str, hint: str) -> None:
    """Print an error; after one that spans lines, the hint gets a line of its own."""
    from grass.cli.safe import safe_lines

    separator = "\n" if "\n" in message else " "
    text = f"{message}{separator}({hint})" if hint else message
    sys.stderr.write(safe_lines(text) + "\n")
