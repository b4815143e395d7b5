"""Verbs on jobs: which jobs are chosen, who is asked, what is sent and said."""

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.commands.verb_command import compact
from grass.cli.printing.help import RULE
from grass.client.id_ranges import as_ranges

from .conftest import Call, Grass
from .fake_daemon import DONE, FakeDaemon, problem

VERBS = {
    "cancel": "cancelled",
    "hold": "held",
    "release": "released",
    "suspend": "suspended",
    "continue": "continued",
    "rerun": "",
    "edit": "edited",
    "remove": "removed",
}
MORE = {"edit": ["--priority", "1"], "cancel": ["--no-wait"]}
NOTHING = {
    "cancel": "no such job is unfinished",
    "hold": "no such job waits to start",
    "release": "no such job is held",
    "suspend": "no such job is running",
    "continue": "no such job is suspended",
    "rerun": "no such job has ended",
    "edit": "no such job has not started yet",
    "remove": "no such job has ended",
}


def words(verb: str, *rest: str) -> list[str]:
    return [verb, *MORE.get(verb, []), *rest]


def done(verb: str, ids: list[int]) -> dict[str, Any]:
    if verb == "remove":
        return {"jobs": len(ids), "output_bytes": 2048, "warnings": []}
    return {"jobs": ids, "warnings": [], "changed": bool(ids)}


def selecting(meaning: list[int], fitting: list[int], running: int = 0) -> Any:
    """Answer what selectors mean: states are what the verb is for."""

    def answer(body: Any) -> dict[str, Any]:
        found = fitting if body.get("states") else meaning
        return {"jobs": found, "count": len(found), "running": running}

    return answer


@pytest.mark.parametrize("verb", VERBS)
def test_one_job_is_touched_without_a_question(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    fake_daemon.answers[f"POST /jobs/{verb}"] = done(verb, [7])
    called = call(*words(verb, "7"))
    assert called.code == 0, called.err
    [(route, body)] = fake_daemon.asked
    assert (route, body["select"]) == (f"POST /jobs/{verb}", ["7"])
    expected = {
        "rerun": "7\n",
        "remove": "removed 1 job with 2.0 KiB of output\n",
    }.get(verb, f"{VERBS[verb]} 1 job\n")
    assert (called.out, called.err) == (expected, "")


@pytest.mark.parametrize("verb", VERBS)
def test_several_jobs_need_a_yes_without_a_terminal(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 4, 5, 9], [3, 4, 9])
    called = call(*words(verb, "@sweep"))
    assert called.code == 2
    assert called.err == (
        f"grass {verb}: this would {verb} 3 jobs, none of them running "
        "(add --yes to do so, --dry-run to see which)\n"
    )
    assert {route for route, _ in fake_daemon.asked} == {"POST /jobs/select"}


@pytest.mark.parametrize("verb", VERBS)
def test_exactly_the_counted_jobs_are_sent(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    meant = selecting([3, 4, 5, 9], [3, 4, 9], running=2)
    fake_daemon.answers["POST /jobs/select"] = meant
    fake_daemon.answers[f"POST /jobs/{verb}"] = done(verb, [3, 4, 9])
    called = call(*words(verb, "--yes", "@sweep"))
    assert called.code == 0
    [body] = fake_daemon.bodies(f"POST /jobs/{verb}")
    assert body["select"] == ["3-4", "9-9"]
    assert "3 jobs" in called.out or called.out == "3-4\n9\n"
    assert called.err == f"grass: will {verb} 3 jobs, 2 of them running\n"
    assert call(*words(verb, "--yes", "-q", "@sweep")).err == ""


@pytest.mark.parametrize("verb", VERBS)
def test_a_union_is_asked_for_by_a_switch(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 4], [3, 4], running=2)
    fake_daemon.answers[f"POST /jobs/{verb}"] = done(verb, [3, 4])
    called = call(*words(verb, "--yes", "--any", "@sweep", "state:failed"))
    assert called.err == f"grass: will {verb} 2 jobs, all of them running\n"
    [body] = fake_daemon.bodies("POST /jobs/select")
    assert (body["select"], body["any"]) == (["@sweep", "state:failed"], True)
    [sent] = fake_daemon.bodies(f"POST /jobs/{verb}")
    assert "any" not in sent
    call(*words(verb, "--yes", "@sweep", "state:failed"))
    assert "any" not in fake_daemon.bodies("POST /jobs/select")[-1]


