"""Slurm as an engine, through its oldest and plainest commands.

`sbatch` reads the script from its input. The mark of a pilot is the job's comment, and
its pool is the job's name, so one `squeue` lists all pilots of a pool, also those of
which only the mark is known. Ended jobs stay in that list for a while (`MinJobAge`,
300 s by default), and are absent afterwards. So is the job of a controller that was
killed before it wrote its state, though the pilot may still run. A submission that
Slurm refuses may leave a failed job with the mark.

A pilot that needs no login has the variables of `sbatch` itself, of which there are
only a few then: Slurm takes a second to find out those of a login.

Pilots are never requeued: after a node was lost Slurm would start a second one while
the first may still run.
"""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence

from grass.engines.engine_commands import CommandResult, EngineCommands, previewed
from grass.engines.listing import by_mark
from grass.engines.provider import PilotRequest
from grass.errors import CannotAsk, EngineRefusal
from grass.model.pools import PilotReport, PilotState

_FORMAT = "%i|%T|%P|%N|%S|%k|%r"
"""The reason last: a site's own plugin may put anything into it."""
_FIELDS = 7
_TYPED = "--gres=gpu:"
_EXPORTED = frozenset(
    {
        "HOME",
        "KRB5CCNAME",
        "LANG",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SLURM_CONF",
        "USER",
    }
)
_EXPORTED_PREFIXES = ("LC_", "SBATCH_")
"""Variables that programs and `sbatch` need. Others may hold what is private."""
_NOT_SAID = frozenset({"", "(null)", "N/A", "None", "NONE"})
_UNASKED = (
    "Socket timed out",
    "Unable to contact",
    "Connection refused",
    "connect failure",
    "Connection timed out",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "Slurm backup controller",
    "Resource temporarily unavailable",
    "Job update not available right now",
    "Unexpected message received",
    "Protocol authentication error",
    "Could not resolve hostname",
    "Permission denied (publickey",
)
"""Parts of messages which say that the controller gave no answer."""

_UNCONFIGURED = (
    "Could not establish a configuration source",
    "Unable to process configuration file",
)
"""The same of messages which say that the daemon's Slurm has no configuration."""

_NO_NODE = "Requested node configuration is not available"
_UP = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
_STATE_FLAGS = "~#!%$@^-+"
"""After the state of a node that can run jobs; `*` is one that does not respond."""
_PARTITION = "--partition="

STATES: Mapping[str, PilotState] = {
    **dict.fromkeys(
        (
            "PENDING",
            "CONFIGURING",
            "REQUEUED",
            "REQUEUE_FED",
            "REQUEUE_HOLD",
            "RESV_DEL_HOLD",
            "SPECIAL_EXIT",
        ),
        PilotState.PENDING,
    ),
    **dict.fromkeys(
        (
            "RUNNING",
            "COMPLETING",
            "RESIZING",
            "SIGNALING",
            "STAGE_OUT",
            "STOPPED",
            "SUSPENDED",
        ),
        PilotState.RUNNING,
    ),
    **dict.fromkeys(
        (
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "REVOKED",
            "TIMEOUT",
        ),
        PilotState.ENDED,
    ),
}
"""Every state that Slurm documents; any other word is unknown."""


