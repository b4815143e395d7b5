"""`grass join` and `grass leave`, between a broker and a daemon that the test plays."""

import io
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grass.client.credentials import Credentials
from grass.config import home
from grass.model.addresses import Invitation
from grass.worker.shell.instance import instance_of

from .conftest import Call, Grass
from .fake_broker import FakeBroker
from .fake_daemon import FakeDaemon, problem

STOPPED = {"jobs": [], "warnings": [], "changed": True}


def line(broker: FakeBroker, code: str = "c0de") -> str:
    return str(Invitation(broker.address, broker.pin, code))


def overview(**daemon: Any) -> dict[str, Any]:
    return {"daemon": {"pid": 4711, "jobs": {}, "tcp": None, **daemon}}


def worker(broker: FakeBroker, **more: Any) -> dict[str, Any]:
    """Give what a worker's daemon tells of its broker."""
    place = str(broker.address)
    link = {"link": f"connected to {place}", "settled": True, "refused": False}
    return {"address": place, "pin": broker.pin, **link, **more}


@pytest.fixture(autouse=True)
def played(fake_daemon: FakeDaemon, fake_broker: FakeBroker) -> None:
    """Answers of a broker that accepts any machine, and of an idle daemon."""
    fake_broker.answers["POST /join"] = enrolled("machine")
    fake_daemon.answers["GET /overview"] = overview()
    restarts_as(fake_daemon, broker=worker(fake_broker))


def restarts_as(fake_daemon: FakeDaemon, **daemon: Any) -> None:
    """Have the daemon tell this of itself once it was stopped."""

    def stop(_: Any) -> dict[str, Any]:
        fake_daemon.answers["GET /overview"] = overview(**daemon)
        return STOPPED

    fake_daemon.answers["POST /daemon/stop"] = stop


def options(*words: str) -> None:
    """Have this machine's daemon been started with options."""
    Path(home().options).write_text(json.dumps(words))


def remembered() -> list[str]:
    words: list[str] = json.loads(Path(home().options).read_text())
    return words


def enrolled(role: str, token: str = "desk.t0ken") -> dict[str, str]:
    return {"token": token, "role": role, "cluster": "c1", "name": "desk"}


def was_restarted(fake_daemon: FakeDaemon) -> bool:
    return fake_daemon.bodies("POST /daemon/stop") == [{"jobs": False}]


