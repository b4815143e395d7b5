"""From the words of a shell to one command's module, and from errors to exit codes.

No mistake of a user ends in a traceback: an error is one line on stderr and a stable
exit code. A closed pipe behind stdout ends a command without a message. The traceback
of a defect is kept in a file, which the line names.
"""

from __future__ import annotations

import os
import sys

from grass import __version__
from grass.cli.parsing.options import Command, HelpWanted
from grass.client.connection import THIS_DAEMON, last_answer
from grass.errors import GrassError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType
    from typing import TextIO

COMMANDS = {
    "enqueue": "add a job to a queue",
    "run": "run a job in the foreground",
    "shell": "open a shell as a job",
    "show": "show workers, queues and jobs",
    "top": "watch and steer on the whole terminal",
    "explain": "say why a job waits, or how it ended",
    "logs": "print what jobs wrote",
    "usage": "print what a job used over time",
    "events": "print what happened",
    "wait": "wait until jobs have ended",
    "cancel": "end jobs",
    "rerun": "run jobs again that have ended",
    "edit": "change jobs that have not started",
    "hold": "keep jobs from starting",
    "release": "let held jobs start",
    "suspend": "stop running jobs where they are",
    "continue": "let suspended jobs go on",
    "signal": "send a signal to running jobs",
    "remove": "forget jobs that have ended",
    "prune": "forget old jobs and their output",
    "config": "show and change the settings",
    "create-queue": "create a queue",
    "edit-queue": "change a queue",
    "delete-queue": "delete a queue",
    "pause": "start no more jobs",
    "resume": "start jobs again",
    "drain": "start nothing new on a unit or worker",
    "capacity": "show, add and remove units",
    "workers": "show the workers, or forget one",
    "gpu": "show the GPUs and who is on them",
    "timeline": "show who held which units, for how long",
    "web": "open the dashboard in a browser",
    "profile": "show what was learned of jobs' GPU memory",
    "doctor": "check this machine, and say what to do",
    "pool": "have a cluster's scheduler start workers",
    "up": "ask a pool for workers by hand",
    "token": "let machines join, list and revoke tokens",
    "brokers": "list the brokers of the cluster, and which leads",
    "join": "join the broker of another machine",
    "leave": "forget the broker that was joined",
    "start": "start the daemon in the background",
    "stop": "stop the daemon; running jobs go on",
    "restart": "stop the daemon and start it again",
    "daemon": "run the daemon in the foreground",
    "backup": "copy the queue's database into a file",
    "restore": "put a backup in the place of the database",
    "store": "check the database, or move it",
    "completion": "print a completion script for a shell",
}
ALIASES = {"ls": "show", "ps": "show", "status": "show"}
"""Words that people type to look; they change nothing, so they work."""

MODULES = {"continue": "continue_", "signal": "signal_"}
"""Where a command's module cannot have the command's name."""

_ABOUT_DAEMONS = ("start", "stop", "restart", "daemon", "completion")
"""Commands that change the daemon, or have nothing to do with one."""

_FAILURES = {"run": 124, "wait": 124}
"""The exit codes of Grass's own failures where 1 is that of a job."""
INTERRUPTED = 130
_BROKEN_PIPE = 141
_AGAIN_S = 0.01


def main() -> int:
    """Run the command that the process was called with; return its exit code.

    A command other than a daemon ends the process here, without the interpreter's own
    teardown, which costs a short command a sixth of its time and has nothing to save.
    """
    code = _run_reporting()
    if sys.argv[1:2] != ["daemon"]:
        _flush(sys.stderr)
        os._exit(code)
    return code


def _run_reporting() -> int:
    _open_closed_streams()
    sys.unraisablehook = _repeat_lost_interrupt
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        _flush(sys.stdout)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except OSError as error:
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        _print_error(f"grass: {where}{error.strerror}", "")
        return GrassError.exit_code
    except Exception as error:  # noqa: BLE001 -- no other is raised on purpose
        return _report_defect(error)
    return code


def dispatch(words: list[str]) -> int:
    """Run one command; return its exit code."""
    name = words[0] if words else "--help"
    name = ALIASES.get(name, name)
    if name in COMMANDS:
        code = _run(name, words[1:])
        _compare_versions(name)
        return code
    if name in ("-h", "--help", "help"):
        return _help(words[1:])
    if name in ("-V", "--version"):
        sys.stdout.write(f"grass {__version__}\n")
        return 0
    return _unknown(name)