@pytest.mark.parametrize("command", [*VERBS, "signal", "wait", "logs", "show", "top"])
def test_the_help_has_the_rule_in_one_line(call: Call, command: str) -> None:
    lines = call(command, "--help").out.splitlines()
    assert RULE in lines
    assert any(line.startswith("  --any ") for line in lines)


@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_names_the_jobs_and_changes_nothing(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 4, 5, 9], [3, 4, 9])
    called = call(*words(verb, "--dry-run", "3-9"))
    assert (called.code, called.out) == (0, f"would {verb} 3 jobs: 3-4, 9\n")
    assert call(*words(verb, "--dry-run", "-q", "3-9")).out == "3\n4\n9\n"
    told = json.loads(call(*words(verb, "--dry-run", "--json", "3-9")).out)
    assert told == {"jobs": [3, 4, 9], "dry_run": True}
    assert {route for route, _ in fake_daemon.asked} == {"POST /jobs/select"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_selection_without_jobs_is_reported_and_nothing_is_sent(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 4], [])
    called = call(*words(verb, "@sweep"))
    assert (called.code, called.out) == (0, f"nothing to {verb}: {NOTHING[verb]}\n")
    assert call(*words(verb, "--dry-run", "@sweep")).out == f"would {verb} 0 jobs\n"
    assert json.loads(call(*words(verb, "--json", "@sweep")).out)["jobs"] == []
    assert call(*words(verb, "-q", "@sweep")).out == ""


def test_no_dependents_of_no_jobs_are_run_again(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([], [])
    called = call("rerun", "--yes", "--with-dependents", "@sweep", "state:failed")
    assert (called.code, called.out) == (0, f"nothing to rerun: {NOTHING['rerun']}\n")


@pytest.mark.parametrize("verb", VERBS)
def test_jobs_named_one_by_one_are_sent_as_they_are(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    """The daemon refuses a named job that the verb is not for, and skips others."""
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 9], [9])
    fake_daemon.answers[f"POST /jobs/{verb}"] = problem("refused", "job 3 is running")
    called = call(*words(verb, "-y", "3", "last"))
    assert (called.code, called.err) == (5, "grass: job 3 is running\n")
    assert fake_daemon.bodies(f"POST /jobs/{verb}")[0]["select"] == ["3", "9"]
    assert fake_daemon.bodies("POST /jobs/select")[0]["select"] == ["3", "last"]


@pytest.mark.parametrize("verb", VERBS)
def test_quiet_prints_ids_only_and_json_the_reply(
    fake_daemon: FakeDaemon, call: Call, verb: str
) -> None:
    reply = {**done(verb, [7]), "warnings": ["look out"]}
    fake_daemon.answers[f"POST /jobs/{verb}"] = reply
    fake_daemon.answers["POST /jobs/select"] = {"jobs": [7], "count": 1}
    assert call(*words(verb, "-q", "last"))[1:] == ("7\n", "")
    assert json.loads(call(*words(verb, "--json", "7")).out) == reply
    assert call(*words(verb, "7")).err == "grass: look out\n"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_without_a_job_says_how_it_is_called(grass: Grass, verb: str) -> None:
    ran = grass(*words(verb))
    assert ran.returncode == 2
    assert ran.stderr == f"grass {verb}: no job was named (grass {verb} 7)\n"


def test_a_job_that_does_not_exist_is_reported_before_anything_is_done(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/select"] = problem(
        "not-found", "there is no job 99"
    )
    called = call("hold", "--yes", "3", "99")
    assert (called.code, called.err) == (4, "grass: there is no job 99\n")


@pytest.mark.parametrize(
    ("answer", "code", "sent"),
    [("y\n", 0, 1), ("YES\n", 0, 1), ("\n", 1, 0), ("no\n", 1, 0), ("\x04", 1, 0)],
)
def test_on_a_terminal_a_person_is_asked(
    fake_daemon: FakeDaemon,
    surroundings: dict[str, str],
    answer: str,
    code: int,
    sent: int,
) -> None:
    fake_daemon.answers["POST /jobs/select"] = selecting([3, 4], [3, 4])
    fake_daemon.answers["POST /jobs/hold"] = done("hold", [3, 4])
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "grass", "hold", "3-4"],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings,
    )
    os.close(theirs)
    said = b""
    while not said.endswith(b"[y/N] "):
        said += os.read(ours, 1000)
    assert said == b"hold 2 jobs, none of them running? [y/N] "
    os.write(ours, answer.encode())
    printed, _ = asking.communicate()
    os.close(ours)
    assert asking.returncode == code
    assert printed == ("held 2 jobs\n" if sent else "")
    assert len(fake_daemon.bodies("POST /jobs/hold")) == sent


