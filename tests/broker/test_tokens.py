"""Tokens in the broker's core: made, exchanged, bound, revoked, forgotten."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage

from grass.broker import tokens
from grass.broker.calls import BindToken, Enrol, Issued, NewToken, RevokeToken
from grass.errors import Forbidden, GrassError, NotFound, Refused, Unauthorized
from grass.model.rights import ROLES
from grass.model.token import hash_of

HOUR = 3600 * SECOND
Meanwhile = Callable[[Brokerage], None]


def issue(broker: Brokerage, role: str = "machine", **fields: Any) -> Issued:
    made = broker.call(NewToken(ME, role, hash_of("secret"), **fields))
    assert isinstance(made, Issued)
    return made


def code(broker: Brokerage, role: str = "machine", seconds: int = 3600) -> str:
    ends = broker.now_us + (seconds + 1) * SECOND
    return issue(broker, role, is_code=True, expires_at=ends).name


def enrol(broker: Brokerage, by: str, name: str, worker: str | None) -> Issued:
    made = broker.call(Enrol(by, name, worker, hash_of(f"{name} {worker}")))
    assert isinstance(made, Issued)
    return made


def journal(broker: Brokerage, kind: str) -> list[tuple[str, dict[str, Any]]]:
    found = broker.store.events(0, 1000, None, (kind,))
    return [(one.actor, json.loads(one.data)) for one in found]


def names(broker: Brokerage) -> list[str]:
    return sorted(broker.state.tokens)


def test_a_token_is_there_after_a_restart(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    assert issue(broker, "read", name="page") == Issued("page", "read", None)
    meanwhile(broker)
    token = broker.state.tokens["page"]
    assert (token.role, token.created_by, token.is_code) == ("read", ME, False)
    assert token.fits(hash_of("secret"))
    facts = {"name": "page", "role": "read", "code": False}
    assert journal(broker, "token-created") == [(ME, facts)]


def test_names_are_made_up_and_never_twice(broker: Brokerage) -> None:
    assert [issue(broker, "read").name for _ in range(3)] == [
        "read",
        "read-2",
        "read-3",
    ]
    assert [code(broker), code(broker)] == ["code", "code-2"]
    with pytest.raises(Refused, match="there is a token `read` already"):
        issue(broker, "read", name="read")


@pytest.mark.parametrize("name", ["a.b", "", "-", "x" * 64])
def test_a_bad_name_or_role_makes_nothing(broker: Brokerage, name: str) -> None:
    with pytest.raises(GrassError, match="cannot name a token"):
        issue(broker, name=name)
    with pytest.raises(GrassError, match="there is no role `king`"):
        issue(broker, "king")
    assert names(broker) == []


def test_a_code_enrols_many_machines(broker: Brokerage, meanwhile: Meanwhile) -> None:
    by = code(broker)
    first = enrol(broker, by, "laptop", "w1")
    meanwhile(broker)
    second = enrol(broker, by, "laptop", "w2")
    assert (first.name, second.name) == ("laptop", "laptop-2")
    assert first.role == second.role == "machine"
    assert broker.state.tokens["laptop-2"].worker == "w2"
    joined = journal(broker, "machine-joined")
    assert joined[0][0] == "token:laptop"
    assert joined[0][1] == {
        "name": "laptop",
        "worker": "w1",
        "role": "machine",
        "code": by,
    }


def test_a_machine_that_enrols_again_keeps_its_name(broker: Brokerage) -> None:
    by = code(broker)
    enrol(broker, by, "laptop", "w1")
    before = broker.state.tokens["laptop"].hash
    again = enrol(broker, by, "renamed", "w1")
    assert again.name == "laptop"
    assert broker.state.tokens["laptop"].hash != before
    assert names(broker) == [by, "laptop"]


@pytest.mark.parametrize("role", ["read", "submit", "operate"])
def test_a_code_that_is_worth_no_worker_displaces_none(
    broker: Brokerage, role: str
) -> None:
    enrol(broker, code(broker), "laptop", "w1")
    before = broker.state.tokens["laptop"].hash
    made = enrol(broker, code(broker, role), "laptop", "w1")
    assert made.name == "laptop-2"
    assert broker.state.tokens["laptop-2"].worker is None
    assert broker.state.tokens["laptop"].hash == before


def test_an_expired_code_enrols_nobody_and_is_forgotten(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    by = code(broker, seconds=60)
    broker.now_us += 60 * SECOND
    meanwhile(broker)
    with pytest.raises(Unauthorized, match="wrong or has expired"):
        enrol(broker, by, "laptop", "w1")
    with pytest.raises(Unauthorized, match="wrong or has expired"):
        enrol(broker, "nobody", "laptop", "w1")
    issue(broker, "read")
    assert names(broker) == ["read"]
    assert [one.name for one in broker.store.load(0).tokens] == ["read"]


def test_a_token_is_no_code(broker: Brokerage) -> None:
    issue(broker, "admin")
    with pytest.raises(Unauthorized):
        enrol(broker, "admin", "laptop", "w1")


def test_a_revoked_token_is_gone(broker: Brokerage, meanwhile: Meanwhile) -> None:
    issue(broker, "read", name="page")
    broker.call(RevokeToken(ME, "page"))
    meanwhile(broker)
    assert names(broker) == []
    assert journal(broker, "token-revoked") == [(ME, {"name": "page"})]
    with pytest.raises(NotFound, match="there is no token `page`"):
        broker.call(RevokeToken(ME, "page"))


def test_a_token_is_bound_to_the_first_worker_that_uses_it(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    issue(broker, "worker")
    assert broker.call(BindToken("worker", "w1")).changed
    meanwhile(broker)
    assert not broker.call(BindToken("worker", "w1")).changed
    with pytest.raises(Forbidden, match="not the worker's own"):
        broker.call(BindToken("worker", "w2"))
    issue(broker, "worker")
    with pytest.raises(Forbidden, match="not the worker's own"):
        broker.call(BindToken("worker-2", "w1"))
    with pytest.raises(Unauthorized):
        broker.call(BindToken("nobody", "w3"))


def test_there_is_an_end_to_tokens(
    broker: Brokerage, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = code(broker)
    monkeypatch.setattr(tokens, "MOST_TOKENS", 2)
    enrol(broker, by, "a", None)
    with pytest.raises(Refused, match="2 tokens already"):
        issue(broker)
    with pytest.raises(Refused, match="2 tokens already"):
        enrol(broker, by, "b", None)
    assert names(broker) == ["a", by]


def test_no_secret_reaches_the_journal(broker: Brokerage) -> None:
    enrol(broker, code(broker), "laptop", "w1")
    broker.call(RevokeToken(ME, "laptop"))
    written = "".join(one.data for one in broker.store.events(0, 1000, None, ()))
    for secret in ("secret", hash_of("secret").hex()):
        assert secret not in written


@pytest.mark.parametrize("role", ROLES)
def test_every_role_can_be_given(broker: Brokerage, role: str) -> None:
    assert issue(broker, role).role == role
