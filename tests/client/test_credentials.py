"""The brokers that a machine has joined, in a file that only its owner may read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grass.client.credentials import Credentials, JoinedBroker
from grass.config import Home
from grass.errors import Forbidden, GrassError
from grass.model.addresses import Address


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def known(pin: str, *hosts: str, token: str = "laptop.secret") -> JoinedBroker:
    addresses = tuple(Address(host, 7500) for host in hosts or (f"{pin}.org",))
    return JoinedBroker(pin, token, "machine", "laptop", addresses, "c1", "2026-01-02")


def test_without_a_file_nothing_was_joined(home: Home) -> None:
    credentials = Credentials.load(home)
    assert (credentials.all, credentials.current()) == ([], None)
    assert not os.path.exists(home.brokers)


def test_the_broker_joined_last_comes_first(home: Home) -> None:
    Credentials.load(home).add(known("one"))
    Credentials.load(home).add(known("two"))
    credentials = Credentials.load(home)
    assert [one.pin for one in credentials.all] == ["two", "one"]
    assert credentials.current() == known("two")
    assert credentials.by_pin("one") == known("one")
    assert credentials.by_pin("three") is None
    assert credentials.by_address(Address("one.org", 7500)) == known("one")
    assert credentials.by_address(Address("one.org", 7501)) is None


def test_joining_again_renews_the_token_and_keeps_where_it_was_found(
    home: Home,
) -> None:
    Credentials.load(home).add(known("one", "a", "b"))
    Credentials.load(home).add(known("two"))
    Credentials.load(home).add(known("one", "c", "a", token="laptop.newer"))
    first, second = Credentials.load(home).all
    assert (first.pin, first.token, second.pin) == ("one", "laptop.newer", "two")
    assert [one.host for one in first.addresses] == ["c", "a", "b"]
    assert first.place == "c:7500"


def test_a_broker_is_forgotten(home: Home) -> None:
    Credentials.load(home).add(known("one"))
    credentials = Credentials.load(home)
    credentials.remove("one")
    assert credentials.current() is None
    assert Credentials.load(home).all == []
    credentials.remove("never")


def test_only_the_owner_may_read_the_file_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        Credentials.load(home).add(known("one"))
    finally:
        os.umask(before)
    assert os.stat(home.brokers).st_mode & 0o777 == 0o600
    assert sorted(os.listdir(home.folder)) == ["brokers.json", "brokers.lock"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
def test_a_file_that_others_may_read_is_refused_with_the_next_step(
    home: Home, mode: int
) -> None:
    Credentials.load(home).add(known("one"))
    os.chmod(home.brokers, mode)
    with pytest.raises(Forbidden, match="chmod 600") as caught:
        Credentials.load(home)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "7",
        "null",
        '{"pin": 1}',
        '[{"pin": "a"}]',
        json.dumps(
            [{**known("a")._asdict(), "addresses": ["h:1"], "token": "a\r\nX: y"}]
        ),
        json.dumps([{**known("a")._asdict(), "addresses": []}]),
        json.dumps([{**known("a")._asdict(), "addresses": ["not an address"]}]),
        json.dumps([{**known("a")._asdict(), "addresses": ["h"], "pin": None}]),
    ],
)
def test_a_damaged_file_is_one_line_with_the_next_step(home: Home, text: str) -> None:
    Path(home.brokers).write_text(text)
    os.chmod(home.brokers, 0o600)
    with pytest.raises(GrassError, match=r"is damaged \(remove it, and `grass join`"):
        Credentials.load(home)


def test_fields_of_a_later_version_are_ignored(home: Home) -> None:
    Credentials.load(home).add(known("one"))
    [told] = json.loads(Path(home.brokers).read_text())
    Path(home.brokers).write_text(json.dumps([{**told, "later": 1}]))
    assert Credentials.load(home).all == [known("one")]


def test_a_token_does_not_end_up_in_a_log() -> None:
    assert "secret" not in repr(known("one"))
    assert "secret" not in f"{[known('one')]}"


def test_many_callers_at_once_lose_nothing(home: Home) -> None:
    script = (
        "import sys; from grass.client.credentials import *; from grass.config import *"
        "\nfor n in range(5): Credentials.load(Home(sys.argv[1])).add(JoinedBroker("
        "f'{sys.argv[2]}-{n}','t','r','n',(Address('h',1),),'c','2026'))"
    )
    words = [sys.executable, "-c", script, home.folder]
    started = [subprocess.Popen([*words, str(number)]) for number in range(4)]
    assert [one.wait() for one in started] == [0] * 4
    assert len(Credentials.load(home).all) == 20
