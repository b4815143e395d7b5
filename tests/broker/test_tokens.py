"""Tokens in the broker's core: made, exchanged, bound, revoked, forgotten."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage
from tests.support.building import BOOT, units

from grass.broker.core.access import tokens
from grass.broker.core.calls import (
    BindToken,
    Enqueue,
    Enrol,
    FromWorker,
    NewJob,
    NewToken,
    RevokeToken,
    TouchToken,
)
from grass.errors import Forbidden, GrassError, NotFound, Refused, Unauthorized
from grass.link.messages import Hello
from grass.model.access import ROLES, START_CODE, Token, hash_of
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch

HOUR = 3600 * SECOND
W1, W2, W3 = (f"{number:016x}" for number in (1, 2, 3))
Meanwhile = Callable[[Brokerage], None]


def issue(broker: Brokerage, role: str = "machine", **fields: Any) -> Token:
    made = broker.call(NewToken(ME, role, hash_of("secret"), **fields))
    assert isinstance(made, Token)
    return made


def code(broker: Brokerage, role: str = "machine", seconds: int = 3600) -> str:
    ends = broker.now_us + (seconds + 1) * SECOND
    return issue(broker, role, is_code=True, expires_at=ends).name


def enrol(broker: Brokerage, by: str, name: str, worker: str | None) -> Token:
    made = broker.call(Enrol(by, name, worker, hash_of(f"{name} {worker}")))
    assert isinstance(made, Token)
    return made


def journal(broker: Brokerage, kind: str) -> list[tuple[str, dict[str, Any]]]:
    found = broker.store.events(0, 1000, None, (kind,))
    return [(one.actor, json.loads(one.data)) for one in found]


def names(broker: Brokerage) -> list[str]:
    return sorted(broker.state.tokens)


def test_a_token_is_there_after_a_restart(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    made = issue(broker, "read", name="page")
    assert (made.name, made.role, made.expires_at) == ("page", "read", None)
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


def started(broker: Brokerage) -> str:
    """Make the code of a start."""
    ends = broker.now_us + HOUR
    return issue(broker, name=START_CODE, is_code=True, expires_at=ends).name


def test_the_code_of_a_start_replaces_the_one_before(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    assert (code(broker), started(broker)) == ("code", "start")
    meanwhile(broker)
    assert started(broker) == "start"
    assert names(broker) == ["code", "start"]
    assert journal(broker, "token-revoked") == [(ME, {"name": "start"})]


def test_a_start_leaves_a_code_alone_that_is_in_use(broker: Brokerage) -> None:
    enrol(broker, started(broker), "rack", W1)
    assert [started(broker), started(broker)] == ["start-2", "start-2"]
    assert names(broker) == ["rack", "start", "start-2"]
    enrol(broker, "start", "farm", W2)


def test_a_start_leaves_a_machine_of_that_name_alone(broker: Brokerage) -> None:
    enrol(broker, code(broker), "start", W1)
    assert [started(broker), started(broker)] == ["start-2", "start-2"]
    assert names(broker) == ["code", "start", "start-2"]


@pytest.mark.parametrize("name", ["a.b", "", "-", "x" * 64])
def test_a_bad_name_or_role_makes_nothing(broker: Brokerage, name: str) -> None:
    with pytest.raises(GrassError, match="cannot name a token"):
        issue(broker, name=name)
    with pytest.raises(GrassError, match="there is no role `king`"):
        issue(broker, "king")
    assert names(broker) == []


def test_a_code_enrols_many_machines(broker: Brokerage, meanwhile: Meanwhile) -> None:
    by = code(broker)
    first = enrol(broker, by, "laptop", W1)
    meanwhile(broker)
    second = enrol(broker, by, "laptop", W2)
    assert (first.name, second.name) == ("laptop", "laptop-2")
    assert first.role == second.role == "machine"
    assert broker.state.tokens["laptop-2"].worker == W2
    joined = journal(broker, "machine-joined")
    assert joined[0][0] == "token:laptop"
    assert joined[0][1] == {
        "name": "laptop",
        "worker": W1,
        "role": "machine",
        "code": by,
    }


def renew(broker: Brokerage, by: str, secret: str, shown: str | None) -> Token:
    hashed = None if shown is None else hash_of(shown)
    made = broker.call(Enrol(by, "renamed", W1, hash_of(secret), hashed))
    assert isinstance(made, Token)
    return made


def counts(broker: Brokerage, *secrets: str) -> list[bool]:
    return [broker.state.tokens["laptop"].fits(hash_of(one)) for one in secrets]


def test_a_code_makes_so_many_tokens_and_no_more(broker: Brokerage) -> None:
    by = code(broker, "submit")
    for _ in range(tokens.MOST_OF_CODE):
        enrol(broker, by, "laptop", None)
    text = broker.refused(Refused, lambda: enrol(broker, by, "laptop", None))
    assert "machines have joined with this code already" in text
    call = Enrol(by, "laptop", None, hash_of("new"), hash_of("laptop None"))
    call.shown_name = "laptop"
    assert broker.call(call).name == "laptop"
    assert enrol(broker, code(broker), "laptop", None).name != "laptop"


def test_a_machine_is_not_called_as_another_worker_is(broker: Brokerage) -> None:
    [own] = [one.name for one in broker.state.workers.values()]
    by = code(broker)
    assert enrol(broker, by, own, W1).name == f"{own}-2"
    client = code(broker, "submit")
    assert enrol(broker, client, own, None).name == own


def test_a_machine_that_enrols_again_keeps_its_name(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    by, first = code(broker), f"laptop {W1}"
    enrol(broker, by, "laptop", W1)
    broker.call(TouchToken("laptop", hash_of(first)))
    assert renew(broker, by, "second", first).name == "laptop"
    meanwhile(broker)
    assert names(broker) == [by, "laptop"]
    assert counts(broker, first, "second", "other") == [True, True, False]
    renew(broker, by, "third", first)
    assert counts(broker, first, "second", "third") == [True, False, True]
    broker.call(TouchToken("laptop", hash_of(first)))
    assert counts(broker, first, "third") == [True, True]
    broker.call(TouchToken("laptop", hash_of("third")))
    meanwhile(broker)
    assert counts(broker, first, "third") == [False, True]


@pytest.mark.parametrize("shown", [None, "wrong", ""])
def test_no_other_machine_enrols_as_a_worker_that_has_a_token(
    broker: Brokerage, shown: str | None
) -> None:
    by = code(broker)
    enrol(broker, by, "laptop", W1)
    broker.call(TouchToken("laptop"))
    before = broker.state.tokens["laptop"].hash
    with pytest.raises(Refused, match="`grass token revoke laptop` first"):
        renew(broker, by, "thief", shown)
    assert broker.state.tokens["laptop"].hash == before
    assert names(broker) == [by, "laptop"]


def call_in(broker: Brokerage, instance: str = "home") -> None:
    """Have the worker be known, and gone again."""
    said = Hello(W1, "rack", BOOT, units("{cpu:1}"), [], [], instance=instance)
    broker.call(FromWorker(W1, said, "10.0.0.7"))
    broker.leave(W1)


def claim(
    broker: Brokerage, secret: str, shown: str | None, instance: str = "home"
) -> str:
    """Enrol as the worker, with a new code; give the name of its token."""
    hashed = None if shown is None else hash_of(shown)
    call = Enrol(code(broker), "rack", W1, hash_of(secret), hashed, instance=instance)
    made: Token = broker.call(call)
    return made.name


def known_worker(broker: Brokerage) -> None:
    """Have a worker whose token `first` is in use, and that is away."""
    claim(broker, "first", None)
    broker.call(TouchToken("rack", hash_of("first")))
    call_in(broker)


def revoked(broker: Brokerage) -> None:
    broker.call(RevokeToken(ME, "rack"))


def expired(broker: Brokerage) -> None:
    token = broker.state.tokens["rack"]
    token.expires_at = broker.now_us
    broker.state.batch.changes.tokens["rack"] = token
    broker.flush()


def expired_and_forgotten(broker: Brokerage) -> None:
    expired(broker)
    issue(broker, "read")


@pytest.mark.parametrize("end", [revoked, expired, expired_and_forgotten])
def test_a_known_worker_without_a_token_is_given_to_no_other_machine(
    broker: Brokerage, meanwhile: Meanwhile, end: Meanwhile
) -> None:
    known_worker(broker)
    end(broker)
    meanwhile(broker)
    for shown in (None, "wrong", ""):
        with pytest.raises(Refused, match="worker `rack` is known, and this") as told:
            claim(broker, "thief", shown)
        assert told.value.hint == "`grass workers forget rack` first, at the broker"
    made = issue(broker, "worker", name="made")
    with pytest.raises(Forbidden, match="not the worker's own"):
        broker.call(BindToken(made.name, W1))
    assert claim(broker, "second", "first") == "rack"
    assert counts_as(broker, "rack", "first", "second", "thief") == [False, True, False]


def counts_as(broker: Brokerage, name: str, *secrets: str) -> list[bool]:
    return [broker.state.tokens[name].fits(hash_of(one)) for one in secrets]


def test_the_token_before_proves_nothing_once_the_next_was_used(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    known_worker(broker)
    revoked(broker)
    # The replies to the first two are lost.
    for secret in ("second", "third", "fourth"):
        claim(broker, secret, "first")
    with pytest.raises(Refused, match="does not show its token"):
        claim(broker, "thief", "third")
    meanwhile(broker)
    broker.call(TouchToken("rack", hash_of("fourth")))
    with pytest.raises(Refused, match="does not show its token"):
        claim(broker, "thief", "first")
    assert claim(broker, "fifth", "fourth") == "rack"


def test_a_machine_whose_new_token_is_revoked_unused_shows_either(
    broker: Brokerage,
) -> None:
    known_worker(broker)
    revoked(broker)
    claim(broker, "second", "first")
    revoked(broker)
    assert claim(broker, "third", "first") == claim(broker, "fourth", "second")


def test_what_is_left_of_a_token_counts_for_nothing_and_is_not_listed(
    broker: Brokerage,
) -> None:
    known_worker(broker)
    revoked(broker)
    (left,) = [one for one in broker.state.tokens.values() if not one.is_code]
    assert (left.holds(broker.now_us), left.worker) == (False, None)
    with pytest.raises(NotFound):
        broker.call(RevokeToken(ME, left.name))
    with pytest.raises(Unauthorized):
        enrol(broker, left.name, "thief", W2)
    issue(broker, "read", name="rack")


def test_a_worker_that_was_forgotten_may_be_enrolled_by_anybody(
    broker: Brokerage,
) -> None:
    known_worker(broker)
    revoked(broker)
    broker.forget("rack")
    assert [one for one in names(broker) if not one.startswith("code")] == []
    assert claim(broker, "other", None) == "rack"


def test_a_known_worker_with_an_unused_token_is_given_to_no_other_machine(
    broker: Brokerage,
) -> None:
    claim(broker, "first", None)
    call_in(broker)
    with pytest.raises(Refused, match="does not show its token"):
        claim(broker, "thief", None)
    assert claim(broker, "second", "first") == "rack"


def test_the_broker_s_own_worker_is_given_to_no_machine(broker: Brokerage) -> None:
    claim(broker, "first", None)
    said = Hello(W1, "desk-2", BOOT, units("{cpu:1}"), [], [], instance="home")
    broker.call(FromWorker(W1, said))
    broker.leave(W1)
    broker.restart()
    for shown in (None, "first"):
        with pytest.raises(Refused, match="worker `desk-2` is the broker's own"):
            claim(broker, "thief", shown)
    revoked(broker)
    issue(broker, "worker", name="made")
    with pytest.raises(Forbidden):
        broker.call(BindToken("made", W1))


@pytest.mark.parametrize("instance", ["copy", ""])
def test_a_second_instance_renews_no_token_while_the_first_is_connected(
    broker: Brokerage, instance: str
) -> None:
    known_worker(broker)
    said = Hello(W1, "rack", BOOT, units("{cpu:1}"), [], [], instance="home")
    broker.call(FromWorker(W1, said, "10.0.0.7"))
    with pytest.raises(Refused, match="another machine uses this worker") as told:
        claim(broker, "second", "first", instance)
    assert "remove worker-id from the copy's state directory" in str(told.value.hint)
    assert counts_as(broker, "rack", "first", "second") == [True, False]
    broker.leave(W1)
    assert claim(broker, "second", "first", instance) == "rack"


@pytest.mark.parametrize("instance", ["copy", ""])
def test_a_second_instance_renews_no_token_while_attempts_of_the_first_may_run(
    broker: Brokerage, instance: str
) -> None:
    known_worker(broker)
    said = Hello(W1, "rack", BOOT, units("{cpu:1}"), [], [], instance="home")
    broker.call(FromWorker(W1, said, "10.0.0.7"))
    job = broker.enqueue(worker="rack")
    broker.leave(W1)
    with pytest.raises(Refused, match="may still run") as told:
        claim(broker, "second", "first", instance)
    assert "`grass workers forget rack`" in str(told.value.hint)
    assert counts_as(broker, "rack", "first", "second") == [True, False]
    assert claim(broker, "second", "first") == "rack"
    assert broker.job_state(job) is JobState.RUNNING


def test_an_expired_token_can_be_revoked(broker: Brokerage) -> None:
    issue(broker, "read", name="page", expires_at=broker.now_us + 5 * SECOND)
    broker.now_us += 5 * SECOND
    broker.call(RevokeToken(ME, "page"))
    assert names(broker) == []


def test_the_name_of_an_expired_token_is_free(broker: Brokerage) -> None:
    issue(broker, "worker", name="old", expires_at=broker.now_us + 5 * SECOND)
    broker.call(BindToken("old", W1))
    by = code(broker)
    broker.now_us += 5 * SECOND
    assert enrol(broker, by, "laptop", W1).name == "laptop"


def test_no_name_is_given_that_has_unfinished_jobs(broker: Brokerage) -> None:
    job = NewJob(("true",), JobPatch(hold=True))
    broker.call(Enqueue("token:laptop", [job]))
    by = code(broker)
    assert enrol(broker, by, "laptop", W1).name == "laptop-2"
    with pytest.raises(Refused, match="an earlier token `laptop` has jobs here"):
        issue(broker, name="laptop")
    assert issue(broker, name="laptop", is_code=True).name == "laptop"


@pytest.mark.parametrize("worker", ["desk", "", "W" * 16, "0" * 17, "0" * 15 + "\n"])
def test_a_worker_s_id_is_no_name(broker: Brokerage, worker: str) -> None:
    by = code(broker)
    with pytest.raises(GrassError, match="16 hexadecimal digits"):
        enrol(broker, by, "laptop", worker)
    issue(broker, "worker")
    with pytest.raises(GrassError, match="16 hexadecimal digits"):
        broker.call(BindToken("worker", worker))
    assert names(broker) == [by, "worker"]


@pytest.mark.parametrize("role", ["read", "submit", "operate"])
def test_a_code_that_is_worth_no_worker_displaces_none(
    broker: Brokerage, role: str
) -> None:
    enrol(broker, code(broker), "laptop", W1)
    before = broker.state.tokens["laptop"].hash
    made = enrol(broker, code(broker, role), "laptop", W1)
    assert made.name == "laptop-2"
    assert broker.state.tokens["laptop-2"].worker is None
    assert broker.state.tokens["laptop"].hash == before


def test_an_expired_code_enrols_no_machine_and_is_forgotten(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    by = code(broker, seconds=60)
    broker.now_us += 60 * SECOND
    meanwhile(broker)
    with pytest.raises(Unauthorized, match="wrong or has expired"):
        enrol(broker, by, "laptop", W1)
    with pytest.raises(Unauthorized, match="wrong or has expired"):
        enrol(broker, "nobody", "laptop", W1)
    issue(broker, "read")
    assert names(broker) == ["read"]
    assert [one.name for one in broker.store.load(0).tokens] == ["read"]


def test_a_token_is_no_code(broker: Brokerage) -> None:
    issue(broker, "admin")
    with pytest.raises(Unauthorized):
        enrol(broker, "admin", "laptop", W1)


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
    assert broker.call(BindToken("worker", W1)).changed
    meanwhile(broker)
    assert not broker.call(BindToken("worker", W1)).changed
    with pytest.raises(Forbidden, match="not the worker's own"):
        broker.call(BindToken("worker", W2))
    issue(broker, "worker")
    with pytest.raises(Forbidden, match="not the worker's own"):
        broker.call(BindToken("worker-2", W1))
    with pytest.raises(Unauthorized):
        broker.call(BindToken("nobody", W3))


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
    enrol(broker, code(broker), "laptop", W1)
    broker.call(RevokeToken(ME, "laptop"))
    written = "".join(one.data for one in broker.store.events(0, 1000, None, ()))
    for secret in ("secret", hash_of("secret").hex()):
        assert secret not in written


@pytest.mark.parametrize("role", ROLES)
def test_every_role_can_be_given(broker: Brokerage, role: str) -> None:
    assert issue(broker, role).role == role