@given(st.sets(st.integers(1, 50)))
def test_ids_for_people_are_selectors_too(ids: set[int]) -> None:
    named: set[int] = set()
    for text in compact(ids):
        first, _, last = text.partition("-")
        assert first != last
        named |= set(range(int(first), int(last or first) + 1))
    assert named == ids
    assert len(compact(ids)) == len(as_ranges(ids))


@pytest.mark.parametrize(
    ("options", "signal", "grace_s"),
    [
        ([], 15, None),
        (["--now"], 9, 0.0),
        (["--signal", "INT"], 2, None),
        (["--signal", "sigusr1"], 10, None),
        (["--signal", "64", "--grace", "5m"], 64, 300.0),
        (["--grace", "0"], 15, 0.0),
    ],
)
def test_cancel_chooses_signal_and_grace(
    fake_daemon: FakeDaemon,
    call: Call,
    options: list[str],
    signal: int,
    grace_s: float | None,
) -> None:
    fake_daemon.answers["POST /jobs/cancel"] = DONE
    assert call("cancel", "--no-wait", *options, "7").code == 0
    [body] = fake_daemon.bodies("POST /jobs/cancel")
    assert (body["signal"], body["grace_s"]) == (signal, grace_s)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--signal", "NOPE"], "there is no signal `NOPE` (write TERM, INT, USR1"),
        (["--signal", "0"], "there is no signal `0`"),
        (["--signal", "65"], "there is no signal `65`"),
        (["--signal", "_IGN"], "there is no signal `_IGN`"),
        (["--grace", "soon"], "`soon` is not a duration"),
        (["--now", "--grace", "3s"], "--now sends SIGKILL at once: --grace has no"),
        (["--now", "--signal", "2"], "--now sends SIGKILL at once: --signal has no"),
    ],
)
def test_cancel_refuses_what_makes_no_sense(
    grass: Grass, options: list[str], message: str
) -> None:
    ran = grass("cancel", *options, "7")
    assert ran.returncode == 2
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_cancel_waits_until_the_jobs_are_gone(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/cancel"] = DONE
    fake_daemon.answers["POST /jobs/wait"] = {"jobs": [{"id": 7, "state": "cancelled"}]}
    assert call("cancel", "7").out == "cancelled 1 job\n"
    assert [route for route, _ in fake_daemon.asked] == [
        "POST /jobs/cancel",
        "POST /jobs/wait",
    ]


def test_cancel_does_not_wait_for_a_worker_that_is_away(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/cancel"] = {**DONE, "jobs": [7, 8, 9]}
    fake_daemon.answers["POST /jobs/select"] = selecting([7, 8, 9], [7, 8, 9], 2)
    ended = {"jobs": [{"id": 9, "state": "cancelled"}]}
    late = problem("timed-out", "3 of 3 jobs are unfinished")
    fake_daemon.answers["POST /jobs/wait"] = [late, ended]
    away = [
        {"id": 7, "worker": "rack", "unreachable": True},
        {"id": 8, "worker": "rack", "unreachable": True},
        {"id": 9, "worker": "desk", "unreachable": False},
        {"id": 10, "worker": "rack", "unreachable": True},
    ]
    asked = "GET /jobs?limit=1000&state=running&order=oldest"
    fake_daemon.answers[asked] = {"jobs": away, "next": None}
    cancelled = call("cancel", "--yes", "7", "8", "9")
    told = "grass: will cancel 3 jobs, 2 of them running\n"
    told += "grass: worker `rack` is unreachable; 2 jobs end when it is back\n"
    assert cancelled == (0, "cancelled 3 jobs\n", told)
    assert [body["select"] for body in fake_daemon.bodies("POST /jobs/wait")] == [
        ["7-9"],
        ["9-9"],
    ]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["--priority", "5"], {"priority": 5}),
        (["--priority", "-5"], {"priority": -5}),
        (["--require", "{gpu:1}"], {"require": "{gpu:1}"}),
        (["-g", "2", "-m", "8G"], {"require_also": {"gpu": 2, "ram": "8G"}}),
        (["--queue", "q2"], {"queue": "q2"}),
        (["--time-limit", "1:30:00"], {"time_limit_s": 5400.0}),
        (["--time-limit", "none"], {"time_limit_s": None}),
        (["--env", "A=1", "--env", "B="], {"env": {"A": "1", "B": ""}}),
        (["--cwd", "/"], {"cwd": "/"}),
        (["--name", "n"], {"name": "n"}),
    ],
)
@pytest.mark.parametrize("verb", ["edit", "rerun"])
def test_a_change_is_sent_alone(
    fake_daemon: FakeDaemon,
    call: Call,
    verb: str,
    options: list[str],
    change: dict[str, Any],
) -> None:
    fake_daemon.answers[f"POST /jobs/{verb}"] = DONE
    called = call(verb, "7", *options)
    assert called.code == 0, called.err
    [body] = fake_daemon.bodies(f"POST /jobs/{verb}")
    assert body.pop("select") == ["7"]
    assert body.pop("hold", False) is False
    assert body == change


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["--after", "7,9", "--after", "3-4:any"], {"after": ["7", "9", "3-4:any"]}),
        (["--after", "none"], {"after": []}),
        (["--begin", "2030-01-31T08:00Z"], {"begin_at": "2030-01-31T08:00:00+00:00"}),
        (["--begin", "none"], {"begin_at": None}),
        (["--retries", "3"], {"retries": 3}),
        (["--", "ls", "-q", "--"], {"command": ["ls", "-q", "--"]}),
    ],
)
def test_edit_changes_what_a_job_waits_for(
    fake_daemon: FakeDaemon, call: Call, options: list[str], change: dict[str, Any]
) -> None:
    fake_daemon.answers["POST /jobs/edit"] = DONE
    called = call("edit", "7", *options)
    assert (called.code, called.out) == (0, "edited 1 job\n")
    assert fake_daemon.bodies("POST /jobs/edit") == [{"select": ["7"], **change}]


