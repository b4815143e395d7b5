"""Two machines from one disk, which only their boot ids tell apart."""

from pathlib import Path

import pytest

from grass.client.client import Client
from grass.config import LOCAL, Home
from tests.support.homes import GRASS, GrassHome
from tests.support.machines import LOOPBACK, Machine, copy_home, invitation
from tests.support.patience import until

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("namespaces"),
]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
BOOTED = f'mount --bind "$0" {BOOT_ID} && exec "$@"'


def boot(home: GrassHome, number: int) -> GrassHome:
    """Have all that this home runs from now on see a boot id of its own."""
    file = home.desk / f"boot-{number}"
    file.write_text(f"00000000-0000-0000-0000-{number:012}\n")
    home.grass = ("unshare", "-m", "sh", "-c", BOOTED, str(file), *GRASS)
    return home


def copy_disk(original: GrassHome, copy: GrassHome) -> None:
    """Copy a home as with its whole disk: files keep their numbers."""
    copy_home(original, copy)
    instance: Path = copy.folder / "keeper" / "instance"
    name = instance.read_text().split()[0]
    instance.write_text(f"{name} {instance.stat().st_ino}\n")


def await_link(home: GrassHome, words: str) -> None:
    """Wait until a worker says this of its link."""
    until(lambda: link_of(home), f"its link is never {words}", lambda it: words in it)


def link_of(home: GrassHome) -> str:
    with Client(Home(str(home.folder)), may_start=False, broker=LOCAL) as client:
        return str(client.overview()["daemon"]["broker"]["link"])


def test_two_machines_from_one_disk_displace_each_other_once(machine: Machine) -> None:
    broker, rack = machine("broker"), boot(machine("rack"), 1)
    line = invitation(broker.ok("start", *LOOPBACK, "--no-worker"))
    rack.ok("join", "--name", "rack", line)
    rack.ok("stop")
    clone = boot(machine("clone"), 2)
    copy_disk(rack, clone)
    rack.ok("start")
    await_link(rack, "connected to")
    clone.ok("start")
    await_link(rack, "another machine uses this worker's identity")
    await_link(clone, "connected to")
    rack.run("restart")
    await_link(rack, "another machine uses this worker's identity")
    await_link(clone, "connected to")
    log = (broker.folder / "daemon.log").read_text()
    assert log.count("another machine uses this worker's identity") == 1
    boot(rack, 3).ok("restart")
    await_link(rack, "connected to")
    await_link(clone, "another machine uses this worker's identity")
