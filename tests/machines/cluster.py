"""A broker and its workers on a network of their own, as a test uses them."""

from tests.support.homes import Document
from tests.support.lan import Host, Lan
from tests.support.machines import await_worker, worker_of

PORT = 7500
OPTIONS = ("--bind", f"0.0.0.0:{PORT}", "--no-worker")


class Cluster:
    """One broker that runs, and workers that join."""

    def __init__(self, lan: Lan, *options: str) -> None:
        """Start a broker with more options than those of every broker."""
        self.lan = lan
        self._options = OPTIONS + options
        self.broker = lan.hosts["broker"]
        self.invitation = self.start_broker()

    def start_broker(self) -> str:
        """Run the broker, and return the line that it prints for others."""
        daemon = self.broker.serve(*self._options)
        assert daemon.stdout is not None
        return daemon.stdout.readline().strip()

    def host(self, name: str) -> Host:
        return self.lan.hosts[name]

    def join(self, name: str, *options: str) -> Host:
        """Make a host a worker, and wait until the broker knows it."""
        host = self.host(name)
        host.ok("join", "--no-start", self.invitation.removeprefix("grass join "))
        host.serve("--connect", f"broker:{PORT}", *options)
        self.await_worker(name, connected=True)
        return host

    def worker(self, name: str) -> Document | None:
        """Tell what the broker knows of a worker."""
        return worker_of(self.broker, name)

    def await_worker(self, name: str, *, connected: bool) -> Document:
        """Wait until a worker is there, or is not."""
        return await_worker(self.broker, name, connected=connected)

    def cut_off(self, name: str) -> None:
        """Pull a worker's cable; the broker notices at once, not after a silence."""
        self.host(name).cut()
        self.broker.reset_connections()
        self.await_worker(name, connected=False)

    def reconnect(self, name: str) -> None:
        """Put the cable back; the worker connects at once, not after a heartbeat."""
        host = self.host(name)
        host.heal()
        host.reset_connections()
        self.await_worker(name, connected=True)
