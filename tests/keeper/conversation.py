"""A daemon's end of the conversation with a real keeper, spoken by hand."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path
from typing import Any

from grass.keeper.launch import connect
from tests.support.patience import PATIENCE_S, until

Entry = dict[str, Any]


class Daemon:
    """One connection to a keeper, speaking the protocol by hand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._channel = connect(str(directory))
        self._channel.settimeout(PATIENCE_S)
        self._lines = self._channel.makefile("rb")
        self.send(v="hello")
        self.hello = self.receive()
        self.keeper = int(self.hello["pid"])

    def send(self, **message: Any) -> None:
        """Send a message; ids are made unique, as markers must be on a machine."""
        for name in ("id", "after"):
            if isinstance(message.get(name), str):
                message[name] = self.full_id(message[name])
        if isinstance(message.get("ids"), list):
            message["ids"] = [self.full_id(id) for id in message["ids"]]
        self.send_raw(json.dumps(message).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        self._channel.sendall(data)

    def receive(self) -> Entry:
        line = self._lines.readline()
        if not line:
            raise EOFError
        entry: Entry = json.loads(line)
        for named in [entry, *entry.get("attempts", [])]:
            if isinstance(named.get("id"), str):
                named["id"] = short_id(named["id"])
        return entry

    def full_id(self, id: str) -> str:
        return f"{id}@{self.directory}"

    def expect(self, kind: str, id: str | None = None) -> Entry:
        """Read on to the next event of this kind."""
        while True:
            entry = self.receive()
            if entry["e"] == kind and id in (None, entry.get("id")):
                return entry

    def start(self, id: str, *argv: str, **fields: Any) -> None:
        """Ask for an attempt, without waiting for anything."""
        environment = {"PATH": os.environ["PATH"], "GRASS_ATTEMPT_ID": self.full_id(id)}
        self.send(
            **{
                "v": "start",
                "id": id,
                "argv": argv,
                "env": environment,
                "cwd": str(self.directory),
                "umask": 0o022,
                "output": str(self.output(id)),
                "stderr": None,
                "grace": 15.0,
                "time_limit": None,
                "max_output": None,
                "nice": 0,
                "cpus": None,
                "meta": {"for": id},
                **fields,
            }
        )

    def run(self, id: str, *argv: str, **fields: Any) -> Entry:
        """Run an attempt to its end and return its exit."""
        self.start(id, *argv, **fields)
        return self.expect("exited", id)

    def shell(self, id: str, script: str, **fields: Any) -> Entry:
        return self.run(id, "/bin/sh", "-c", script, **fields)

    def output(self, id: str) -> Path:
        return self.directory / "output" / f"{id}.log"

    def wait_for_output(self, id: str, text: str) -> str:
        """Wait until the job has written the text, and return all that it wrote."""
        path = self.output(id)
        return until(
            lambda: path.read_text() if path.exists() else "",
            f"{id} does not write {text!r}",
            lambda written: text in written,
        )

    def close(self) -> None:
        self._lines.close()
        self._channel.close()


def end_all(directory: Path) -> None:
    try:
        last = Daemon(directory)
    except OSError:
        return
    attempts = {each["id"]: each["state"] for each in last.hello["attempts"]}
    # Backwards, as one that waits would start when the one before it is gone.
    for id, state in reversed(attempts.items()):
        if state != "exited":
            last.send(v="stop", id=id, signal=9, grace=0, reason="test over")
            last.expect("exited", id)
    last.send(v="forget", ids=list(attempts))
    gone = os.pidfd_open(last.keeper)
    last.close()
    assert wait_readable(gone), "the keeper did not leave"
    os.close(gone)


def short_id(id: str) -> str:
    return id.partition("@")[0]


def wait_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], PATIENCE_S)[0])


def kill_and_await(pid: int) -> None:
    """Kill a process by descriptor and return when it is gone."""
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    assert wait_readable(descriptor)
    os.close(descriptor)


def alive(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")
