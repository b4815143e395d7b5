"""Brokers that share a database: whoever dies or hangs, another one leads."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

from grass.keeper import crash_points
from grass.verbs.calling import Caller
from grass.verbs.task_jobs import calls_of, enqueue_tasks, read_result
from tests.engines.templates import queue_text
from tests.support.brokers import await_lead, leader_of, told
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, copy_home, join, new_line
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import await_end

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]
PROFILE = {
    "job_type": "train.py",
    "model": "NVIDIA A100-SXM4-80GB",
    "samples": [{"job": 70, "at": 1, "peak": 2**30, "ran_s": 90.0}],
    "runs": 1,
    "failures": 0,
}


class Brokers(NamedTuple):
    """A leader, a standby, and a machine that works for whichever leads."""

    first: GrassHome
    second: GrassHome
    rack: GrassHome


@pytest.fixture
def brokers(machine: Machine, database: str) -> Brokers:
    first, second = machine("first"), machine("second")
    first.ok("start", *LOOPBACK, "--name", "one", "--store", database, "--no-worker")
    line = new_line(first, "--role", "broker")
    second.ok("join", "--standby", *LOOPBACK, "--name", "two", line)
    rack = join(first, machine("rack"), "rack")
    until(lambda: len(told(rack)["brokers"]), "two brokers are known", lambda n: n == 2)
    until(lambda: known_places(rack), "the machine knows both", lambda n: n == 2)
    return Brokers(first, second, rack)


def known_places(home: GrassHome) -> int:
    known = json.loads((home.folder / "brokers.json").read_text())
    return len(known[0]["addresses"])


def await_event(lines: IO[str], kind: str, job: int) -> None:
    """Read what a follower of events prints, until it tells this of a job."""
    for line in lines:
        event = json.loads(line)
        if (event["kind"], event["job"]) == (kind, job):
            return
    raise AssertionError(f"no {kind} of job {job} was told")


def test_a_standby_is_told_of_and_sends_those_on_who_ask_it(brokers: Brokers) -> None:
    first, second, rack = brokers
    seen = told(first)
    assert [one["name"] for one in seen["brokers"]] == ["one", "two"]
    assert [one["leads"] for one in seen["brokers"]] == [True, False]
    assert seen["epoch"] == 1
    job = second.enqueue("--", "true")
    second.ok("wait", str(job))
    assert "one" in second.ok("brokers")
    place = seen["brokers"][1]["address"]
    assert rack.ok("show", "--broker", f"{place},{place}")


def test_what_goes_on_does_so_under_the_next_leader(
    brokers: Brokers, gate: Fifo, news: Fifo
) -> None:
    first, second, rack = brokers
    line = f"echo up > {news}; read x < {gate}; echo over; exit 7"
    running = rack.enqueue("--worker", "rack", "--", "sh", "-c", line)
    news.hear()
    waiting = rack.popen("wait", str(running))
    following = rack.popen("logs", "-f", str(running))
    events = rack.popen("events", "-f", "--json", "-n", "1000")
    first.kill_daemon()
    new = rack.enqueue("--worker", "rack", "--", "true")
    await_lead(rack, "two")
    assert new == running + 1
    rack.ok("wait", str(new))
    gate.tell()
    assert waiting.wait() == 7
    assert following.communicate()[0] == "over\n"
    last = rack.enqueue("--worker", "rack", "--", "true")
    rack.ok("wait", str(last))
    total = second.client.overview()["daemon"]["last_event"]
    assert events.stdout is not None
    seen = [json.loads(next(iter(events.stdout)))["seq"]]
    while seen[-1] < total:
        seen.append(json.loads(next(iter(events.stdout)))["seq"])
    assert seen == list(range(1, total + 1))
    assert told(second)["epoch"] == 2


def written(home: GrassHome, job: int) -> str:
    """Return what a job wrote, once its worker has found the broker that leads."""
    ran = until(
        lambda: home.run("logs", str(job)), "no output", lambda ran: ran.returncode == 0
    )
    return ran.stdout


def test_output_is_followed_over_two_quick_failovers(
    brokers: Brokers, tmp_path: Path
) -> None:
    first, second, rack = brokers
    end = tmp_path / "end"
    # It listens where it did before, as machines that only know that place find it.
    place = told(first)["brokers"][0]["address"]
    line = f"i=0; while [ ! -e {end} ]; do echo $i; i=$((i+1)); sleep 0.1; done"
    running = rack.enqueue("--worker", "rack", "--", "sh", "-c", line)
    rack.await_event("started", running)
    following = rack.popen("logs", "-f", str(running))
    assert following.stdout is not None
    seen = following.stdout.readline()
    first.kill_daemon()
    until(lambda: "lead.taken epoch=2" in second.log(), "the second one leads")
    first.ok("start", "--bind", place)
    second.kill_daemon()
    until(lambda: "lead.taken epoch=3" in first.log(), "the first one leads again")
    end.touch()
    seen += following.stdout.read()
    assert following.wait(PATIENCE_S) == 0
    assert seen == written(rack, running)


def test_a_leader_that_hung_writes_nothing_more(
    brokers: Brokers, gate: Fifo, news: Fifo
) -> None:
    first, second, rack = brokers
    pid = first.daemon_pid()
    assert pid is not None
    line = f"echo up > {news}; read x < {gate}; echo over; exit 7"
    running = rack.enqueue("--worker", "rack", "--", "sh", "-c", line)
    news.hear()
    waiting = rack.popen("wait", str(running))
    following = rack.popen("logs", "-f", str(running))
    events = rack.popen("events", "-f", "--json", "-n", "1000")
    assert events.stdout is not None
    next(iter(events.stdout))
    os.kill(pid, signal.SIGSTOP)
    try:
        await_lead(second, "two")
        job = rack.enqueue("--", "true")
        rack.ok("wait", str(job))
        # They turn to the new leader while the old one still holds their connections.
        gate.tell()
        assert waiting.wait() == 7
        assert following.communicate()[0] == "over\n"
        await_event(events.stdout, "finished", running)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert first.enqueue("--", "true") == job + 1
    until(lambda: "lead.lost" in first.log(), "the first one steps down")
    assert leader_of(first) == "two"


def test_where_nobody_leads_a_standby_says_so_at_once(
    brokers: Brokers, database: str, postgres: "PostgresServer"
) -> None:
    first, second, rack = brokers
    name = urlsplit(database).path.removeprefix("/")
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only TO on")
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{name}'"
    )
    first.kill_daemon()
    seen = until(lambda: told(second), "nobody leads", lambda seen: not seen["leader"])
    last = next(one for one in seen["brokers"] if one["id"] == seen["last_leader"])
    assert (last["name"], seen["epoch"]) == ("one", 1)
    assert "taken" in second.ok("brokers")
    refused = rack.run("brokers")
    assert refused.returncode != 0
    assert (
        f"no broker leads at present; the last was {last['address']}, in epoch 1"
        in (refused.stderr)
    )
    postgres.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


def test_a_leader_that_is_stopped_leaves_the_lead_to_a_standby(
    brokers: Brokers,
) -> None:
    first, second, _ = brokers
    first.ok("stop")
    await_lead(second, "two")
    first.ok("start")
    assert leader_of(first) == "two"
    second.ok("stop")
    await_lead(first, "one")


def test_a_copy_of_a_brokers_home_is_refused_by_name(
    machine: Machine, database: str, gate: Fifo, news: Fifo
) -> None:
    first = machine("first")
    first.ok("start", *LOOPBACK, "--store", database)
    running = first.enqueue(f"echo $$ > {news}; read x < {gate}; exit 7")
    first.await_start(running, news)
    copy = copy_home(first, machine("copy"))
    refused = copy.run("start", *LOOPBACK, "--store", database)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert f"in {first.folder} on {os.uname().nodename}" in refused.stderr
    assert "remove worker-id" in refused.stderr
    assert told(first)["epoch"] == 1
    assert first.state(running) == "running"
    # A daemon that was killed comes back at once, as its lock proves.
    first.replace_daemon()
    assert leader_of(first)
    gate.tell()
    assert first.wait(running)["exit_code"] == 7
    # The next step that was named gives the copy an identity of its own.
    (copy.folder / "worker-id").unlink()
    line = new_line(first, "--role", "broker")
    copy.ok("join", "--standby", *LOOPBACK, "--name", "two", line)
    until(lambda: len(told(first)["brokers"]), "two are known", lambda n: n == 2)
    job = copy.enqueue("--worker", "two", "--", "true")
    copy.ok("wait", str(job))


def test_a_broker_that_hung_while_its_copy_took_over_is_refused(
    machine: Machine, database: str
) -> None:
    first = machine("first")
    first.ok("start", *LOOPBACK, "--store", database, "--no-worker")
    copy = copy_home(first, machine("copy"))
    pid = first.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        copy.ok("start", *LOOPBACK, "--store", database, "--no-worker")
    finally:
        os.kill(pid, signal.SIGCONT)
    await_end(pid)
    assert str(copy.folder) in first.log().splitlines()[-1]
    until(lambda: told(copy)["epoch"], "the copy leads", lambda epoch: epoch == 2)


def test_the_brokers_key_is_given_to_a_code_for_brokers_only(
    brokers: Brokers, machine: Machine
) -> None:
    first, second, _ = brokers
    refused = machine("other").run("join", "--standby", new_line(first))
    assert refused.returncode == 5
    assert "not for a broker" in refused.stderr
    key = second.folder / "broker.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_bytes() == (first.folder / "broker.key").read_bytes()


@pytest.mark.sqlite
def test_a_home_with_a_queue_does_not_stand_by_and_stays_as_it_is(
    brokers: Brokers, machine: Machine
) -> None:
    first, second, _ = brokers
    busy = machine("busy")
    busy.ok("enqueue", "--hold", "--", "true")
    line = new_line(first, "--role", "broker")
    refused = busy.run("join", "--standby", *LOOPBACK, line)
    assert refused.returncode == 5
    assert "GRASS_HOME" in refused.stderr
    assert [one["id"] for one in busy.document()["jobs"]] == [1]
    assert not (busy.folder / "broker.key").exists()
    bad = machine("third").run("join", "--standby", "--store", "mysql://h", line)
    assert bad.returncode == 3
    # Neither has used up the code, and a standby may join again.
    second.ok("join", "--standby", *LOOPBACK, line)


def test_bytes_of_a_task_do_not_die_with_the_disk_of_the_leader(
    brokers: Brokers,
) -> None:
    first, second, rack = brokers

    def size(data: bytes) -> int:
        return len(data)

    data = os.urandom(1_000_000)
    held = {"hold": True, "worker": "rack"}
    with Caller(rack.client.home) as client:
        job = enqueue_tasks(client, calls_of(size, [((data,), {})]), held)["first"]
    first.kill_daemon()
    shutil.rmtree(first.folder)
    await_lead(second, "two")
    with Caller(rack.client.home) as client:
        rack.ok("release", str(job))
        assert read_result(client, job, PATIENCE_S) == len(data)


def test_pools_and_profiles_do_not_die_with_the_disk_of_the_leader(
    machine: Machine, database: str, tmp_path: Path
) -> None:
    """The leader is killed after a submit of a pilot, before that is committed."""
    first, second = machine("first"), machine("second")
    line = ("--name", "one", "--store", database, "--no-worker")
    doomed = subprocess.Popen(
        [*first.grass, "daemon", *LOOPBACK, *line],
        env={**first.environment, crash_points.VARIABLE: "pools.submitted"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(first.daemon_pid, "the daemon does not come up")
    code = new_line(first, "--role", "broker")
    second.ok("join", "--standby", *LOOPBACK, "--name", "two", code)
    rack = join(first, machine("rack"), "rack")
    until(lambda: known_places(rack), "the leader knows both", lambda n: n == 2)
    first.run("profile", "import", "-", input=json.dumps(PROFILE) + "\n")
    queue, site = tmp_path / "queue", tmp_path / "site.toml"
    queue.mkdir()
    options = 'max_workers = 2\ntime = "10m"\nidle = "1m"\n'
    folder = f'folder = "{tmp_path / "pilots"}"\n'
    site.write_text(options + folder + queue_text(queue))
    first.ok("pool", "add", "site", f"--template={site}")
    ledger = tmp_path / "ledger"
    first.run("enqueue", "--pool", "site", "--", f"echo ran | tee -a {ledger}")
    assert doomed.wait(PATIENCE_S) == -signal.SIGKILL
    shutil.rmtree(first.folder)
    await_lead(second, "two")
    second.wait(1)
    assert ledger.read_text() == "ran\n"
    assert len(list(queue.iterdir())) == 1
    shown = json.loads(second.ok("profile", "--json"))["profiles"]
    assert [one["job_type"] for one in shown] == ["train.py"]
    second.ok("pool", "remove", "site")
    until(
        lambda: json.loads(second.ok("pool", "show", "--json"))["pools"],
        "its pilot does not leave",
        lambda pools: not pools,
    )
    assert second.logs(1) == "ran\n"


def test_a_callers_environment_goes_to_the_callers_machine_alone(
    machine: Machine, database: str
) -> None:
    first, second = machine("first"), machine("second")
    first.ok("start", *LOOPBACK, "--name", "one", "--store", database)
    line = new_line(first, "--role", "broker")
    second.ok("join", "--standby", *LOOPBACK, "--name", "two", line)
    until(lambda: len(told(first)["brokers"]), "both are known", lambda n: n == 2)
    first.environment["SECRET"] = "mine"
    print_it = ("--hold", "--", "sh", "-c", "echo secret: $SECRET")
    here = first.enqueue("--worker", "one", *print_it)
    there = first.enqueue("--worker", "two", *print_it)
    done = first.enqueue("--worker", "one", "--", "echo", "kept")
    first.ok("wait", str(done))
    first.kill_daemon()
    await_lead(second, "two")
    # It lies on the disk of the broker that died, and comes back with it.
    away = second.run("logs", str(done))
    assert away.returncode != 0
    assert "worker `one` is unreachable" in away.stderr
    assert f"the output of job {done} is there" in away.stderr
    second.ok("release", "--yes", f"{here}-{there}")
    second.ok("wait", str(there))
    assert second.ok("logs", str(there)) == "secret:\n"
    first.ok("start")
    second.ok("wait", str(here))
    assert second.ok("logs", str(here)) == "secret: mine\n"
    assert second.ok("logs", str(done)) == "kept\n"
