"""Three hosts with a broker each, one with their database, and one of a client.

Each is a network namespace, so that any two of them can be cut off from each other: a
packet then vanishes without a word. The wall clocks of the brokers are an hour apart.
"""

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

from tests.support.lan import Host, Lan
from tests.support.patience import until
from tests.support.postgres import PORT, PostgresServer

HOUR_S = 3600
CLOCKS = {"one": 0, "two": HOUR_S, "three": -HOUR_S}
NAMES = tuple(CLOCKS)
BIND = ("--bind", "0.0.0.0:7500", "--advertise")
SETTINGS = "-c listen_addresses=* -c max_connections=200 -c shared_buffers=32MB"
SLOW = "400kbit"
LASTS_S = 10.0
"""How long something hangs or is cut off."""
_LINE = re.compile(r"^grass join (\S+)$", re.MULTILINE)


class BrokerHosts:
    """The hosts, their brokers, and what can be done to them."""

    def __init__(self, folder: Path) -> None:
        self.lan = Lan(folder, ("db", *NAMES, "laptop"), network="10.79.0")
        self.database, self.laptop = self.lan.hosts["db"], self.lan.hosts["laptop"]
        self.brokers = {name: self.lan.hosts[name] for name in NAMES}
        within = ("nsenter", f"--net=/run/netns/{self.database.space}")
        self.server = PostgresServer(folder / "server", SETTINGS, within)
        _set_clocks(folder, self.brokers)

    def start(self) -> None:
        """Start the database, a leader and two standbys; the laptop joins them."""
        self.server.create()
        access = self.server.folder / "data" / "pg_hba.conf"
        with access.open("a") as file:
            file.write(f"host all all {self.lan.network}.0/24 trust\n")
        self.server.start()
        self.server.execute("CREATE DATABASE grass")
        url = f"postgresql://grass@{self.database.address}:{PORT}/grass"
        first, *others = self.brokers.values()
        first.ok("start", *BIND, first.address, "--name", first.name, "--store", url)
        for one in others:
            line = self._line("broker")
            one.ok("join", "--standby", *BIND, one.address, "--name", one.name, line)
        self.laptop.ok("join", self._line("operate"))
        self.leader()

    def close(self) -> None:
        """End everything."""
        try:
            self.server.stop()
        finally:
            self.lan.close()

    def _line(self, role: str) -> str:
        found = _LINE.search(self.brokers["one"].ok("token", "new", "--role", role))
        assert found is not None
        return found[1]

    def leader(self) -> str:
        """Wait until somebody leads, and all others stand by; tell who does."""

        def look() -> str:
            ran = self.laptop.run("brokers", "--json")
            told = json.loads(ran.stdout)["brokers"] if ran.returncode == 0 else []
            ready = sum(one["heard_s"] < 5 for one in told) == len(NAMES)
            return next((one["name"] for one in told if one["leads"] and ready), "")

        return until(look, "somebody leads, and the others stand by")

    def defects(self) -> list[str]:
        """Return what daemons have logged as errors: all else they cope with."""
        return [
            f"{host.name}: {line[:400]}"
            for host in self.brokers.values()
            for line in host.log().splitlines()
            if "Z error " in line
        ]

    # What is done to the leader; each returns when it is over.

    def kill(self, victim: Host, over: threading.Event) -> None:
        """Kill its daemon, and start it again in the end."""
        victim.kill_daemon()
        over.wait()
        victim.ok("start")

    def stop(self, victim: Host, over: threading.Event) -> None:
        """Stop its daemon in good order, and start it again in the end."""
        victim.ok("stop")
        over.wait()
        victim.ok("start")

    def hang(self, victim: Host, over: threading.Event) -> None:
        """Stop its process for a while."""
        pid = victim.daemon_pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        over.wait()
        os.kill(pid, signal.SIGCONT)

    def cut_from_database(self, victim: Host, over: threading.Event) -> None:
        """Cut it off from the database alone."""
        self._cut(victim, (self.database,), over)

    def cut_from_others(self, victim: Host, over: threading.Event) -> None:
        """Cut it off from all but the database."""
        hosts = (*self.brokers.values(), self.laptop)
        self._cut(victim, tuple(one for one in hosts if one is not victim), over)

    def cut_from_both(self, victim: Host, over: threading.Event) -> None:
        """Pull its cable."""
        victim.cut()
        over.wait()
        victim.heal()

    def _cut(
        self, victim: Host, others: tuple[Host, ...], over: threading.Event
    ) -> None:
        victim.cut_from(*others)
        over.wait()
        victim.heal_from(*others)

    # What is done to the database.

    def restart_database(self, _: Host, over: threading.Event) -> None:
        """Have it end at once, and start it again."""
        self.server.stop()
        over.wait(LASTS_S / 4)
        self.server.start()

    def make_read_only(self, _: Host, over: threading.Event) -> None:
        """Have it take no writes for a while."""
        setting = "default_transaction_read_only"
        self.server.execute(f"ALTER SYSTEM SET {setting} = on")
        self.server.execute("SELECT pg_reload_conf()")
        over.wait(LASTS_S / 2)
        self.server.execute(f"ALTER SYSTEM RESET {setting}")
        self.server.execute("SELECT pg_reload_conf()")

    def slow_down_database(self, _: Host, over: threading.Event) -> None:
        """Let what it says go through a thin line for a while."""
        self.database.slow_down(SLOW)
        over.wait(LASTS_S)
        self.database.speed_up()


def _set_clocks(folder: Path, brokers: dict[str, Host]) -> None:
    """Set the wall clock of each broker's daemons and commands."""
    library = folder / "wrong_clock.so"
    source = Path(__file__).with_name("wrong_clock.c")
    build = ("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl")
    subprocess.run(build, check=True)
    for name, off_s in CLOCKS.items():
        brokers[name].environment["WRONG_CLOCK_S"] = str(off_s)
        brokers[name].environment["LD_PRELOAD"] = str(library)
