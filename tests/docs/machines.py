"""The machines of a page that has several: each is a home of its own on this one.

The reader's own is `desk`, and where a page has other prompts than `$ ` each stands for
another machine. What tells of a network is put in its place before a command runs:
addresses are on loopback, ports are free ones, a line that is pasted is the last that
was printed, and since all have one host name each daemon is given its machine's. A
reader looks at a worker some seconds after it was started; here it is waited for.
"""

import json
import re
import shlex
import socket
from contextlib import ExitStack
from pathlib import Path

from tests.support.homes import GrassHome

from .pages import Step

OWN = ("", "desk")
PORTS = ("7500", "7600")

_LINE = re.compile(r"(?<=grass join )\S+/[\w-]{43}/[\w-]{22}(?![\w-])")
_STARTS = re.compile(r"\bgrass (join|start|restart)\b")
_RESTARTS = re.compile(r"\bgrass restart\b")
_WEB = re.compile(r"\bgrass web\b(?!.* --stop)")
_PAGE = re.compile(r"\b(https?://[\w.]+):\d+/")
_ADDRESS = re.compile(r"\b(?:0\.0\.0\.0|desk):(\d+)\b")

_OPENING = """
on() { local code=$?; export GRASS_HOME=$1; return $code; }
pasted() { grep -o '[^ ]*/[A-Za-z0-9_-]*/[A-Za-z0-9_-]*$' "$TOLD" | tail -n 1; }
await_worker() {
    local code=$? tries=0
    while [ -S "$2/grass.sock" ] && [ $tries -lt 50 ]; do
        GRASS_HOME=$FIRST_HOME GRASS_BROKER=local grass workers 2>&1 |
            grep -Eq "^$1 +(connected|draining)" && break
        tries=$((tries + 1)); sleep 0.1
    done
    return $code
}
"""


class Machines:
    """The homes of a page."""

    def __init__(self, folder: Path, steps: list[Step]) -> None:
        self._folder = folder
        self._ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
        others = dict.fromkeys(step.machine for step in steps)
        self._homes = {
            name: folder / f"home-{name}" for name in others if name not in OWN
        }
        self._has_several = bool(self._homes)
        for name, home in self._homes.items():
            home.mkdir(mode=0o700)
            # What a daemon that is started by the way is given.
            (home / "daemon-options.json").write_text(json.dumps([f"--name={name}"]))

    def environment(self) -> dict[str, str]:
        """Give the variables that the script needs."""
        return {
            "FIRST_HOME": str(self._folder / "home"),
            "TOLD": str(self._folder / "told"),
        }

    def opening(self) -> str:
        """Give what the script begins with."""
        return _OPENING

    def command(self, step: Step) -> str:
        """Write a command as it has to be here."""
        command = _WEB.sub("grass web --port 0", step.command)
        if not self._has_several:
            return command
        name = step.machine or OWN[-1]
        command = _LINE.sub("$(pasted)", command)
        command = command.replace("grass join", f"grass join --name {name}")
        command = re.sub(
            r"grass (start|restart|daemon) --", rf"grass \1 --name {name} --", command
        )
        command = command.replace("--bind ", "--advertise 127.0.0.1 --bind ")
        return f"on {shlex.quote(str(self._home(name)))}\n{self._here(command)}"

    def settling(self, step: Step) -> str:
        """Wait until workers that a command started, or cut off, are connected."""
        own = step.machine in OWN
        pattern = _RESTARTS if own else _STARTS
        if not self._has_several or not pattern.search(step.command):
            return ""
        names = list(self._homes) if own else [step.machine]
        homes = [(name, shlex.quote(str(self._homes[name]))) for name in names]
        return "\n".join(f"await_worker {name} {home}" for name, home in homes)

    def as_elsewhere(self, output: str) -> str:
        """Put a reader's network in the place of ours."""
        for told, port in self._ports.items():
            output = output.replace(f"127.0.0.1:{port}", f"desk:{told}")
        output = _PAGE.sub(r"\1:4004/", output)
        for name, home in self._homes.items():
            output = output.replace(str(home), f"/home/you/.local/state/grass/{name}")
        return output

    def end(self) -> None:
        """End every daemon, keeper and job of the other machines."""
        with ExitStack() as ends:
            for name, home in self._homes.items():
                place = self._folder / f"end-{name}"
                place.mkdir()
                ends.callback(GrassHome(place, home).end)

    def _home(self, name: str) -> Path:
        return self._homes.get(name, self._folder / "home")

    def _here(self, command: str) -> str:
        return _ADDRESS.sub(lambda found: f"127.0.0.1:{self._port(found[1])}", command)

    def _port(self, told: str) -> str:
        return str(self._ports.get(told, told))


def _free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
