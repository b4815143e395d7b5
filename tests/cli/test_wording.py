"""Short texts about jobs: units, requests, ends, owners."""

import os
import pwd

import pytest

from grass.cli.printing.wording import asked, ending, owner, units
from grass.client.connection import last_answer


def test_units_are_written_without_noise() -> None:
    assert units({"gpu": {"0": 1, "1": 1}}) == "gpu:0,1"
    assert units({"gpu": {"0": 0.5}, "cpu": {"3": 1}}) == "gpu:0(0.5) cpu:3"
    assert units({"ram": {"0": 3.5}}) == "ram:3.5G"
    assert units({"vram": {"0": 1, "1": 10}}) == "vram:0(1G),1(10G)"
    assert units({"ram": {"near": 1, "far": 0.25}}) == "ram:near(1G),far(256M)"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"gpu": 0.5, "ram": 8}, "gpu 0.5, ram 8G"),
        ({"ram": 0.4883, "cpu": 1}, "ram 500M, cpu 1"),
        ({"of-a-later-version": "much"}, "of-a-later-version much"),
    ],
)
def test_a_request_is_written_with_its_units(
    request_: dict[str, object], text: str
) -> None:
    assert asked(request_) == text


@pytest.mark.parametrize(
    ("job", "text"),
    [
        ({"exit_code": 3}, "exit 3"),
        ({"signal": 9}, "killed by SIGKILL (out of memory?)"),
        ({"signal": 9, "reason": "time limit"}, "killed by SIGKILL"),
        ({"signal": 9, "state": "cancelled"}, "killed by SIGKILL"),
        ({"signal": 11}, "killed by SIGSEGV (segmentation fault)"),
        ({"signal": 15}, "killed by SIGTERM"),
        ({"signal": 63}, "killed by signal 63"),
        ({}, ""),
    ],
)
def test_an_end_is_told_with_the_name_of_the_signal(
    job: dict[str, object], text: str
) -> None:
    assert ending({"exit_code": None, "signal": None, **job}) == text


def test_owners_are_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_answer, "peer", "the daemon")
    me = os.getuid()
    assert owner(f"uid:{me}") == pwd.getpwuid(me).pw_name
    assert owner("uid:4294967294") == "uid:4294967294"
    assert owner("token:laptop") == "token laptop"
    assert owner("scheduler") == "scheduler"


def test_user_ids_of_another_machine_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_answer, "peer", "the broker at lab:7911")
    assert owner(f"uid:{os.getuid()}") == f"uid:{os.getuid()}"