def test_a_machine_joins_and_works(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    joined = call("join", line(fake_broker))
    assert (joined.code, joined.err) == (0, "")
    assert joined.out == (
        f"joined the broker at {fake_broker.address} as desk (role machine)\n"
        "this machine works for it now (pid 4711): connected to"
        f" {fake_broker.address}\n"
        "commands go there from now on; `--broker local` means this machine\n"
    )
    [(route, body)] = fake_broker.asked
    assert route == "POST /join"
    identity = Path(home().worker_id).read_text().strip()
    assert (body["code"], body["worker"]) == ("c0de", identity)
    assert body["instance"] == instance_of(home().keeper)
    assert body["name"]
    known = Credentials.load(home()).current()
    assert known is not None
    assert (known.pin, known.token) == (fake_broker.pin, "desk.t0ken")
    assert (known.addresses, known.cluster) == ((fake_broker.address,), "c1")
    assert os.stat(home().brokers).st_mode & 0o777 == 0o600
    assert was_restarted(fake_daemon)


def test_a_machine_that_worked_for_another_broker_is_told_so(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    before = {"address": "other:7500", "pin": "other"}
    fake_daemon.answers["GET /overview"] = overview(broker=before)
    moved = call("join", line(fake_broker))
    assert (
        "this machine works for it now (pid 4711), and no more for other:7500:"
        f" connected to {fake_broker.address}\n"
    ) in moved.out


def test_a_machine_that_joined_another_but_never_worked_for_it_is_not(
    fake_broker: FakeBroker, call: Call
) -> None:
    Credentials.load(home()).add(fake_broker.known()._replace(pin="other"))
    assert "no more for" not in call("join", line(fake_broker)).out


def test_a_broker_that_refuses_the_new_worker_is_a_failure(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    said = "the broker at far:7500 refuses: another machine uses this worker's identity"
    restarts_as(fake_daemon, broker=worker(fake_broker, link=said, refused=True))
    assert call("join", line(fake_broker)) == (
        5,
        "",
        f"grass: the daemon (pid 4711) has no work: {said}\n",
    )


def test_a_daemon_that_does_not_become_a_worker_is_not_said_to_be_one(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    restarts_as(fake_daemon)
    joined = call("join", line(fake_broker))
    assert joined.code == 0
    assert "works for it" not in joined.out
    assert "this machine's daemon is no worker" in joined.err


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--bind=0.0.0.0:7500", "this machine's daemon is a broker for others"),
        ("--no-worker", "this machine is to run no jobs (--no-worker)"),
    ],
)
def test_what_the_daemon_was_told_to_be_stands_whatever_was_joined(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, option: str, why: str
) -> None:
    options(option, "--name=tower")
    for _ in range(2):
        joined = call("join", line(fake_broker))
        assert joined.code == 0
        assert "works for it" not in joined.out
        assert (
            f"grass: {why}: `grass restart --no-broker` makes it a worker instead\n"
        ) in joined.err
    assert not was_restarted(fake_daemon)
    assert remembered() == [option, "--name=tower"]
    later = call("join", "--no-start", line(fake_broker))
    assert "`grass restart --no-broker` makes this machine's daemon" in later.out


def test_the_name_of_before_is_asked_for_and_the_broker_s_counts_from_then_on(
    fake_broker: FakeBroker, call: Call
) -> None:
    options("--name=tower", "--label=big")
    joined = call("join", line(fake_broker))
    assert fake_broker.bodies("POST /join")[0]["name"] == "tower"
    assert "the broker calls this machine `desk`" in joined.err
    assert "as desk (role machine)" in joined.out
    assert remembered() == ["--label=big"]


def test_who_only_enqueues_there_keeps_the_name_of_its_own_worker(
    fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.answers["POST /join"] = enrolled("submit")
    options("--name=tower")
    assert call("join", line(fake_broker)).code == 0
    assert remembered() == ["--name=tower"]


def test_a_name_with_odd_letters_is_refused_before_anything_happens(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    refused = call("join", "--name", "my läptop", line(fake_broker))
    assert refused.code == 2
    assert "`my läptop` cannot be the name of a worker" in refused.err
    assert fake_broker.asked == fake_daemon.asked == []


@pytest.mark.parametrize("pasted", ["{}", "grass join {}", "  {}  "])
def test_the_line_is_taken_as_it_was_printed_or_from_stdin(
    fake_broker: FakeBroker, call: Call, monkeypatch: pytest.MonkeyPatch, pasted: str
) -> None:
    text = pasted.format(line(fake_broker))
    assert call("join", "--no-start", *text.split()).code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(text + "\n"))
    assert call("join", "--no-start").code == 0
    assert len(fake_broker.asked) == 2


def test_no_start_leaves_the_daemon_as_it_is(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    joined = call("join", "--no-start", "--name", "lab", line(fake_broker))
    assert "`grass restart` makes this machine's daemon a worker of it" in joined.out
    assert fake_broker.bodies("POST /join")[0]["name"] == "lab"
    assert fake_daemon.asked == []


def test_a_name_that_the_broker_does_not_take_is_mentioned(
    fake_broker: FakeBroker, call: Call
) -> None:
    joined = call("join", "--no-start", "--name", "lab", line(fake_broker))
    assert joined.err == (
        "grass: the broker calls this machine `desk`: one that joins again keeps its"
        " name, and no two have the same\n"
    )
    assert call("join", "--no-start", "--name", "desk", line(fake_broker)).err == ""


def test_many_joins_at_once_on_a_fresh_home_have_one_identity(
    fake_broker: FakeBroker, grass: Grass
) -> None:
    words = ("join", "--no-start", line(fake_broker))
    with ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(grass, *words) for _ in range(6)]
    assert [run.result().returncode for run in runs] == [0] * 6
    bodies = fake_broker.bodies("POST /join")
    assert len({(body["worker"], body["instance"]) for body in bodies}) == 1
    assert len(bodies) == 6


@pytest.mark.parametrize("role", ["submit", "read", "operate", "a-later-role"])
def test_a_role_that_does_not_work_leaves_the_daemon_alone(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, role: str
) -> None:
    fake_broker.answers["POST /join"] = enrolled(role)
    assert call("join", line(fake_broker)).code == 0
    assert not was_restarted(fake_daemon)
    assert Credentials.load(home()).current() is not None


@pytest.mark.parametrize(
    ("daemon", "why", "remedy"),
    [
        (
            {"jobs": {"queued": 2, "held": 1, "failed": 4}},
            "this machine has 3 unfinished jobs of its own",
            "`grass restart` makes it a worker once they have ended",
        ),
        (
            {"jobs": {"running": 1}, "broker": {"address": "other:7500"}},
            "this machine has 1 unfinished job of another broker",
            "`grass restart` makes it a worker once it has ended",
        ),
        (
            {"tcp": {"address": "here:7500", "pin": "x"}},
            "this machine's daemon is a broker for others",
            "`grass restart --no-broker` makes it a worker instead",
        ),
    ],
)
def test_a_daemon_that_is_needed_goes_on(
    fake_daemon: FakeDaemon,
    fake_broker: FakeBroker,
    call: Call,
    daemon: Any,
    why: str,
    remedy: str,
) -> None:
    fake_daemon.answers["GET /overview"] = overview(**daemon)
    for _ in range(2):
        joined = call("join", line(fake_broker))
        assert joined.code == 0
        assert joined.err == f"grass: {why}: {remedy}\n"
    assert not was_restarted(fake_daemon)
    assert Credentials.load(home()).current() is not None
    told = json.loads(call("join", "--json", line(fake_broker)).out)
    assert told["broker"] == str(fake_broker.address)


def test_joining_again_renews_the_token_while_jobs_run(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    assert call("join", "--no-start", line(fake_broker)).code == 0
    fake_broker.answers["POST /join"] = enrolled("machine", "desk.newer")
    fake_daemon.answers["GET /overview"] = overview(
        jobs={"running": 2}, broker=worker(fake_broker)
    )
    told = json.loads(call("join", "--json", line(fake_broker)).out)
    assert told == {
        "broker": str(fake_broker.address),
        "pin": fake_broker.pin,
        "cluster": "c1",
        "name": "desk",
        "role": "machine",
        "pid": 4711,
        "obstacle": None,
    }
    assert was_restarted(fake_daemon)
    [known] = Credentials.load(home()).all
    assert known.token == "desk.newer"


def test_the_token_that_a_machine_has_is_shown_when_it_joins_again(
    fake_broker: FakeBroker, call: Call
) -> None:
    for token in ("desk.first", "desk.second"):
        fake_broker.answers["POST /join"] = enrolled("machine", token)
        assert call("join", "--no-start", line(fake_broker)).code == 0
    assert fake_broker.tokens == [None, "desk.first"]


def test_what_is_wrong_here_is_found_before_the_broker_gives_a_token(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    fake_daemon.answers["GET /overview"] = problem("error", "out of order", "")
    failed = call("join", line(fake_broker))
    assert failed.code == 1
    assert "out of order" in failed.err
    assert fake_broker.asked == []


def test_a_line_with_another_key_is_refused_before_the_code_is_shown(
    fake_broker: FakeBroker, call: Call
) -> None:
    other = Invitation(fake_broker.address, "x" * 43, "c0de")
    refused = call("join", str(other))
    assert refused.code == 3
    assert "proves the key" in refused.err
    assert fake_broker.asked == []
    assert Credentials.load(home()).all == []


def test_a_code_that_does_not_count_changes_nothing(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.answers["POST /join"] = problem(
        "unauthorized", "this code is not valid", "`grass token new` prints another"
    )
    refused = call("join", line(fake_broker))
    assert refused.code == 5
    assert "this code is not valid" in refused.err
    assert not was_restarted(fake_daemon)
    assert not os.path.exists(home().brokers)


@pytest.mark.parametrize(
    "text", ["", "s3cret", "a:1/s3cret/x", "a:1/s3cret", "a b c d"]
)
def test_what_is_no_line_is_refused_without_being_repeated(
    grass: Grass, text: str
) -> None:
    for ran in (grass("join", *text.split(), input=text), grass("join", input=text)):
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "grass join HOST:PORT/PIN/CODE" in ran.stderr
        assert "s3cret" not in ran.stderr


def test_the_joined_broker_is_left(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    other = fake_broker.known()._replace(pin="other")
    Credentials.load(home()).add(other)
    fake_broker.joined_by(home())
    place = fake_broker.address
    fake_daemon.answers["GET /overview"] = overview(broker=worker(fake_broker))
    left = call("leave")
    assert left.out == (
        f"left the broker at {place}; `grass token revoke laptop` there ends the "
        f"token\ncommands go to {place} from now on\n"
        "this machine's daemon works for it until `grass restart`\n"
    )
    assert Credentials.load(home()).all == [other]
    told = json.loads(call("leave", "--json", str(place)).out)
    assert told == {"left": str(place), "pin": "other", "current": None}
    assert Credentials.load(home()).all == []
    assert fake_broker.connections == 0


def test_a_daemon_of_before_tells_by_its_address_whom_it_works_for(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.joined_by(home())
    broker = {"address": f"else:1,{fake_broker.address}", "link": "", "settled": True}
    fake_daemon.answers["GET /overview"] = overview(broker=broker)
    assert "works for it until" in call("leave").out


@pytest.mark.parametrize("works_for", [None, {"address": "other.host:7500"}])
def test_a_daemon_without_that_broker_is_not_mentioned(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, works_for: Any
) -> None:
    fake_broker.joined_by(home())
    fake_daemon.answers["GET /overview"] = overview(broker=works_for)
    assert "works for it" not in call("leave").out


def test_what_was_not_joined_cannot_be_left(
    fake_broker: FakeBroker, call: Call
) -> None:
    nothing = call("leave")
    assert (nothing.code, nothing.err) == (
        4,
        "grass: this machine has joined no broker\n",
    )
    fake_broker.joined_by(home())
    wrong = call("leave", "else.where")
    assert wrong.code == 4
    assert f"has not joined `else.where` (joined: {fake_broker.address})" in wrong.err
