"""`grass token`: lines to join with, a list without secrets, and revoking."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from grass.cli.commands.token import rows

from .conftest import Call
from .fake_daemon import FakeDaemon, problem

NOW = datetime(2026, 1, 2, 3, 10, tzinfo=UTC)
PIN, CODE = "P" * 43, "C" * 22
LAPTOP: dict[str, Any] = {
    "name": "laptop",
    "role": "machine",
    "code": False,
    "worker": "desk",
    "created_at": "2026-01-02T03:04:55Z",
    "created_by": "uid:1000",
    "expires_at": None,
    "used_at": "2026-01-02T03:09:57Z",
}
OPEN = {
    **LAPTOP,
    "name": "code",
    "code": True,
    "worker": None,
    "used_at": None,
    "expires_at": "2026-01-02T04:10:00Z",
}
MADE = {
    "name": "code",
    "role": "machine",
    "expires_at": "2026-01-02T04:10:00Z",
    "token": None,
    "code": CODE,
}


@pytest.fixture
def broker(fake_daemon: FakeDaemon) -> FakeDaemon:
    """A broker that listens for TCP."""
    tcp = {"address": "my.server.com:7500", "pin": PIN}
    fake_daemon.answers["GET /overview"] = {"daemon": {"tcp": tcp}}
    fake_daemon.answers["POST /tokens"] = MADE
    fake_daemon.answers["GET /tokens"] = {"tokens": [LAPTOP, OPEN]}
    return fake_daemon


def test_tokens_and_codes_have_rows() -> None:
    assert rows([LAPTOP, OPEN], NOW) == [
        ["laptop", "machine", "token", "desk", "5m05s ago", "3s ago", ""],
        ["code", "machine", "code", "", "5m05s ago", "", "in 1h00m"],
    ]


def test_the_line_stands_alone_on_stdout(broker: FakeDaemon, call: Call) -> None:
    made = call("token", "new")
    assert made.code == 0
    assert made.out == f"grass join my.server.com:7500/{PIN}/{CODE}\n"
    assert "joins with the role `machine`" in made.err
    assert CODE not in made.err
    assert broker.bodies("POST /tokens") == [
        {"name": None, "hours": None, "code": True}
    ]


def test_options_narrow_what_a_line_is_worth(broker: FakeDaemon, call: Call) -> None:
    words = ("--role", "read", "--name", "page", "--hours", "24.5", "--json")
    made = json.loads(call("token", "new", *words).out)
    assert made == {**MADE, "line": f"grass join my.server.com:7500/{PIN}/{CODE}"}
    asked = {"name": "page", "hours": 24.5, "code": True, "role": "read"}
    assert broker.bodies("POST /tokens") == [asked]


def test_tokens_are_listed(broker: FakeDaemon, call: Call) -> None:
    for words in ((), ("list",)):
        shown = call("token", *words).out.splitlines()
        assert shown[0].split()[:3] == ["NAME", "ROLE", "KIND"]
        assert [line.split()[0] for line in shown[1:]] == ["laptop", "code"]
    assert json.loads(call("token", "list", "--json").out)["tokens"] == [LAPTOP, OPEN]


def test_a_token_is_revoked_by_its_name(broker: FakeDaemon, call: Call) -> None:
    done = {"jobs": [], "warnings": [], "changed": True}
    broker.answers["DELETE /tokens/laptop"] = done
    assert call("token", "revoke", "laptop").out == "revoked laptop\n"
    told = json.loads(call("token", "revoke", "laptop", "--json").out)
    assert told == {"token": "laptop", **done}


def test_a_refusal_is_one_line(broker: FakeDaemon, call: Call) -> None:
    broker.answers["POST /tokens"] = problem(
        "refused", "this daemon listens to no other machine", "`grass daemon --bind`"
    )
    told = call("token", "new")
    assert (told.code, told.out) == (5, "")
    assert told.err == (
        "grass: this daemon listens to no other machine (`grass daemon --bind`)\n"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("make",), "token knows no `make`"),
        (("new", "x"), "`x` is one word too many"),
        (("new", "--hours", "soon"), "--hours must be a number, not `soon`"),
        (("new", "--hours", "0"), "--hours is 0 (give more than 0 and at most 100000)"),
        (("new", "--hours", "-1"), "--hours is -1 (give more than 0"),
        (("new", "--hours", "nan"), "--hours is nan (give more than 0"),
        (("new", "--hours", "1e9"), "--hours is 1e9 (give more than 0"),
        (("revoke",), "the token is missing"),
        (("revoke", "a", "b"), "`b` is one word too many"),
        (("list", "--role", "read"), "--role goes with `token new`"),
    ],
)
def test_wrong_words_are_refused(
    broker: FakeDaemon, call: Call, words: tuple[str, ...], told: str
) -> None:
    answer = call("token", *words)
    assert answer.code == 2
    assert told in answer.err


@pytest.mark.parametrize("name", ["start", "start-2"])
def test_no_code_is_named_as_that_of_a_start(
    broker: FakeDaemon, call: Call, name: str
) -> None:
    refused = call("token", "new", "--name", name)
    assert (refused.code, refused.out) == (2, "")
    assert "is what the code of a start is called" in refused.err
    assert broker.bodies("POST /tokens") == []
