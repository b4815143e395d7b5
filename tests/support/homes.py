"""A state directory with its daemon, keeper and jobs, as a test uses it.

Commands run as real processes; what they say is read without notices. `end` leaves
nothing behind, whatever the test did: the daemon is killed, the keeper is told to end
every job, and no process of this home may be alive afterwards.
"""

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import grass
from grass.client.client import Client
from grass.config import Home
from grass.errors import NotFound
from grass.keeper.launch import reach_keeper
from tests.support.fifo import Fifo
from tests.support.notices import without_notices
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import await_end, kill, processes_with
from tests.support.stores import IN_POSTGRES, rows_of, url_of

MAIN = str(Path(grass.__file__).with_name("__main__.py"))
GRASS = (sys.executable, "-I", MAIN)

Ran = subprocess.CompletedProcess[str]
Document = dict[str, Any]


class Beside(subprocess.Popen[str]):
    """A command that runs beside a test."""

    def communicate(
        self, input: str | None = None, timeout: float | None = None
    ) -> tuple[str, str]:
        """Return what it says until it ends, without notices."""
        printed, errors = super().communicate(input, timeout)
        return printed, without_notices(errors)


class GrassHome:
    """Everything one test needs to use grass as a person would."""

    def __init__(
        self, tmp_path: Path, folder: Path | None = None, store: str | None = None
    ) -> None:
        """`store` is the URL of a database; without one it is that of all tests."""
        self.folder = folder or tmp_path / "home"
        self.desk = tmp_path / "desk"
        """The directory commands are given in."""
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        self._furnish()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GRASS_")},
            "GRASS_HOME": str(self.folder),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }
        self.store = url_of(self.folder) if IN_POSTGRES else store
        if self.store is not None:
            # In a file: a client that starts a daemon has the tests' own environment.
            self.folder.mkdir(mode=0o700)
            config = f"[store]\nurl = '{self.store}'\n"
            (self.folder / "config.toml").write_text(config)
            (self.folder / "config.toml").chmod(0o600)
        self.grass: tuple[str, ...] = GRASS
        """The words that a command begins with."""
        self.client = Client(Home(str(self.folder)))
        self._beside: list[Beside] = []

    def _furnish(self) -> None:
        """Have an empty desk, and the programs of every home."""
        self.desk.mkdir()
        self.add_program("grass", f'exec {shlex.join(GRASS)} "$@"')
        self.add_program("python", f'exec {shlex.quote(sys.executable)} -S "$@"')

    def add_program(self, name: str, script: str) -> Path:
        """Put a program on the PATH of every command."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def run(
        self,
        *words: str | bytes,
        input: str | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run one command to its end."""
        ran = subprocess.run(
            [*self.grass, *words],
            input="" if input is None else input,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.desk,
            env={**self.environment, **(env or {})},
            timeout=PATIENCE_S,
        )
        assert "failed by a defect of Grass" not in ran.stderr, self.crash_report()
        ran.stderr = without_notices(ran.stderr)
        return ran

    def crash_report(self) -> str:
        """Return the traceback of the last command that failed by a defect."""
        return Path(Home(str(self.folder)).crash_report).read_text()

    def ok(self, *words: str | bytes, **how: Any) -> str:
        """Run a command that must succeed, and return what it printed."""
        ran = self.run(*words, **how)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def shell(self, line: str, cwd: Path | None = None) -> Ran:
        """Run a line as a person types it."""
        ran = subprocess.run(
            ["bash", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.desk,
            env=self.environment,
            timeout=PATIENCE_S,
        )
        ran.stderr = without_notices(ran.stderr)
        return ran

    def popen(self, *words: str) -> Beside:
        """Run a command beside the test; one that it leaves is ended with it."""
        command = Beside(
            [*self.grass, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.desk,
            env=self.environment,
        )
        self._beside.append(command)
        return command

    def _end_beside(self) -> None:
        """End commands beside the test, as one leaves them that fails."""
        while self._beside:
            with self._beside.pop() as command:
                command.kill()

    def enqueue(self, *words: str | bytes, **how: Any) -> int:
        """Enqueue by the command line, and return the id."""
        return int(self.ok("enqueue", *words, **how))

    def enqueue_array(self, *words: str | bytes, **how: Any) -> list[int]:
        """Enqueue several by the command line, and return their ids."""
        first, _, last = self.ok("enqueue", *words, **how).strip().partition("-")
        return list(range(int(first), int(last or first) + 1))

    def wait(self, *ids: int) -> Document:
        """Wait for jobs to end, and return the last one."""
        self.client.wait([str(id) for id in ids], PATIENCE_S)
        return dict(self.client.job(ids[-1]))

    def logs(self, id: int) -> str:
        return b"".join(self.client.output(id)).decode()

    def await_output(self, id: int) -> str:
        """Return what a job has written once there is some, or once it has ended."""

        def looked() -> tuple[str, bool]:
            ended = self.client.job(id)["finished_at"] is not None
            with contextlib.suppress(NotFound):
                return self.logs(id), ended
            return "", ended

        return until(looked, f"job {id} writes nothing", any)[0]

    def state(self, id: int) -> str:
        return str(self.client.job(id)["state"])

    def await_start(self, id: int, news: Fifo) -> int:
        """Return the pid a job tells, once the keeper has told the same."""
        pid = int(news.hear())
        until(
            lambda: self.client.job(id)["pid"],
            f"the start of job {id} was never told",
            lambda told: told == pid,
        )
        return pid

    def states(self, ids: Sequence[int]) -> list[str]:
        return [self.state(id) for id in ids]

    def reason(self, id: int) -> str:
        return str(self.client.job(id)["reason"])

    def log(self) -> str:
        """Return what daemons have logged."""
        return (self.folder / "daemon.log").read_text()

    def await_event(self, kind: str, job: int) -> Document:
        """Wait until the journal tells this of a job."""
        with Client(self.client.home) as aside:
            event = next(aside.follow_events(after=0, job=job, kind=kind))
        return dict(event)

    def document(self) -> Document:
        """Return what `show --all --json` prints."""
        shown: Document = json.loads(self.ok("show", "--all", "--json"))
        return shown

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database beside the daemon."""
        if self.store is not None:
            return rows_of(self.store, query, *values)
        address = f"{(self.folder / 'grass.db').as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
            return db.execute(query, values).fetchall()

    def daemon_pid(self) -> int | None:
        """Return the pid of the daemon that holds this home, if there is one."""
        return _holder(self.folder / "daemon.lock")

    def keeper_pid(self) -> int | None:
        return _holder(self.folder / "keeper" / "lock")

    def kill_daemon(self) -> None:
        pid = self.daemon_pid()
        assert pid is not None, "no daemon to kill"
        kill(pid)
        self.client.close()

    def replace_daemon(self) -> None:
        """Kill the daemon and start another one."""
        self.kill_daemon()
        self.ok("start")

    def restart(self) -> None:
        """Have the daemon replaced by one that takes over in good order."""
        self.ok("restart")
        self.client.close()

    def kill_keeper(self) -> None:
        pid = self.keeper_pid()
        assert pid is not None, "no keeper to kill"
        kill(pid)

    def pretend_other_boot(self) -> None:
        """Make all that was written down look as if an earlier boot had written it."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        earlier = "0" * len(boot)
        for table in ("attempts", "workers"):
            change = f"UPDATE {table} SET body = REPLACE(body, ?, ?)"
            self._change(change, f'"boot":"{boot}"', f'"boot":"{earlier}"')
        records = self.folder / "keeper" / "records"
        records.write_text(records.read_text().replace(boot, earlier))

    def _change(self, statement: str, *values: object) -> None:
        if self.store is not None:
            rows_of(self.store, statement, *values)
            return
        with contextlib.closing(sqlite3.connect(self.folder / "grass.db")) as db:
            db.execute(statement, values)
            db.commit()

    def processes(self) -> list[int]:
        """Find every process of this home: daemon, keeper and jobs."""
        folder = os.fsencode(self.folder)
        marks = [b"GRASS_HOME=" + folder + b"\0", folder + b"/keeper\0"]
        with contextlib.suppress(FileNotFoundError):
            cluster = (self.folder / "cluster").read_text().strip()
            marks.append(f"GRASS_ATTEMPT_ID={cluster}.".encode())
        return sorted(processes_with(*marks))

    def tidy(self) -> None:
        """Leave a daemon as it was when it started, but for the next id."""
        self._end_beside()
        with self.client as client:
            client.pause()
            client.cancel(["all"], grace_s=0, signal=9)
            client.wait(["all"], PATIENCE_S)
            client.prune(0.0)
            client.resume()
            shown = client.overview()
            [worker] = shown["workers"]
            for kind, units in worker["drained"].items():
                for unit in units:
                    client.resume(unit=f"{kind}:{unit}")
            for queue in shown["queues"]:
                if queue["name"] != "default":
                    client.delete_queue(queue["name"])
            for kind, origins in worker["origin"].items():
                for unit, origin in origins.items():
                    if origin not in ("found", "declared"):
                        client.remove_capacity(f"{kind}:{unit}")
        shutil.rmtree(self.desk)
        self._furnish()

    def end(self) -> None:
        """End the daemon, every job and the keeper; nothing may be left."""
        self._end_beside()
        self.client.close()
        daemon = self.daemon_pid()
        if daemon is not None:
            kill(daemon)
        if self.processes():
            _end_jobs(str(self.folder / "keeper"))
        for pid in self.processes():
            # A daemon that was stopped lets go of its lock before its last breath.
            await_end(pid)


def _holder(lock: Path) -> int | None:
    """Return who holds a lock that its holder has written its pid into."""
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(descriptor, 32) or b"0") or None
    finally:
        os.close(descriptor)
    return None


def _end_jobs(directory: str) -> None:
    """Have the keeper, or a successor, kill all jobs; it then leaves by itself."""
    told = 0
    while not told:
        # One that is about to leave may let go of who has just connected.
        with contextlib.suppress(ConnectionError), reach_keeper(directory) as channel:
            channel.settimeout(PATIENCE_S)
            with channel.makefile("rb") as lines:
                told = _end_all(channel, lines)
    await_end(told)


def _end_all(channel: socket.socket, lines: BinaryIO) -> int:
    """End what the keeper has; gives its pid."""
    _say(channel, {"v": "hello"})
    hello = _heard(lines)
    left = {a["id"] for a in hello["attempts"] if a["state"] != "exited"}
    for id in left:
        stop = {"v": "stop", "id": id, "signal": 9, "grace": 0, "reason": "over"}
        _say(channel, stop)
    while left:
        event = _heard(lines)
        if event["e"] == "exited":
            left.discard(event["id"])
    _say(channel, {"v": "forget", "ids": [a["id"] for a in hello["attempts"]]})
    return int(hello["pid"])


def _heard(lines: BinaryIO) -> Document:
    line = lines.readline()
    if not line:
        raise ConnectionError("the keeper is gone")
    heard: Document = json.loads(line)
    return heard


def _say(channel: socket.socket, message: Document) -> None:
    channel.sendall(json.dumps(message).encode() + b"\n")
