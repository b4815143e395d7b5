"""The log of real daemons: one event in each line, and no secret in any of them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, invitation
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

SECRET = "correct-horse-battery"
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:debug|info|warning|error)"
    r' [a-z_]+(?:\.[a-z_]+)*(?: [a-z_]+=(?:[^\s"=\\]+|"(?:[^"\\]|\\.)*"))*'
)


def lines_of(folder: Path) -> list[str]:
    logs = [folder / name for name in ("daemon.log", "keeper/log")]
    return [line for log in logs for line in log.read_text().splitlines()]


def test_every_line_is_an_event_and_none_has_a_secret(machine: Machine) -> None:
    broker, other = machine("broker"), machine("other")
    line = invitation(broker.ok("start", *LOOPBACK, "--log-format", "text"))
    address, _, code = line.split("/")
    other.ok("start", "--log-format", "json")
    other.ok("join", "--name", "rack", line)
    assert machine("third").run("join", f"{line[:-4]}AAAA").returncode != 0
    id = other.enqueue("--env", f"SECRET={SECRET}", "--", f"MORE={SECRET}", "env")
    other.ok("wait", str(id))
    other.kill_keeper()
    await_logged(other, "keeper.lost")
    token = token_of(other)
    for secret in (token, f"{token}wrong"):
        head = f"Authorization: Bearer {secret}"
        url = f"https://{address}/api/v1/overview"
        subprocess.run(
            ["curl", "-sk", "-H", head, url], check=True, capture_output=True
        )
    broker.ok("token", "revoke", "rack")
    await_logged(other, "link.changed", state="refused")
    broker.ok("restart")
    text, objects = lines_of(broker.folder), lines_of(other.folder)
    for secret in (SECRET, token.partition(".")[2], code):
        assert not [line for line in text + objects if secret in line]
    assert [line for line in text if not LINE.fullmatch(line)] == []
    assert all({"ts", "level", "event"} <= set(json.loads(line)) for line in objects)


def await_logged(home: GrassHome, event: str, **fields: str) -> None:
    line = json.dumps({"event": event, **fields})[1:-1]
    until(lambda: line in home.log(), f"no {line}")


def token_of(home: GrassHome) -> str:
    [token] = re.findall(
        r'"token": ?"([^"]+)"', (home.folder / "brokers.json").read_text()
    )
    return str(token)


def test_the_format_is_remembered_and_wins_over_the_setting(machine: Machine) -> None:
    home = machine("home")
    home.folder.mkdir()
    (home.folder / "config.toml").write_text('[log]\nformat = "json"\n')
    home.ok("start")
    assert json.loads(home.log().splitlines()[-1])["event"] == "daemon.ready"
    home.ok("restart", "--log-format", "text")
    home.ok("restart")
    last = home.log().splitlines()[-1]
    assert LINE.fullmatch(last)
    assert " daemon.ready " in last
    refused = home.run("restart", "--log-format", "xml")
    assert refused.returncode == 2
    assert "--log-format is text or json, not `xml`" in refused.stderr


def test_a_failed_start_in_the_foreground_is_a_plain_line(machine: Machine) -> None:
    home = machine("home")
    home.ok("start")
    refused = home.run("daemon")
    assert refused.stderr.startswith("grass: a daemon with pid ")
    refused = home.run("daemon", "--log-format", "json")
    told = json.loads(refused.stderr)
    assert (refused.returncode, told["event"]) == (5, "daemon.failed")
    assert "grass stop" in told["hint"]