def test_rerun_can_hold_and_change_the_command(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/rerun"] = DONE
    assert call("rerun", "7", "--hold", "--edit", "--", "ls", "-l").out == "7\n"
    expected = {"select": ["7"], "hold": True, "command": ["ls", "-l"]}
    assert fake_daemon.bodies("POST /jobs/rerun") == [expected]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["edit", "7"], "nothing to change was given (grass edit 7 --priority 5)"),
        (["edit", "7", "--"], "after `--` comes the new command, and there is none"),
        (["edit", "7", "--hold"], "there is no option `--hold`"),
        (["edit", "7", "--priority", "high"], "--priority must be a whole number"),
        (["edit", "7", "--retries", "x"], "--retries must be a whole number"),
        (["edit", "7", "--begin", "soon"], "`soon` is not a time"),
        (["edit", "7", "--after", "7,,9"], "--after `7,,9` names nothing between"),
        (["rerun", "7", "--", "ls"], "`ls` would be a new command (grass rerun 7 --ed"),
        (["rerun", "7", "--edit"], "nothing to change was given"),
        (["rerun", "7", "--time-limit", "soon"], "`soon` is not a duration"),
        (["rerun", "7", "--cwd", "/no/such"], "there is no directory /no/such"),
        (["hold", "--now", "7"], "there is no option `--now`"),
    ],
)
def test_a_wrong_call_gets_one_line(
    grass: Grass, line: list[str], message: str
) -> None:
    ran = grass(*line)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


def test_wait_for_all_names_the_last_job_and_gets_the_number_of_each_end(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /overview"] = {"daemon": {"last_job": 9, "last_event": 4}}
    fake_daemon.answers["POST /jobs/wait-all"] = [
        {"ends": {"succeeded": 3}},
        {"ends": {"succeeded": 2, "lost": 1}},
    ]
    assert call("wait", "all").code == 0
    assert call("wait", "all").code == 1
    asked = {"up_to": 9, "after": 4, "timeout_s": None}
    assert fake_daemon.bodies("POST /jobs/wait-all") == [asked, asked]


def test_wait_for_all_lists_the_jobs_where_the_daemon_is_of_an_earlier_version(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /overview"] = {"daemon": {"last_event": 4}}
    fake_daemon.answers["POST /jobs/select"] = {"jobs": [7, 8], "count": 2}
    ended = [{"id": 7, "state": "succeeded"}, {"id": 8, "state": "failed"}]
    fake_daemon.answers["POST /jobs/wait"] = {"jobs": ended}
    assert call("wait", "all").code == 1
    (asked,) = fake_daemon.bodies("POST /jobs/wait")
    assert asked["select"] == ["7-8"]