class Slurm:
    """The Slurm that `sbatch` on this host, or behind a prefix, speaks to."""

    def __init__(self, commands: EngineCommands, omitted: Iterable[str] = ()) -> None:
        """`omitted` names options that this site refuses, as `--mem`."""
        self._commands = commands
        self._omitted = frozenset(omitted)

    def preview(self, request: PilotRequest) -> str:
        """Return the call of `sbatch` and its script."""
        return previewed(("sbatch", *self._options(request)), _script(request))

    async def check(self, request: PilotRequest) -> str:
        """Have Slurm test the request without submitting it."""
        words = ("--test-only", *self._options(request))
        answer = await self._commands.run("sbatch", *words, script=_script(request))
        if answer.code and _NO_NODE in answer.words:
            await self._raise_unless_all_up(answer.words, request)
        _raise_if_failed(answer)
        return answer.errors.strip().removeprefix("sbatch: ")

    async def _raise_unless_all_up(self, words: str, request: PilotRequest) -> None:
        """Raise CannotAsk if some nodes are not up: a test counts only those that are.

        After a restart of the controller that is none, for some seconds.
        """
        partition = [one for one in request.options if one.startswith(_PARTITION)]
        listed = await self._commands.run(
            "sinfo", "-h", "-N", "-o", "%N %T", *partition
        )
        if listed.code:
            raise CannotAsk(f"{words}; sinfo: {listed.words}")
        # A node is listed once for each of its partitions.
        lines = (line.partition(" ") for line in listed.output.splitlines())
        states = {name: state.strip() for name, _, state in lines}
        absent = sum(one.rstrip(_STATE_FLAGS) not in _UP for one in states.values())
        if absent:
            raise CannotAsk(
                f"{words}, while {absent} of {len(states)} nodes are not up"
            )

    async def submit(self, request: PilotRequest) -> str:
        """Submit a pilot."""
        words = ("--parsable", *self._options(request))
        answer = await self._commands.run(
            "sbatch",
            *words,
            script=_script(request),
            has_variable=lambda name: request.login or _is_exported(name),
        )
        _raise_if_failed(answer)
        # With several clusters the name of one follows the id.
        engine_id = answer.output.strip().partition(";")[0]
        if not engine_id.isdecimal():
            raise CannotAsk(f"sbatch printed no job id: {answer.words}")
        return engine_id

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        """Read the list of a pool's jobs."""
        words = ("-h", "-t", "all", "-n", name, "-o", _FORMAT)
        answer = await self._commands.run("squeue", *words)
        if answer.code:
            raise CannotAsk(answer.words)
        reports = map(_report, answer.output.splitlines())
        return by_mark((one for one in reports if one is not None), marks)

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        """Cancel jobs; Slurm says nothing of those that it does not know."""
        answer = await self._commands.run("scancel", *engine_ids)
        if answer.code and not _is_over(answer):
            raise CannotAsk(answer.words)

    def _options(self, request: PilotRequest) -> list[str]:
        minutes = max(1, math.ceil(request.time_limit_s / 60))
        options = {
            "--time": str(minutes),
            "--nodes": "1",
            "--ntasks": "1",
            "--cpus-per-task": str(request.cpus),
            "--chdir": request.directory,
            "--output": request.output,
            "--export": "NONE" if request.login else "ALL",
        }
        if request.memory_mib is not None:
            options["--mem"] = f"{request.memory_mib}M"
        own = [_sized(one, request.gpus) for one in request.options]
        if request.gpus:
            options["--gres"] = f"gpu:{request.gpus}"
        kept = {
            name: value for name, value in options.items() if name not in self._omitted
        }
        words = [f"{name}={value}" for name, value in kept.items()]
        found_by = (f"--job-name={request.name}", f"--comment={request.mark}")
        # The last of two equal options counts: the site's own win, but not over those
        # without which a pilot is never found again, or is started a second time.
        return [*words, *filter(None, own), *found_by, "--no-requeue"]


def _sized(option: str, gpus: int) -> str:
    """Return a site's option, with so many GPUs if it names their type; "": none."""
    if not (option.startswith(_TYPED) and option.count(":") > 1):
        return option
    return f"{option.rpartition(':')[0]}:{gpus}" if gpus else ""


def _is_exported(name: str) -> bool:
    return name in _EXPORTED or name.startswith(_EXPORTED_PREFIXES)


def _script(request: PilotRequest) -> str:
    lines = ("#!/bin/sh", *request.setup, f"exec {shlex.join(request.command)}")
    return "\n".join(lines) + "\n"


def _raise_if_failed(answer: CommandResult) -> None:
    if not answer.code:
        return
    words = answer.words.removeprefix("sbatch: error: ")
    if any(part in words for part in _UNCONFIGURED):
        raise CannotAsk(words, "set SLURM_CONF to its file, then `grass restart`")
    if any(part in words for part in _UNASKED):
        raise CannotAsk(words)
    raise EngineRefusal(words)


def _is_over(answer: CommandResult) -> bool:
    """Return whether jobs could not be cancelled because they are no more."""
    over = ("Invalid job id", "already completing", "already completed")
    return any(part in answer.errors for part in over)


def _report(line: str) -> PilotReport | None:
    """Read a line of `squeue`; None: it is none of ours."""
    fields = line.split("|", _FIELDS - 1)
    if len(fields) < _FIELDS:
        return None
    engine_id, word, partition, hosts, start, mark, reason = map(str.strip, fields)
    return PilotReport(
        mark=mark,
        state=STATES.get(word, PilotState.UNKNOWN),
        engine_id=engine_id,
        word=word,
        reason=_said(reason),
        place=" ".join(filter(None, (_said(partition), _said(hosts)))),
        expected_start=_said(start) if word == "PENDING" else "",
    )


def _said(text: str) -> str:
    return "" if text in _NOT_SAID else text
