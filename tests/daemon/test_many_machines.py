"""A broker and workers of other homes: what a person is told of each of them."""

import json
import re
from typing import Any

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import (
    LOOPBACK,
    Machine,
    await_worker,
    copy_home,
    invitation,
    join,
    new_line,
)

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

SLOT = ("--capacity", "{slot:1}", "--default-require", "{slot:1}")


def whys(broker: GrassHome, job: int) -> dict[str, Any]:
    told = json.loads(broker.ok("explain", "--json", str(job)))
    return {one["worker"]: (one["reason"], one["why"]) for one in told["workers"]}


def codes(broker: GrassHome) -> list[str]:
    listed = json.loads(broker.ok("token", "list", "--json"))["tokens"]
    return [one["name"] for one in listed if one["code"]]


def test_every_worker_of_a_queue_has_its_own_reason(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    for home in (hub, rack):
        home.ok("create-queue", "train", *SLOT)
    hub.ok("enqueue", "train", "--array", "1-2", "--", "sleep", "600")
    busy = hub.enqueue("train", "--", "true")
    full = ("busy", "needs slot 1, free 0 of 1")
    assert whys(hub, busy) == {"desk": full, "rack": full}
    shown = hub.ok("explain", str(busy))
    for name in ("desk", "rack"):
        assert re.search(
            rf"^{name} +needs slot 1, free 0 of 1$", shown, re.MULTILINE
        ), shown

    pinned = hub.enqueue("train", "--worker", "rack", "--", "true")
    assert whys(hub, pinned)["desk"] == ("pinned", "it may run on `rack` alone")
    hub.ok("drain", "rack")
    assert whys(hub, busy) == {"desk": full, "rack": ("drained", "is drained")}
    hub.ok("resume", "rack")
    rack.ok("stop")
    await_worker(hub, "rack", connected=False)
    reason, why = whys(hub, busy)["rack"]
    assert reason == "unreachable"
    assert why.startswith("is unreachable since 20")
    shown = hub.ok("explain", str(busy))
    assert re.search(r"^rack +is unreachable for \d+s$", shown, re.MULTILINE), shown


def test_what_a_worker_lacks_for_good_is_told_too(
    hub: GrassHome, machine: Machine
) -> None:
    rack = machine("rack")
    rack.ok("join", "--no-start", "--name", "rack", new_line(hub))
    rack.ok("start", "--label", "a100")
    await_worker(hub, "rack", connected=True)
    for home, amount in ((hub, 1), (rack, 2)):
        home.ok("create-queue", "train", "--capacity", f"{{slot:[{amount}]}}")
    hub.ok("enqueue", "train", "--require", "{slot:2}", "--", "sleep", "600")
    large = hub.enqueue("train", "--require", "{slot:2}", "--", "true")
    assert whys(hub, large)["desk"] == ("too-small", "needs slot 2, has 1")
    labelled = hub.enqueue(
        "train", "--require", "{slot:1}", "--label", "a100", "--", "true"
    )
    assert whys(hub, labelled) == {
        "desk": ("label", "does not have `a100`"),
        "rack": ("busy", "needs slot 1, free 0 of 2"),
    }


def test_a_lone_worker_needs_no_table(hub: GrassHome) -> None:
    hub.ok("create-queue", "train", *SLOT)
    hub.ok("enqueue", "train", "--", "sleep", "600")
    waits = hub.enqueue("train", "--", "true")
    assert "WHY IT DOES" not in hub.ok("explain", str(waits))
    assert list(whys(hub, waits)) == ["desk"]


def test_a_worker_whose_token_was_revoked_does_not_start_well(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    rack.ok("stop")
    hub.ok("token", "revoke", "rack")
    for words in (["start"], ["start", "--json"], ["restart"]):
        ran = rack.run(*words)
        assert (ran.returncode, ran.stdout) == (5, ""), words
        assert ran.stderr.count("\n") == 1, ran.stderr
        assert "has no work: the broker at 127.0.0.1:" in ran.stderr
        assert "refuses: " in ran.stderr
        assert "token" in ran.stderr
        assert "grass join" in ran.stderr
    rack.ok("join", "--name", "rack", new_line(hub))
    assert "connected to" in rack.ok("start")


def test_a_broker_that_is_away_is_no_failure_of_its_worker(
    broker: GrassHome, machine: Machine
) -> None:
    rack = join(broker, machine("rack"), "rack")
    rack.ok("stop")
    broker.ok("stop")
    assert "cannot be reached" in rack.ok("start")


def test_a_machine_that_joins_as_a_worker_alone_is_told_what_that_means(
    hub: GrassHome, machine: Machine
) -> None:
    rack = machine("rack")
    ran = rack.run("join", "--name", "rack", new_line(hub, "--role", "worker"))
    assert ran.returncode == 0, ran.stderr
    assert "the role `worker` may neither look nor enqueue there" in ran.stderr
    assert "`--broker local` means this machine" in ran.stderr
    assert "`grass token new --role machine`" in ran.stderr
    assert "commands go there from now on; " not in ran.stdout
    assert rack.run("show").returncode == 5
    rack.ok("show", "--broker", "local")


def test_a_worker_that_the_broker_runs_without_is_off_until_it_is_forgotten(
    broker: GrassHome,
) -> None:
    refused = broker.run("workers", "forget", "desk")
    assert refused.returncode == 5
    assert "is part of the broker's own daemon" in refused.stderr
    assert "`grass restart --no-worker`" in refused.stderr
    broker.ok("restart", "--no-worker")
    waits = broker.enqueue("--", "true")
    reason, why = whys(broker, waits)["desk"]
    assert (reason, why.split(" since ")[0]) == ("off", "is off (`--no-worker`)")
    listed = broker.run("workers")
    assert re.search(r"^desk +off for \d+s ", listed.stdout, re.MULTILINE), (
        listed.stdout
    )
    assert "`grass workers forget desk` removes it" in listed.stderr
    assert "desk (off)" in broker.ok("show")
    broker.ok("workers", "forget", "desk")
    listed = broker.run("workers")
    assert "desk" not in listed.stdout
    assert listed.stderr == (
        "grass: no worker has joined yet; `grass token new` gives a line for one\n"
    )
    refused = broker.run("drain", "cpu:0")
    assert refused.returncode == 4
    assert refused.stderr == (
        "grass: this daemon runs no jobs itself, so it has no units"
        " (--worker NAME names one of `grass workers`)\n"
    )


def test_each_start_prints_a_line_and_leaves_one_code(
    broker: GrassHome, machine: Machine
) -> None:
    assert codes(broker) == ["start"]
    first = invitation(broker.ok("restart"))
    second = invitation(broker.ok("restart"))
    assert codes(broker) == ["start"]
    rack = machine("rack")
    # The port is another one after each start; the code is what counts.
    former = f"{second.rpartition('/')[0]}/{first.rpartition('/')[2]}"
    refused = rack.run("join", "--no-start", former)
    assert refused.returncode == 5
    assert "this code is wrong or has expired" in refused.stderr
    rack.ok("join", "--no-start", "--name", "rack", second)
    told = json.loads(broker.ok("restart", "--json"))
    assert told["join"].startswith("grass join 127.0.0.1:")
    # What machines have joined with goes on for its hour: more of them may.
    assert codes(broker) == ["start", "start-2"]
    broker.ok("restart")
    assert codes(broker) == ["start", "start-2"]


def test_a_suggested_command_can_be_pasted(hub: GrassHome) -> None:
    ran = hub.run("start", "--bind", "127.0.0.1:0", "--cert", "a b")
    assert ran.returncode == 5
    file = hub.desk / "a b"
    suggested = f"`grass restart --bind=127.0.0.1:0 '--cert={file}'` starts it anew"
    assert suggested in ran.stderr


def test_a_pass_phrase_without_a_certificate_is_a_usage_error(
    machine: Machine,
) -> None:
    home = machine("broker")
    (home.desk / "pass").write_text("hushed")
    for command in ("start", "restart", "daemon"):
        ran = home.run(command, *LOOPBACK, "--cert-pass-file", "pass")
        assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
        assert "--cert-pass-file is for the certificate of --cert" in ran.stderr
        assert "give --cert FILE too" in ran.stderr
        assert ran.stderr.count("\n") == 1
    assert home.daemon_pid() is None


def test_nobody_else_may_read_anything_in_a_used_home(
    broker: GrassHome, machine: Machine
) -> None:
    rack = machine("rack")
    lax = f"umask 022; exec grass join --name rack {new_line(broker)}"
    assert rack.shell(lax).returncode == 0
    await_worker(broker, "rack", connected=True)
    for name in ("desk", "rack"):
        broker.wait(broker.enqueue("--worker", name, "--", "echo", "said"))
    rack.shell("umask 022; grass leave; grass restart; grass stop")
    broker.shell("umask 022; grass restart --label here; grass stop; grass start")
    for home in (broker, rack):
        assert (home.folder / "worker-id").exists()
        assert (home.folder / "daemon-options.json").exists()
        output = home.folder / "output"
        found = [home.folder, *home.folder.rglob("*")]
        # What jobs write has the mode that their own umask gives it, in a folder that
        # nobody else may enter.
        kept = [one for one in found if output not in one.parents]
        assert [str(one) for one in kept if one.lstat().st_mode & 0o077] == []


def test_a_copied_home_does_not_join_as_the_first(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    rack.ok("stop")
    clone = copy_home(rack, machine("clone"))
    rack.ok("start")
    for _ in range(2):
        refused = clone.run("join", "--name", "clone", new_line(hub))
        assert refused.returncode == 5
        assert "another machine uses this worker's identity" in refused.stderr
        assert "remove worker-id from the copy's state directory" in refused.stderr
        rack.ok("stop")
        assert "connected to" in rack.ok("start")
    (clone.folder / "worker-id").unlink()
    join(hub, clone, "clone")
    await_worker(hub, "rack", connected=True)


def test_a_copied_home_does_not_start_well_beside_the_first(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    rack.ok("stop")
    clone = copy_home(rack, machine("clone"))
    rack.ok("start")
    for words in (["start"], ["start", "--json"], ["restart"]):
        refused = clone.run(*words)
        assert (refused.returncode, refused.stdout) == (5, ""), words
        assert refused.stderr.count("\n") == 1, refused.stderr
        assert "another machine uses this worker's identity" in refused.stderr
        assert "remove worker-id from the copy's state directory" in refused.stderr
    rack.ok("stop")
    assert "connected to" in rack.ok("start")


def test_a_code_alone_takes_no_worker_over(broker: GrassHome, machine: Machine) -> None:
    rack = join(broker, machine("rack"), "rack")
    rack.ok("stop")
    await_worker(broker, "rack", connected=False)
    broker.ok("token", "revoke", "rack")
    broker.ok("restart", "--no-worker", "--bind", "127.0.0.1:0")
    thief = machine("thief")
    for victim, why in ((broker, "the broker's own"), (rack, "show its token")):
        thief.folder.mkdir(parents=True, exist_ok=True)
        identity = (victim.folder / "worker-id").read_text()
        (thief.folder / "worker-id").write_text(identity)
        refused = thief.run("join", "--no-start", new_line(broker))
        assert refused.returncode == 5
        assert why in refused.stderr
    rack.ok("join", "--name", "rack", new_line(broker))
    await_worker(broker, "rack", connected=True)


def test_a_machine_that_lost_its_token_joins_once_it_was_forgotten(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    rack.ok("leave")
    rack.ok("restart")
    await_worker(hub, "rack", connected=False)
    refused = rack.run("join", "--name", "rack", new_line(hub))
    assert refused.returncode == 5
    assert "`grass workers forget rack` first, at the broker" in refused.stderr
    hub.ok("token", "revoke", "rack")
    assert rack.run("join", "--name", "rack", new_line(hub)).returncode == 5
    hub.ok("workers", "forget", "rack")
    join(hub, rack, "rack")


def test_a_client_becomes_a_worker_later(hub: GrassHome, machine: Machine) -> None:
    rack = machine("rack")
    rack.ok("join", "--name", "rack", new_line(hub, "--role", "submit"))
    after = hub.client.overview()["daemon"]["last_event"]
    rack.ok("join", new_line(hub))
    with hub.client.beside() as aside:
        event = next(aside.follow_events(after=after, kind="worker-connected"))
    assert event["data"]["name"] != "desk"
    id = hub.enqueue("--worker", event["data"]["name"], "--", "true")
    assert hub.wait(id)["state"] == "succeeded"


def test_commands_of_a_worker_that_has_not_joined_make_no_queue(
    hub: GrassHome, machine: Machine
) -> None:
    cold = machine("rack")
    address = new_line(hub).removeprefix("grass join ").partition("/")[0]
    missing = f"this machine has not joined the broker at {address} as a worker"
    hint = (
        f"`grass token new` prints there: grass join {address}/PIN/CODE;"
        " for a queue of its own: `grass start --fresh`"
    )
    ran = cold.run("daemon", "--no-broker", "--connect", address, "--label", "old")
    assert (ran.returncode, ran.stderr.count("\n")) == (3, 1)
    assert f"{missing} (paste the line that {hint})" in ran.stderr
    for words in (("enqueue", "--", "true"), ("show",), ("start",)):
        ran = cold.run(*words)
        assert (ran.returncode, ran.stdout) == (3, ""), ran.stderr
        assert f"{missing} (paste the line that {hint})" in ran.stderr
        assert not (cold.folder / "grass.db").exists()
    # The line that the message names makes it the worker that was asked for.
    join(hub, cold, "rack")
    assert await_worker(hub, "rack", connected=True)["labels"] == ["old"]


def test_a_home_with_a_queue_of_its_own_keeps_it(home: GrassHome) -> None:
    home.ok("stop")
    assert home.run("daemon", "--connect", "127.0.0.1:7500").returncode == 3
    home.ok("start")
    assert home.wait(home.enqueue("true"))["state"] == "succeeded"
