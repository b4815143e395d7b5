"""A daemon of another version is pointed out, once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass import __version__

from .conftest import Grass
from .far_end import FarEnd

RESTART = "(`grass restart` brings them together; jobs run on)\n"


@pytest.fixture
def daemon(surroundings: dict[str, str]) -> Iterator[FarEnd]:
    played = FarEnd(Path(surroundings["GRASS_HOME"]))
    yield played
    played.close()


def of_version(version: str, document: object) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 200 OK\r\nGrass-Version: {version}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def test_a_daemon_of_another_version_is_pointed_out_once(
    grass: Grass, daemon: FarEnd
) -> None:
    done = {"jobs": [], "warnings": [], "changed": True}
    daemon.answers["POST /pause"] = of_version("9.9.9", done)
    ran = grass("pause")
    assert (ran.returncode, ran.stdout) == (0, "grass is paused\n")
    told = f"grass: the daemon is 9.9.9, this command {__version__} {RESTART}"
    assert ran.stderr == told


def test_a_daemon_of_the_same_version_is_not(grass: Grass, daemon: FarEnd) -> None:
    done = {"jobs": [], "warnings": [], "changed": True}
    daemon.answers["POST /pause"] = of_version(__version__, done)
    assert grass("pause").stderr == ""
