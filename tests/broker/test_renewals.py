"""Machines that join again: they show a token that counts, and keep their name."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage
from tests.support.building import BOOT, units

from grass.broker.core.calls import (
    Enqueue,
    Enrol,
    FromWorker,
    NewJob,
    NewToken,
    RevokeToken,
    TouchToken,
)
from grass.errors import Forbidden, Refused
from grass.link.messages import Hello
from grass.model.access import Token, hash_of, rights_of
from grass.model.jobs.spec import JobPatch

W1, W2 = (f"{number:016x}" for number in (1, 2))
Meanwhile = Callable[[Brokerage], None]
CLIENTS = ["read", "submit", "operate"]
ROLES = [*CLIENTS, "admin", "worker", "machine"]


def code(broker: Brokerage, role: str) -> str:
    ends = broker.now_us + 3600 * SECOND
    call = NewToken(ME, role, hash_of("code"), is_code=True, expires_at=ends)
    made: Token = broker.call(call)
    return made.name


def join(
    broker: Brokerage,
    role: str,
    secret: str,
    shown: str | None = None,
    worker: str | None = W1,
    instance: str = "home",
) -> str:
    """Join with a new code; give the name that the machine has got."""
    call = Enrol(code(broker, role), "lab", worker, hash_of(secret))
    call.instance = instance
    if shown is not None:
        call.shown_name, _, its_secret = shown.partition(".")
        call.shown = hash_of(its_secret)
    made: Token = broker.call(call)
    assert made.role == role
    return made.name


def use(broker: Brokerage, secret: str, name: str = "lab") -> None:
    broker.call(TouchToken(name, hash_of(secret)))


def call_in(broker: Brokerage, worker: str = W1, instance: str = "home") -> None:
    """Have the worker be known, and gone again."""
    said = Hello(worker, "lab", BOOT, units("{cpu:1}"), [], [], instance=instance)
    broker.call(FromWorker(worker, said, "10.0.0.7"))
    broker.leave(worker)


def machines(broker: Brokerage) -> list[str]:
    found = broker.state.tokens.values()
    return sorted(one.name for one in found if not one.is_code and one.holds(1))


def counts(broker: Brokerage, *secrets: str) -> list[bool]:
    return [broker.state.tokens["lab"].fits(hash_of(one)) for one in secrets]


@pytest.mark.parametrize("before", CLIENTS)
@pytest.mark.parametrize("after", ROLES)
def test_a_client_that_shows_its_token_keeps_its_name(
    broker: Brokerage, meanwhile: Meanwhile, before: str, after: str
) -> None:
    join(broker, before, "first")
    use(broker, "first")
    job = NewJob(("true",), JobPatch(hold=True))
    broker.call(Enqueue("token:lab", [job]))
    meanwhile(broker)
    assert join(broker, after, "second", "lab.first") == "lab"
    meanwhile(broker)
    assert machines(broker) == ["lab"]
    assert broker.state.tokens["lab"].role == after
    # A former secret is good for no more than it was.
    gains = rights_of(after) - rights_of(before)
    assert counts(broker, "first", "second") == [not gains, True]
    use(broker, "second")
    meanwhile(broker)
    assert counts(broker, "first", "second") == [False, True]


@pytest.mark.parametrize("shown", [None, "lab.wrong", "lab.", "other.first", "."])
@pytest.mark.parametrize("role", ["submit", "admin"])
def test_a_code_alone_takes_no_name_over(
    broker: Brokerage, role: str, shown: str | None
) -> None:
    join(broker, "submit", "first")
    before = broker.state.tokens["lab"]
    assert join(broker, role, "thief", shown, W2) == "lab-2"
    assert broker.state.tokens["lab"] == before
    assert counts(broker, "first", "thief") == [True, False]


@pytest.mark.parametrize("role", ["submit", "machine"])
def test_a_code_shown_as_a_token_is_none(broker: Brokerage, role: str) -> None:
    by = code(broker, "admin")
    assert join(broker, role, "thief", f"{by}.code", W2) == "lab"
    assert broker.state.tokens[by].is_code


def revoked(broker: Brokerage) -> None:
    broker.call(RevokeToken(ME, "lab"))


def expired(broker: Brokerage) -> None:
    token = broker.state.tokens["lab"]
    token.expires_at = broker.now_us
    broker.state.batch.changes.tokens["lab"] = token
    broker.flush()


@pytest.mark.parametrize("end", [revoked, expired])
def test_a_client_whose_token_counts_no_more_gets_a_name_as_anybody(
    broker: Brokerage, end: Meanwhile
) -> None:
    join(broker, "submit", "first")
    broker.call(Enqueue("token:lab", [NewJob(("true",), JobPatch(hold=True))]))
    end(broker)
    assert join(broker, "submit", "second", "lab.first") == "lab-2"


def test_the_secret_before_the_last_renewal_renews_nothing(broker: Brokerage) -> None:
    join(broker, "submit", "first")
    join(broker, "submit", "second", "lab.first")
    use(broker, "second")
    assert join(broker, "submit", "thief", "lab.first") == "lab-2"
    assert counts(broker, "second", "thief") == [True, False]


@pytest.mark.parametrize("role", ["worker", "machine"])
def test_a_client_becomes_a_worker_and_its_token_is_bound(
    broker: Brokerage, meanwhile: Meanwhile, role: str
) -> None:
    join(broker, "submit", "first")
    assert join(broker, role, "second", "lab.first") == "lab"
    meanwhile(broker)
    assert broker.state.tokens["lab"].worker == W1
    use(broker, "second")
    with pytest.raises(Refused, match="has a token already"):
        join(broker, role, "thief")


def known_worker(broker: Brokerage) -> None:
    """Have a worker whose token is in use, and that is away."""
    join(broker, "machine", "first")
    use(broker, "first")
    call_in(broker)


def test_a_client_is_no_worker_that_is_known_by_its_own_token(
    broker: Brokerage,
) -> None:
    known_worker(broker)
    assert join(broker, "submit", "client", worker=W2) == "lab-2"
    for end in (lambda _: None, revoked):
        end(broker)
        with pytest.raises(Refused, match="does not show its token"):
            join(broker, "machine", "thief", "lab-2.client", W1)
    assert machines(broker) == ["lab-2"]


@pytest.mark.parametrize("role", CLIENTS)
def test_a_worker_that_joins_as_a_client_works_no_more(
    broker: Brokerage, meanwhile: Meanwhile, role: str
) -> None:
    known_worker(broker)
    assert join(broker, role, "second", "lab.first") == "lab"
    meanwhile(broker)
    assert machines(broker) == ["lab"]
    use(broker, "second")
    with pytest.raises(Forbidden, match="no token belongs to this worker"):
        call_in(broker)
    for shown in (None, "lab.first"):
        with pytest.raises(Refused, match="does not show its token"):
            join(broker, "machine", "thief", shown)
    assert join(broker, "machine", "third", "lab.second") == "lab"
    call_in(broker)


@pytest.mark.parametrize("worker", [W2, None])
@pytest.mark.parametrize("role", ["submit", "machine"])
def test_a_copy_with_an_id_of_its_own_is_a_machine_of_its_own(
    broker: Brokerage, role: str, worker: str | None
) -> None:
    known_worker(broker)
    assert join(broker, role, "second", "lab.first", worker) == "lab-2"
    assert counts(broker, "first", "second") == [True, False]


def test_a_client_stays_when_the_worker_it_was_is_forgotten(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    known_worker(broker)
    join(broker, "submit", "second", "lab.first")
    use(broker, "second")
    broker.forget("lab")
    meanwhile(broker)
    assert machines(broker) == ["lab"]
    assert broker.state.tokens["lab"].worker is None
    assert join(broker, "machine", "other", worker=W1) == "lab-2"
