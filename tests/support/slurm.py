"""A Slurm cluster of three nodes on this host, without root, for one test session.

Or on hosts of a network of their own, whose cables can be pulled.

Each node has four cores, 4000 MiB and two GPUs that are character devices every machine
has. A job in the partition `urgent` preempts those of `main`. Nothing outlives `stop`
but jobs that were started by a node that was killed.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.lan import Lan
from tests.support.patience import PATIENCE_S, until

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
NODES = ("n1", "n2", "n3")
_ADMIN_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_CONFIG = """\
ClusterName=test
SlurmctldHost={head}({head_address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
SlurmdTimeout=10
MessageTimeout={message_timeout_s}
KillWait=2
GresTypes=gpu
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=main Nodes=ALL Default=YES MaxTime=1440 PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=1440 PriorityTier=2
"""
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port}"
    " CPUs=4 RealMemory=4000 Gres=gpu:2"
)
_TRIES = 2
_GRES = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"


def missing_programs() -> list[str]:
    """Return which programs of Slurm this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=_ADMIN_PATH) is None]


class SlurmCluster:
    """A controller and its nodes."""

    def __init__(
        self, folder: Path, message_timeout_s: int = 3, lan: Lan | None = None
    ) -> None:
        """Make its folders; see `start`.

        With a `lan` the controller runs on its host `head`, and each node on its own.
        """
        self.folder = folder
        self._hosts = {} if lan is None else lan.hosts
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": _ADMIN_PATH,
        }
        self.controller: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._message_timeout_s = message_timeout_s
        (folder / "state").mkdir(parents=True)
        for name in NODES:
            (folder / "spool" / name).mkdir(parents=True)
        (folder / "gres.conf").write_text(_GRES)

    def start(self) -> None:
        """Start all, and wait until every node is idle.

        A port that was free may be taken by the time that a daemon listens there: then
        that one ends, and all are started with other ports.
        """
        for _ in range(_TRIES):
            self._configure()
            self.start_controller()
            for name in NODES:
                self.start_node(name)
            with contextlib.suppress(AssertionError):
                until(self._is_decided, "not all nodes are idle")
                if not self._has_ended():
                    return
            self._end_daemons()
        raise AssertionError(f"Slurm does not start: {self.log()}")

    def _configure(self) -> None:
        port, *ports = free_ports(1 + len(NODES))
        named = zip(NODES, ports, strict=True)
        nodes = "\n".join(
            _NODE.format(
                name=name, port=own, host=self._name(name), address=self._address(name)
            )
            for name, own in named
        )
        text = _CONFIG.format(
            head=self._name("head"),
            head_address=self._address("head"),
            port=port,
            user=getpass.getuser(),
            folder=self.folder,
            nodes=nodes,
            message_timeout_s=self._message_timeout_s,
        )
        (self.folder / "slurm.conf").write_text(text)

    def _is_decided(self) -> bool:
        return self._has_ended() or self.idle_nodes() == set(NODES)

    def _has_ended(self) -> bool:
        """Tell whether one of its daemons has ended."""
        return any(one.poll() is not None for one in self._daemons())

    def _daemons(self) -> "list[subprocess.Popen[bytes]]":
        controller = [] if self.controller is None else [self.controller]
        return [*self._nodes.values(), *controller]

    def start_controller(self) -> None:
        """Start the controller, for the first time or again."""
        self.controller = self._spawn("head", "slurmctld", "-D")

    def stop_controller(self) -> None:
        """End the controller; killed, it would forget the jobs of the last seconds."""
        assert self.controller is not None
        self.controller.terminate()
        self.controller.wait(PATIENCE_S)

    def kill_controller(self) -> None:
        """Kill the controller, which forgets the jobs of the last seconds."""
        assert self.controller is not None
        self.controller.kill()
        self.controller.wait(PATIENCE_S)

    def signal_controller(self, number: signal.Signals) -> None:
        """Send the controller a signal: SIGSTOP makes it hang."""
        assert self.controller is not None
        self.controller.send_signal(number)

    def kill_node(self, name: str) -> None:
        """Kill a node's daemon; what it has started goes on."""
        self._nodes[name].kill()
        self._nodes[name].wait(PATIENCE_S)

    def start_node(self, name: str) -> None:
        """Start a node's daemon, for the first time or again."""
        self._nodes[name] = self._spawn(name, "slurmd", "-D", "-N", name)

    def idle_nodes(self) -> set[str]:
        """Return the nodes that the controller calls idle."""
        words = ("sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
        found = subprocess.run(
            self._on("head", words),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return set(found.stdout.split())

    def run(self, *words: str) -> str:
        """Run a command of Slurm, and return what it prints."""
        done = subprocess.run(
            self._on("head", words),
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def log(self) -> str:
        """Return what controller and nodes have said."""
        return "\n".join(path.read_text() for path in self.folder.glob("*.log"))

    def stop(self) -> None:
        """End jobs, nodes and controller."""
        if self.controller is not None and self.controller.poll() is None:
            self.signal_controller(signal.SIGCONT)
            words = ("scancel", "-u", getpass.getuser())
            ending = self._on("head", words)
            subprocess.run(
                ending, env=self.environment, check=False, timeout=PATIENCE_S
            )
        self._end_daemons()

    def _end_daemons(self) -> None:
        for process in self._daemons():
            process.terminate()
            process.wait(PATIENCE_S)

    def _spawn(self, host: str, *words: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{'-'.join(words)}.log").open("ab") as log:
            return subprocess.Popen(
                self._on(host, words),
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _on(self, host: str, words: Sequence[str]) -> Sequence[str]:
        return (*self._hosts[host].inside(), *words) if self._hosts else words

    def _name(self, host: str) -> str:
        return host if self._hosts else "localhost"

    def _address(self, host: str) -> str:
        return self._hosts[host].address if self._hosts else "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        # Of every address: the closed connections of another one hold a port, too.
        one.bind(("", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
