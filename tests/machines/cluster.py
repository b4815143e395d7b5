"""A broker and its workers on a network of their own, as a test uses them."""

import time
from typing import Any

from tests.support.homes import PATIENCE_S
from tests.support.lan import Host, Lan

PORT = 7500


class Cluster:
    """One broker that runs, and workers that join."""

    def __init__(self, lan: Lan, *options: str) -> None:
        self.lan = lan
        self.broker = lan.hosts["broker"]
        self.options = ("--bind", f"0.0.0.0:{PORT}", "--no-worker", *options)
        self.invitation = self.start_broker()

    def start_broker(self) -> str:
        """Run the broker, and return the line that it prints for others."""
        daemon = self.broker.serve(*self.options)
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

    def worker(self, name: str) -> dict[str, Any] | None:
        """Tell what the broker knows of a worker."""
        known = self.broker.client.workers()["workers"]
        return next((dict(one) for one in known if one["name"] == name), None)

    def await_worker(self, name: str, *, connected: bool) -> dict[str, Any]:
        """Wait until a worker is there, or is not."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            known = self.worker(name)
            if known is not None and known["connected"] is connected:
                return known
            assert time.monotonic() < deadline, f"{name} is not as it should be"
            time.sleep(0.05)

    def await_state(self, job: int, state: str, within_s: float = PATIENCE_S) -> None:
        """Wait until a job is in a state."""
        deadline = time.monotonic() + within_s
        while (is_now := self.broker.state(job)) != state:
            assert time.monotonic() < deadline, f"job {job} is {is_now}, not {state}"
            time.sleep(0.05)
