"""Attempts handed over ahead: they start when another one is gone, for real."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conversation import Daemon, Entry, alive, kill_and_await

Make = Callable[..., Daemon]


@pytest.fixture
def held(daemon: Daemon) -> Daemon:
    """A daemon whose attempt `a` runs until `let_go`."""
    os.mkfifo(daemon.directory / "go")
    daemon.start("a", "/bin/sh", "-c", "read x < go; exit 3")
    daemon.expect("started", "a")
    return daemon


def let_go(daemon: Daemon) -> None:
    (daemon.directory / "go").write_text("\n")


def events_to(daemon: Daemon, kind: str, id: str) -> list[tuple[str, str]]:
    """Read up to an event and return all that came, as kinds and ids."""
    seen: list[tuple[str, str]] = []
    while (kind, id) not in seen:
        entry = daemon.receive()
        seen.append((entry["e"], entry["id"]))
    return seen


def states(daemon: Daemon) -> dict[str, Entry]:
    return {each["id"]: each for each in daemon.hello["attempts"]}


def test_chain_runs_one_after_the_other(held: Daemon) -> None:
    held.start("b", "echo", "b", after="a")
    held.start("c", "echo", "c", after="b")
    let_go(held)
    assert (
        events_to(held, "exited", "c")
        == [(kind, id) for id in "abc" for kind in ("started", "exited")][1:]
    )
    assert held.output("c").read_text() == "c\n"


def test_waiting_attempt_is_listed_and_leaves_no_trace(
    held: Daemon, make_daemon: Make
) -> None:
    held.start("b", "true", after="a")
    held.send(v="signal", id="b", signal=10)
    held.start("b", "true", after="a")
    assert held.expect("waiting")["id"] == "b"
    state = states(make_daemon())["b"]
    assert (state["state"], state["meta"]) == ("waiting", {"for": "b"})
    assert (state["pid"], state["started_at"], state["stopping"]) == (None, None, False)
    assert not held.output("b").exists()
    assert held.full_id("b") not in (held.directory / "records").read_text()


def test_leftovers_are_gone_before_the_next_one_starts(held: Daemon) -> None:
    child = "trap 'sleep 0.2; exit' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    script = 'sh -c "$0" & while ! grep -qs . pid; do :; done'
    held.start("left", "/bin/sh", "-c", script, child, after="a")
    look = "kill -0 $(cat pid) && echo there || echo gone"
    held.start("next", "/bin/sh", "-c", look, after="left", stderr="/dev/null")
    let_go(held)
    assert held.expect("exited", "next")["code"] == 0
    assert held.output("next").read_text() == "gone\n"
    assert not alive(int((held.directory / "pid").read_text()))


def test_attempt_after_one_that_cannot_start_runs(held: Daemon) -> None:
    held.start("b", "nosuch", after="a")
    held.start("c", "nosuch", after="b", nice=1)
    held.start("d", "true", after="c")
    let_go(held)
    seen = events_to(held, "exited", "d")
    exits = [id for kind, id in seen if kind == "exited"]
    assert exits == ["a", "b", "c", "d"]
    assert ("started", "b") not in seen


def test_attempt_after_an_unknown_or_exited_one_starts_at_once(daemon: Daemon) -> None:
    assert daemon.run("b", "true", after="nobody")["code"] == 0
    assert daemon.run("c", "true", after="b")["code"] == 0


def test_recalled_attempt_never_runs_and_its_follower_moves_up(
    held: Daemon, make_daemon: Make
) -> None:
    other = make_daemon()
    held.start("b", "true", after="a")
    held.start("c", "true", after="b")
    held.send(v="recall", ids=["b", "a", "nobody"])
    recalled = {"e": "recalled", "id": "b", "why": "", "missing": ""}
    assert held.receive() == other.receive() == recalled
    let_go(held)
    expected = [("exited", "a"), ("started", "c"), ("exited", "c")]
    assert events_to(held, "exited", "c") == expected
    assert not held.output("b").exists()


def test_recall_of_what_no_longer_waits_is_not_answered(held: Daemon) -> None:
    held.start("b", "sleep", "100", after="a")
    let_go(held)
    held.expect("started", "b")
    held.send(v="recall", ids=["a", "b"])
    held.send(v="hello")
    hello = held.receive()
    assert hello["e"] == "hello"
    found = {each["id"]: each["state"] for each in hello["attempts"]}
    assert found == {"a": "exited", "b": "running"}


def test_stopped_while_waiting_it_exits_without_having_run(
    held: Daemon, make_daemon: Make
) -> None:
    held.start("b", "true", after="a")
    held.start("c", "true", after="b")
    held.send(v="stop", id="b", signal=15, grace=15.0, reason="cancelled")
    exited = held.receive()
    assert (exited["e"], exited["id"]) == ("exited", "b")
    assert (exited["code"], exited["signal"]) == (None, None)
    assert (exited["reason"], exited["lost"]) == ("cancelled", False)
    assert exited["at"] > 0
    kill_and_await(held.keeper)
    found = states(make_daemon())
    assert found["b"]["reason"] == "cancelled"
    assert "c" not in found
    assert not held.output("b").exists()


def test_follower_of_a_stopped_one_waits_for_the_one_before(held: Daemon) -> None:
    held.start("b", "true", after="a")
    held.start("c", "true", after="b")
    held.send(v="stop", id="b", grace=0)
    let_go(held)
    seen = events_to(held, "exited", "c")
    assert [id for kind, id in seen if kind == "exited"] == ["b", "a", "c"]
    assert ("started", "b") not in seen


def test_successor_knows_nothing_of_waiting_attempts_and_takes_them_again(
    held: Daemon, make_daemon: Make
) -> None:
    held.start("b", "echo", "once", after="a")
    held.send(v="hello")
    held.expect("hello")
    kill_and_await(held.keeper)
    successor = make_daemon()
    assert list(states(successor)) == ["a"]
    successor.start("b", "echo", "once", after="a")
    let_go(successor)
    assert successor.expect("exited")["id"] == "a"
    assert successor.expect("exited")["id"] == "b"
    assert successor.output("b").read_text() == "once\n"


def test_keeper_without_a_daemon_starts_what_waits(
    held: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "told")
    held.start("b", "/bin/sh", "-c", "echo here > told", after="a")
    held.send(v="hello")
    held.expect("hello")
    held.close()
    let_go(held)
    assert (tmp_path / "told").read_text() == "here\n"
    assert make_daemon().keeper == held.keeper
