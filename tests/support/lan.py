"""Several hosts on one switch, as network namespaces of this machine.

Each host has an address, a name of its own, and a file of names that all of them share
in place of /etc/hosts; nothing touches the network of this machine. A cable that is
pulled swallows packets without a word, as a real one does.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.support.homes import GRASS, GrassHome, Ran
from tests.support.patience import PATIENCE_S

_ENTER = """
mount --bind "$1" /etc/hosts; hostname "$2"
if test -n "$3"; then mount -t tmpfs none "$3"; fi
shift 3; exec "$@"
"""


class Host(GrassHome):
    """One machine: a home, and commands that run on it."""

    def __init__(self, lan: "Lan", name: str, number: int, tmp_path: Path) -> None:
        tmp_path.mkdir()
        super().__init__(tmp_path)
        self.name = name
        self.lan = lan
        self.space = f"{lan.prefix}-{name}"
        self.port = f"{lan.prefix}p{number}"
        self.address = f"{lan.network}.{number}"
        self._hidden = ""
        self.grass = (*self.inside(), *GRASS)
        self._daemons: list[subprocess.Popen[str]] = []

    def inside(self) -> tuple[str, ...]:
        """Give the words that have a command run on this host."""
        return (
            *("nsenter", f"--net=/run/netns/{self.space}", "unshare", "-u", "-m"),
            *("sh", "-c", _ENTER, "sh", str(self.lan.names), self.name, self._hidden),
        )

    def hide(self, folder: Path) -> None:
        """Have what starts on this host from now on find a folder empty."""
        self._hidden = str(folder)
        self.grass = (*self.inside(), *GRASS)

    def serve(self, *options: str) -> subprocess.Popen[str]:
        """Run a daemon in the foreground of this host."""
        with (self.desk / "daemon.log").open("a") as log:
            daemon = subprocess.Popen(
                [*self.grass, "daemon", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.desk,
                env=self.environment,
            )
        self._daemons.append(daemon)
        return daemon

    def said(self) -> str:
        """Return what daemons in the foreground have logged."""
        return (self.desk / "daemon.log").read_text()

    def shell(self, line: str, cwd: Path | None = None) -> Ran:
        """Run a line on this host as a person types it."""
        return subprocess.run(
            [*self.inside(), "bash", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.desk,
            env=self.environment,
            timeout=PATIENCE_S,
        )

    def cut(self) -> None:
        """Pull the cable."""
        self.lan.switch("link", "set", self.port, "down")

    def heal(self) -> None:
        """Put the cable back."""
        self.lan.switch("link", "set", self.port, "up")

    def cut_from(self, *others: "Host") -> None:
        """Have packets between this host and others vanish, and no others."""
        for other in others:
            for here, there in ((self, other), (other, self)):
                # They go to a station that does not exist.
                nowhere = ("lladdr", "02:00:00:00:00:99", "nud", "permanent")
                here._neighbour("replace", there, *nowhere)

    def heal_from(self, *others: "Host") -> None:
        """Let packets to and from others arrive again."""
        for other in others:
            for here, there in ((self, other), (other, self)):
                here._neighbour("del", there)

    def _neighbour(self, verb: str, other: "Host", *words: str) -> None:
        ip("-n", self.space, "neigh", verb, other.address, "dev", "eth0", *words)

    def reset_connections(self) -> None:
        """End this host's TCP connections at once, as if it had noticed a silence."""
        here = ("nsenter", f"--net=/run/netns/{self.space}")
        subprocess.run(
            [*here, "ss", "-K", "-t", "state", "established"],
            check=True,
            capture_output=True,
        )

    def slow_down(self, rate: str) -> None:
        """Let what leaves this host go through a thin line."""
        shape = ("tbf", "rate", rate, "burst", "16kb", "latency", "50ms")
        line = ("tc", "-n", self.space, "qdisc", "add", "dev", "eth0", "root", *shape)
        subprocess.run(line, check=True, capture_output=True)

    def speed_up(self) -> None:
        """Take the thin line away."""
        line = ("tc", "-n", self.space, "qdisc", "del", "dev", "eth0", "root")
        subprocess.run(line, check=True, capture_output=True)

    def move(self, address: str) -> None:
        """Give the host another address, and let its name lead there."""
        here = ("-n", self.space)
        ip(*here, "addr", "flush", "dev", "eth0", "scope", "global")
        ip(*here, "addr", "add", f"{address}/24", "dev", "eth0")
        self.address = address
        self.lan.write_names()

    def end(self) -> None:
        """End everything of this host."""
        with ExitStack() as ends:
            for daemon in self._daemons:
                ends.callback(_end, daemon)
            super().end()


class Lan:
    """A switch with hosts on it."""

    def __init__(
        self,
        tmp_path: Path,
        names: Sequence[str],
        network: str = "10.77.0",
        first: int = 1,
    ) -> None:
        self.network = network
        self.prefix = f"gr{os.getpid() % 100_000}"
        self.names = tmp_path / "hosts"
        self._space = f"{self.prefix}-sw"
        self.hosts = {
            name: Host(self, name, number, tmp_path / name)
            for number, name in enumerate(names, first)
        }
        self.write_names()
        ip("netns", "add", self._space)
        self.switch("link", "add", "br0", "type", "bridge")
        self.switch("link", "set", "br0", "up")
        for host in self.hosts.values():
            self._plug_in(host)

    def switch(self, *words: str) -> None:
        """Tell the switch something."""
        ip("-n", self._space, *words)

    def write_names(self) -> None:
        """Write which address each name leads to, into the same file as before."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{host.address} {host.name}" for host in self.hosts.values()]
        self.names.write_text("\n".join(lines) + "\n")

    def close(self) -> None:
        """End all hosts and take the network down."""
        with ExitStack() as ends:
            ends.callback(ip, "netns", "del", self._space)
            for host in self.hosts.values():
                ends.callback(ip, "netns", "del", host.space)
            for host in self.hosts.values():
                ends.callback(host.end)

    def _plug_in(self, host: Host) -> None:
        ip("netns", "add", host.space)
        here = ("-n", host.space)
        peer = ("peer", "name", host.port, "netns", self._space)
        ip("link", "add", "eth0", "netns", host.space, "type", "veth", *peer)
        self.switch("link", "set", host.port, "master", "br0", "up")
        ip(*here, "addr", "add", f"{host.address}/24", "dev", "eth0")
        ip(*here, "link", "set", "eth0", "up")
        ip(*here, "link", "set", "lo", "up")


def _end(daemon: subprocess.Popen[str]) -> None:
    daemon.kill()
    daemon.communicate()


def ip(*words: str) -> None:
    """Run `ip`, which must succeed."""
    ran = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"ip {' '.join(words)}: {ran.stderr}"


def can_make_hosts() -> bool:
    """Tell whether this machine lets us make network namespaces."""
    name = f"gr{os.getpid()}-try"
    try:
        ip("netns", "add", name)
    except (AssertionError, FileNotFoundError):
        return False
    ip("netns", "del", name)
    return True
