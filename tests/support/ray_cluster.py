"""A Ray cluster of a head and one node on this host, for `make ray-test`.

The head has no cores, so pilots run on the node, whose parts can be killed. Ray must
only see the loopback interface: it would dial an address of this host that its nodes do
not listen on. `GRASS_RAY` names the program.
"""

import json
import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

from tests.support.patience import PATIENCE_S, until
from tests.support.slurm import free_ports

VARIABLE = "GRASS_RAY"
HOST = "127.0.0.1"
CORES, GPUS = 8, 2
NODE_S = 180
"""How long a node may take that starts beside what is left of another."""


class RayCluster:
    """A head with its dashboard, and a node that jobs run on."""

    def __init__(self, folder: Path, token: str = "") -> None:
        """`folder` has a short name: Ray puts sockets there."""
        self.folder = folder
        self._gcs, port = _gcs_port(), free_ports(1)[0]
        self._port = port
        self.address = f"http://{HOST}:{port}"
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "RAY_AUTH_MODE": "token" if token else "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        if token:
            self.environment["RAY_AUTH_TOKEN"] = token
        self._parts: dict[str, subprocess.Popen[bytes]] = {}

    def start_head(self) -> None:
        """Start the head, and wait until its dashboard listens."""
        words = ("--head", f"--port={self._gcs}", f"--dashboard-port={self._port}")
        places = (f"--dashboard-host={HOST}", f"--temp-dir={self.folder}/t")
        self._start("head", *words, *places, "--num-cpus=0", "--num-gpus=0")
        until(self._listens, "the dashboard does not listen")
        if "RAY_AUTH_TOKEN" not in self.environment:
            until(self._nodes, "the head is no node of its own")

    def start_node(self) -> None:
        """Start the node, for the first time or again."""
        offer = (f"--num-cpus={CORES}", f"--num-gpus={GPUS}")
        before = self._nodes()
        self._start("node", f"--address={HOST}:{self._gcs}", *offer)
        come = "the node does not come"
        until(self._nodes, come, lambda nodes: nodes - before, NODE_S)

    def signal_dashboard(self, number: signal.Signals) -> None:
        """Send the dashboard a signal: SIGSTOP makes it hang."""
        for pid in self.processes("head", "dashboard.py"):
            os.kill(pid, number)

    def kill_raylet(self) -> None:
        """Kill the part of the node that starts and ends its processes."""
        (pid,) = self.processes("node", "/raylet/raylet")
        os.kill(pid, signal.SIGKILL)

    def kill_actors(self) -> None:
        """Kill the actors of Ray that have started pilots."""
        for pid in self.processes("node", "ray::JobSupervisor"):
            os.kill(pid, signal.SIGKILL)

    def processes(self, part: str, words: str) -> list[int]:
        """Return the processes of the head or the node with these words."""
        family = _descendants(self._parts[part].pid)
        return [pid for pid in family if words in _command_line(pid)]

    def stop(self) -> None:
        """End all that was started here, and what that left."""
        families = [_descendants(part.pid) for part in self._parts.values()]
        for part in self._parts.values():
            part.kill()
            part.wait(PATIENCE_S)
        for pid in [pid for family in families for pid in family]:
            _kill(pid)

    def stop_node(self) -> None:
        """End what is left of the node but the pilots that were on it."""
        part = self._parts.pop("node")
        pilots = set(self._pilots(part.pid))
        family = [pid for pid in _descendants(part.pid) if pid not in pilots]
        part.kill()
        part.wait(PATIENCE_S)
        for pid in family:
            _kill(pid)

    def _pilots(self, pid: int) -> list[int]:
        return [
            below
            for actor in _descendants(pid)
            if "ray::JobSupervisor" in _command_line(actor)
            for below in _descendants(actor)
        ]

    def _start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._parts[name] = subprocess.Popen(
                [
                    os.environ[VARIABLE],
                    "start",
                    "--block",
                    f"--node-ip-address={HOST}",
                    "--disable-usage-stats",
                    *words,
                ],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _listens(self) -> bool:
        with socket.socket() as one:
            one.settimeout(1)
            return one.connect_ex((HOST, self._port)) == 0

    def _nodes(self) -> set[str]:
        try:
            with urllib.request.urlopen(
                self.address + "/api/v0/nodes", None, 30
            ) as page:
                listed = json.load(page)["data"]["result"]["result"]
        except OSError:
            # A dashboard that has just begun closes connections.
            return set()
        return {one["node_id"] for one in listed if one["state"] == "ALIVE"}


def _gcs_port() -> int:
    """Return a free port below those that Ray gives its workers, 10002 to 19999."""
    return next(port for port in iter(lambda: free_ports(1)[0], 0) if port > 20000)


def _descendants(root: int) -> list[int]:
    found, parents = [], {root}
    for _ in range(10):
        below = [pid for pid, parent in _parents().items() if parent in parents]
        new = [pid for pid in below if pid not in found]
        if not new:
            break
        found += new
        parents = set(new)
    return found


def _parents() -> dict[int, int]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(entry.parent.name)] = int(fields[1])
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
