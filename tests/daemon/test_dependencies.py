"""Jobs that wait for other jobs."""

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon

NOTHING = ("--require", "{}")


def leader(home: GrassHome, gate: Fifo) -> int:
    """Enqueue a job that ends with the code it is told."""
    return home.enqueue(*NOTHING, f"read code < {gate}; exit $code")


def after(home: GrassHome, *needs: str) -> int:
    words = [word for need in needs for word in ("--after", need)]
    return home.enqueue(*NOTHING, *words, "--", "true")


def test_a_job_starts_when_the_one_before_has_succeeded(
    shared: GrassHome, gate: Fifo
) -> None:
    first = leader(shared, gate)
    second = after(shared, str(first))
    assert shared.state(second) == "waiting"
    assert shared.reason(second) == f"waits for job {first} (running) to succeed"
    gate.tell("0")
    assert shared.wait(second)["state"] == "succeeded"
    begun = shared.client.job(second)["started_at"]
    assert begun >= shared.client.job(first)["finished_at"]


def test_all_of_several_must_be_met(shared: GrassHome, gate: Fifo) -> None:
    one, other = leader(shared, gate), leader(shared, gate)
    ids = [
        after(shared, f"{one},{other}"),
        after(shared, f"{one}:any", f"{other}:any"),
        after(shared, f"{one}-{other}"),
    ]
    gate.tell("0")
    # Which of the two reads it is anybody's guess; the other one still runs.
    shared.client.wait(["state:succeeded"])
    assert shared.states(ids) == ["waiting"] * 3
    gate.tell("0")
    shared.wait(*ids)
    assert shared.states(ids) == ["succeeded"] * 3


@pytest.mark.parametrize(
    ("code", "states"),
    [
        ("0", ["succeeded", "cancelled", "succeeded"]),
        ("7", ["cancelled", "succeeded", "succeeded"]),
    ],
)
def test_success_failure_and_any_end_are_told_apart(
    shared: GrassHome, gate: Fifo, code: str, states: list[str]
) -> None:
    first = leader(shared, gate)
    needs = ("succeeded", "failed", "any")
    ids = [after(shared, f"{first}:{need}") for need in needs]
    assert [shared.client.job(id)["after"] for id in ids] == [
        [f"{first}:{need}"] for need in needs
    ]
    gate.tell(code)
    shared.wait(*ids)
    assert shared.states(ids) == states


def test_what_can_no_longer_start_is_cancelled_all_the_way(
    shared: GrassHome, gate: Fifo
) -> None:
    first = leader(shared, gate)
    second = after(shared, str(first))
    third = after(shared, str(second))
    cleanup = after(shared, f"{second}:any")
    gate.tell("3")
    shared.wait(third, cleanup)
    assert shared.states([second, third, cleanup]) == [
        *("cancelled", "cancelled", "succeeded")
    ]
    assert f"job {first}" in shared.reason(second)
    assert "failed" in shared.reason(second)
    assert f"job {second}" in shared.reason(third)
    assert shared.client.job(second)["attempts"] == []
    assert shared.run("wait", str(second)).returncode == 125


def test_cancelling_the_first_cancels_who_waits_for_its_success(
    shared: GrassHome, gate: Fifo
) -> None:
    first = leader(shared, gate)
    ids = [after(shared, str(first)), after(shared, f"{first}:any")]
    said = shared.ok("cancel", "--now", str(first))
    assert said == "cancelled 1 job, and 1 that waited for it\n"
    shared.wait(*ids)
    assert shared.states(ids) == ["cancelled", "succeeded"]


def test_what_has_ended_already_counts(shared: GrassHome) -> None:
    good = shared.enqueue("--", "true")
    bad = shared.enqueue("--", "false")
    shared.wait(good, bad)
    met = shared.enqueue("--after", f"{good},{bad}:failed", "--", "true")
    assert shared.wait(met)["state"] == "succeeded"
    last = shared.enqueue("--after", "last", "--", "true")
    assert shared.client.job(last)["after"] == [f"{met}:succeeded"]
    shared.wait(last)


@pytest.mark.parametrize(
    ("need", "code", "said"),
    [
        ("999999", 4, "no job 999999"),
        ("{good}:maybe", 2, "maybe"),
    ],
)
def test_a_dependency_that_is_none_is_refused(
    shared: GrassHome, need: str, code: int, said: str
) -> None:
    good, bad = shared.enqueue("--", "true"), shared.enqueue("--", "false")
    shared.wait(good, bad)
    asked = need.format(good=good, bad=bad)
    refused = shared.run("enqueue", "--after", asked, "--", "true")
    assert refused.returncode == code, refused.stderr
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.job("last")["id"] == bad


def test_nobody_waits_for_itself(shared: GrassHome, gate: Fifo) -> None:
    first = leader(shared, gate)
    second = after(shared, str(first))
    third = after(shared, str(second))
    for need in (str(second), str(third)):
        refused = shared.run("edit", str(second), "--after", need)
        assert refused.returncode == 5
        assert "wait for itself" in refused.stderr
    assert shared.client.job(second)["after"] == [f"{first}:succeeded"]
    gate.tell("0")
    assert shared.wait(second, third)["state"] == "succeeded"


@pytest.mark.parametrize(("code", "state"), [("0", "succeeded"), ("1", "cancelled")])
def test_an_end_while_no_daemon_runs_counts(
    shared: GrassHome, gate: Fifo, news: Fifo, code: str, state: str
) -> None:
    line = f"echo $$ > {news}; read code < {gate}; exit $code"
    first = shared.enqueue(*NOTHING, line)
    second = after(shared, str(first))
    pid = int(news.hear())
    shared.kill_daemon()
    gate.tell(code)
    await_end(pid)
    assert shared.wait(second)["state"] == state


def test_who_waits_goes_on_waiting_after_a_kill(shared: GrassHome, gate: Fifo) -> None:
    first = leader(shared, gate)
    ids = [after(shared, str(first)), after(shared, f"{first}:failed")]
    before = [shared.reason(id) for id in ids]
    shared.replace_daemon()
    assert [shared.reason(id) for id in ids] == before
    gate.tell("0")
    shared.wait(*ids)
    assert shared.states(ids) == ["succeeded", "cancelled"]


def test_who_still_waits_waits_for_a_rerun_too(shared: GrassHome, gate: Fifo) -> None:
    first, other = leader(shared, gate), shared.enqueue("--hold", "--", "true")
    second = after(shared, f"{first}:any", str(other))
    gate.tell("1")
    shared.wait(first)
    shared.ok("rerun", str(first))
    shared.ok("release", str(other))
    shared.wait(other)
    assert shared.state(second) == "waiting"
    gate.tell("0")
    assert shared.wait(second)["state"] == "succeeded"
