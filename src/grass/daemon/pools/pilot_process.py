"""The process of a pilot: a worker's daemon for as long as the engine lets it run.

It is run with the path of a file that holds a token, which is removed once it was read.
The home of the worker is a new folder on this host, as a state directory does not
belong on a network file system; it is removed at the end.

An engine may not find the processes of jobs, which are in sessions of their own. So
this program adopts what its worker leaves, and ends it when the worker has ended: jobs
do not outlive what the engine has lent.

Every job of a pool waits for this process, so it loads little: `subprocess` and
`typing` would take longer than all that it does itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time

from grass.daemon.pools.pilot_variables import ALLOTTED, AWAY_LIMIT, ENDS_AT, OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

STOP = ".stop"
"""Ends the name of a file beside the token's that tells a pilot to end itself."""
BEGAN, ENDED = ".began", ".ended"
"""Ends of names of notes for a broker that cannot ask the engine."""
GRACE_S = 20.0
"""How long jobs have to end when the engine ends this one; Slurm usually gives 30 s."""
_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of `prctl`."""
_PARENT_ENDS = 1
"""PR_SET_PDEATHSIG of `prctl`."""
_LOOK_S = 2.0
_KILL_S = 0.2
"""So soon a process that was killed is over, unless it hangs in the kernel."""
_ASK_LIMIT_S = 5
_NOT_RUN = 127
"""The exit code of a shell where a program cannot be run."""
_CLOCK = (86400, 3600, 60, 1)
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_GPUS = (
    f"grass: {_VISIBLE} is not set here, so this worker does not know which GPUs of"
    " this host are its own and leaves; let the scheduler set it, or a line of --setup"
)


def main(path: str) -> int:
    """Run the worker, and return its exit code."""
    with open(path, encoding="ascii") as file:
        told = json.load(file)
    if told.get("notes"):
        _write(path + BEGAN, str(time.time() + told["time_limit_s"]))
    os.unlink(path)
    try:
        return _run_in_home(told, path + STOP)
    finally:
        if told.get("notes"):
            _write(path + ENDED, "")


def _run_in_home(told: dict[str, Any], stop_file: str) -> int:
    if told["gpus"] and not os.environ.get(_VISIBLE):
        # Another pilot on this host would offer the same ones.
        sys.stderr.write(_NO_GPUS + "\n")
        return 1
    home = _new_folder()
    _prctl(_ADOPT, 1)
    try:
        _write(os.path.join(home, "brokers.json"), json.dumps(told["known"]))
        return _run(home, told, stop_file)
    finally:
        end_rest(GRACE_S)
        _remove(home)


def _run(home: str, told: dict[str, Any], stop_file: str) -> int:
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    program = os.path.join(os.path.normpath(root), "__main__.py")
    command = [sys.executable, "-I", program, "daemon", *told["words"]]
    os.makedirs(told["output"], mode=0o700, exist_ok=True)
    ends_at = _boot_s() + time_left(told["time_limit_s"])
    environment = _environment(home, told, ends_at)
    pid = os.fork()
    if not pid:
        _become(command, environment)
    worker = os.pidfd_open(pid)

    def stop(number: int, _frame: FrameType | None) -> None:
        _stop(worker, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    _wait(worker, stop_file, ends_at)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _environment(home: str, told: dict[str, Any], ends_at: float) -> dict[str, str]:
    environment = {**os.environ, "GRASS_HOME": home, ALLOTTED: _allotted(told)}
    environment[OUTPUT] = told["output"]
    # A broker of an earlier version has not said it.
    environment[AWAY_LIMIT] = str(told.get("away_limit_s", ""))
    environment[ENDS_AT] = str(ends_at)
    if not told["gpus"]:
        # Many engines leave every GPU of a host visible to jobs that asked for none.
        environment[_VISIBLE] = ""
    return environment


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    """Run the worker in this process, which ends when its parent is killed.

    Its keeper's lease ends the jobs then.
    """
    try:
        _prctl(_PARENT_ENDS, signal.SIGTERM)
        _close_all_but_output()
        os.execve(command[0], command, environment)
    except OSError as error:
        os.write(2, f"grass: {command[0]} cannot be run: {error}\n".encode())
    finally:
        os._exit(_NOT_RUN)


def _close_all_but_output() -> None:
    """Close what the worker must not have; the limit of their number may be huge."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > sys.stderr.fileno():
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _stop(worker: int, number: int = signal.SIGTERM) -> None:
    """Send a signal to the worker, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(worker, number)


def _new_folder() -> str:
    """Make a folder on this host; `tempfile` takes longer to load than all the rest."""
    place = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- with a random name
    path = os.path.join(place, f"grass-pilot-{os.urandom(8).hex()}")
    os.mkdir(path, 0o700)
    return path


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _wait(worker: int, stop_file: str, ends_at: float) -> None:
    """Wait for the worker; end it when its broker says so, or its time is over.

    An engine that has lost or forgotten this job cannot end it any more, and some keep
    no time limit. Nothing tells of a new file on the disk of another host, so it is
    looked for.
    """
    waiting = select.poll()
    waiting.register(worker, select.POLLIN)
    while not waiting.poll(_LOOK_S * 1000):
        if _boot_s() >= ends_at or os.path.exists(stop_file):
            _stop(worker)


def end_rest(grace_s: float) -> None:
    """End the jobs that the worker left, and then their keeper."""
    deadline = time.monotonic() + grace_s
    _signal(_jobs(), signal.SIGTERM)
    while (jobs := _jobs()) and (left_s := deadline - time.monotonic()) > 0:
        _wait_for(jobs, left_s)
    while left := [*_children_of(os.getpid()), *_jobs()]:
        _signal(left, signal.SIGKILL)
        _wait_for(left, _KILL_S)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _wait_for(pids: list[int], limit_s: float) -> bool:
    """Wait until one of these processes is over; False: none was in this time."""
    with contextlib.ExitStack() as closing:
        waiting = select.poll()
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return True
            closing.callback(os.close, descriptor)
            waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(limit_s * 1000))


def _jobs() -> list[int]:
    """Return what is below this process but for its children: daemon and keeper."""
    found, level = [], _children_of(os.getpid())
    while level := [one for pid in level for one in _children_of(pid)]:
        found += level
    return found


def _children_of(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _allotted(told: dict[str, Any]) -> str:
    """Return what the engine gave, as `cores,MiB,gpus`; each may be empty.

    Slurm says it. Of other engines it is what they were asked for.
    """
    cores = os.environ.get("SLURM_CPUS_ON_NODE", told["cpus"])
    memory = _slurm_memory(str(cores)) or told["memory_mib"] or ""
    gpus = os.environ[_VISIBLE] if told["gpus"] else ""
    return f"{cores},{memory},{gpus}"


def _slurm_memory(cores: str) -> str:
    """Return how many MiB Slurm says, for the node or for each core; "": neither."""
    each = os.environ.get("SLURM_MEM_PER_CPU", "")
    known = each.isdecimal() and cores.isdecimal()
    of_cores = str(int(each) * int(cores)) if known else ""
    return os.environ.get("SLURM_MEM_PER_NODE", of_cores)


def time_left(limit_s: float) -> float:
    """Return how long the engine lets this job run on.

    Slurm says it. Of other engines it is what they were asked for, less the time since
    the job began: this process was the job's shell, so it began with the job.
    """
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    if end.isdecimal():
        return int(end) - time.time()
    said = _asked_of_slurm(os.environ.get("SLURM_JOB_ID", ""))
    return limit_s - _age_s() if said is None else said


def _asked_of_slurm(job: str) -> float | None:
    if not job.isdecimal():
        return None
    words = ["squeue", "-h", "-j", job, "-o", "%L"]
    reader, writer = os.pipe()
    quiet = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), quiet]
    with open(reader, encoding="ascii", errors="replace") as answer:
        try:
            pid = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
        except OSError:
            return None
        finally:
            os.close(writer)
        in_time = _wait_for([pid], _ASK_LIMIT_S)
        if not in_time:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        # What a wrapper has started may hold the pipe for as long as it likes.
        return clock_s(answer.read().strip()) if in_time else None


def clock_s(text: str) -> float | None:
    """Read `1-02:00:00`, `2:00:00` or `2:00`; None: it is none of these."""
    parts = text.replace("-", ":").split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) > len(_CLOCK):
        return None
    return float(
        sum(int(n) * s for n, s in zip(parts[::-1], _CLOCK[::-1], strict=False))
    )


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _age_s() -> float:
    """Return for how long this process has been there."""
    with open("/proc/self/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    return _boot_s() - ticks / os.sysconf("SC_CLK_TCK")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