def command(name: str) -> Command:
    """Import a command's module and return its description."""
    module = "grass.cli.commands." + MODULES.get(name, name.replace("-", "_"))
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
        _print_error(f"grass {name}: {error.message}", hint)
        return error.exit_code
    except GrassError as error:
        _print_error(f"grass: {error.message}", error.hint)
        return error.exit_code


def _report_defect(error: Exception) -> int:
    """Print an exception that nothing raises on purpose, and keep its traceback.

    An answer of another version may lack what this one reads.
    """
    name = sys.argv[1] if sys.argv[1:] else ""
    if name == "daemon":
        # Its log has the traceback.
        raise error
    from grass.cli.printing.crash_report import one_line, write_crash_report

    _flush(sys.stdout)
    path = write_crash_report(error, name)
    if _is_of_another_version():
        text = f"{_versions()}, and cannot use its answer: {one_line(error)}"
        _print_error(f"grass: {text}", _version_step())
    else:
        where = "the text above" if path is None else path
        text = f"`grass {name}` failed by a defect of Grass: {one_line(error)}"
        _print_error(f"grass: {text}", f"please report it with {where}")
    return _FAILURES.get(name, GrassError.exit_code)


def _is_of_another_version() -> bool:
    return last_answer.version not in (None, __version__)


def _versions() -> str:
    return f"{last_answer.peer} is {last_answer.version}, this command {__version__}"


def _version_step() -> str:
    if last_answer.peer == THIS_DAEMON:
        return "`grass restart` brings them together; jobs run on"
    return "give both machines the same version"


def _compare_versions(name: str) -> None:
    """Warn when a daemon answered that is not of this version.

    A daemon that was started before an upgrade runs on with the code it has.
    """
    if not _is_of_another_version() or name in _ABOUT_DAEMONS:
        return
    from grass.cli.printing.streams import warn

    warn(f"{_versions()} ({_version_step()})")


def _help(words: list[str]) -> int:
    from grass.cli.printing import help as texts

    name = ALIASES.get(words[0], words[0]) if words else ""
    if name and name not in COMMANDS:
        return _unknown(name)
    if name:
        sys.stdout.write(texts.of_command(name, command(name)))
    else:
        sys.stdout.write(texts.of_all(COMMANDS))
    return 0


def _open_closed_streams() -> None:
    """Replace a stdout or stderr that was closed when the command started."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- for as long as it runs
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _repeat_lost_interrupt(ignored: UnraisableHookArgs) -> None:
    """Send Ctrl-C again where Python has dropped it, and show every other error.

    Python ignores an exception in a callback of a weak reference or in a finalizer. One
    such callback runs at the end of each import.
    """
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    import signal

    def send_again(_number: int, frame: FrameType | None) -> None:
        # In here it would be dropped once more: on a busy machine the time may be up
        # before this function ends.
        while frame is not None and frame.f_code is not here:
            frame = frame.f_back
        if frame is None:
            signal.raise_signal(signal.SIGINT)
        else:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    here = _repeat_lost_interrupt.__code__
    signal.signal(signal.SIGALRM, send_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        """Its terminal or pipe is closed."""


def _drop_output() -> None:
    """Discard what is left in the buffer, which would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _unknown(name: str) -> int:
    from grass.cli.parsing.guesses import suggestion

    kind = "option" if name.startswith("-") else "command"
    near = suggestion(name, {name: name for name in COMMANDS} | ALIASES)
    hint = f"did you mean `grass {near}`?" if near else "`grass --help` lists all"
    if name == "--broker":
        hint = "it stands after the command: grass show --broker HOST:PORT"
    _print_error(f"grass: there is no {kind} `{name}`", hint)
    return UsageError.exit_code


def _print_error(message: str, hint: str) -> None:
    """Print an error; after one of several lines the hint has a line of its own."""
    from grass.cli.printing.streams import safe_lines

    separator = "\n" if "\n" in message else " "
    text = f"{message}{separator}({hint})" if hint else message
    if "Z" in text:
        from grass.cli.printing.quantities import in_local_time

        text = in_local_time(text)
    sys.stderr.write(safe_lines(text) + "\n")
