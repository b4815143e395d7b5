"""Looking: `show` with filters, `explain`, `events`, `logs` of several, `wait`."""

import json
import os
import resource
import signal
import sys
from typing import Any

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import ticks

pytestmark = pytest.mark.daemon

BIG = 'python -c "x = bytes(range(256)) * (256 << 10)"'
"""Needs 64 MiB, more than hides behind the size of the keeper."""


@pytest.fixture
def zoo(shared: GrassHome) -> list[int]:
    """Jobs that differ in everything one can look for."""
    shared.client.prune(0)
    shared.ok("create-queue", "q")
    ended = [
        ("--name", "alpha", "--project", "p", "--", "true"),
        ("q", "--name", "beta", "--", "false"),
        ("--name", "alphabet", "--priority", "3", "--", "true"),
    ]
    ids = []
    for words in ended:
        ids.append(shared.enqueue(*words))
        shared.wait(ids[-1])
    held = ("q", "--name", "gamma", "--project", "p", "--hold", "--", "ls")
    return [*ids, shared.enqueue(*held)]


FOUND: tuple[tuple[tuple[str, ...], list[int]], ...] = (
    ((), [3, 2, 1, 0]),
    (("--state", "failed"), [1]),
    (("--state", "failed,held"), [3, 1]),
    (("--queue", "q"), [3, 1]),
    (("q",), [3, 1]),
    (("--project", "p"), [3, 0]),
    (("@p", "--state", "held"), [3]),
    (("--name", "alpha"), [0]),
    (("name~^alpha",), [2, 0]),
    (("{0}", "{2}"), [2, 0]),
    (("{0}-{2}",), [2, 1, 0]),
    (("last",), [3]),
    (("--sort", "-id"), [3, 2, 1, 0]),
    (("--sort", "-priority"), [2, 0, 1, 3]),
    (("--limit", "2"), [3, 2]),
    (("--all", "--limit", "2", "--sort", "id"), [0, 1]),
    (("--owner", "nobody-there"), []),
)
"""What `show` is asked for, and which of the jobs it finds, in order."""


def test_show_finds_what_was_asked_for(shared: GrassHome, zoo: list[int]) -> None:
    for words, places in FOUND:
        asked = [word.format(*zoo) for word in words]
        found = [int(id) for id in shared.ok("show", "-q", *asked).split()]
        assert found == [zoo[place] for place in places], words


def test_columns_can_be_chosen(shared: GrassHome, zoo: list[int]) -> None:
    shown = shared.ok("show", "--columns", "id,name,exit,project", "state:failed")
    header, row = shown.splitlines()[:2]
    assert header.split() == ["ID", "NAME", "EXIT", "PROJECT"]
    assert row.split() == [str(zoo[1]), "beta", "exit", "1", "default"]
    wrong = shared.run("show", "--columns", "id,nosuch")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert shared.ok("show", "--queues", "-q") == "default\nq\n"


def test_what_does_not_exist_is_not_found(shared: GrassHome) -> None:
    shared.wait(shared.enqueue("--", "true"))
    for words in (
        ("show", "999999"),
        ("show", "999998-999999"),
        ("show", "nope"),
        ("show", "nope", "--state", "failed"),
        ("logs", "999999"),
        ("logs", "-f", "state:held"),
        ("explain", "999999"),
    ):
        assert shared.run(*words).returncode == 4
    assert shared.ok("show", "state:held") == "no such jobs\n"


def test_one_job_is_shown_on_a_card(shared: GrassHome) -> None:
    id = shared.enqueue("--name", "train", "--", "true")
    shared.wait(id)
    shown = shared.ok("show", str(id))
    assert shown.startswith(f"job {id}: train\nstate       succeeded, exit 0\n")
    assert "\nATTEMPT  STATE" in shown
    assert json.loads(shared.ok("show", "last", "--json"))["id"] == id


def test_json_is_one_document_also_when_it_is_streamed(shared: GrassHome) -> None:
    shared.client.prune(0)
    shared.ok("pause")
    ids = shared.enqueue_array("--from", "-", input="true\n" * 1500)

    def shown(*words: str) -> Any:
        return json.loads(shared.ok("show", "--json", *words))

    everything = shown("--all")
    assert {"daemon", "workers", "queues", "jobs"} <= set(everything)
    assert [job["id"] for job in everything["jobs"]] == ids
    most = f"{ids[0]}-{ids[1199]}"
    some = shown("--all", most)
    assert [job["id"] for job in some["jobs"]] == ids[:1200]
    usual = shown(most)
    assert [job["id"] for job in usual["jobs"]] == ids[:100]
    assert usual["more_by_state"] == {"queued": usual["more"]} == {"queued": 1100}
    assert "1100 more" in shared.ok("show", most)


def test_a_long_array_is_one_row_and_hides_nothing(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    shared.client.prune(0)
    shared.ok("create-queue", "narrow", "--json", "{slot:1}")
    asked = ("--require", "{slot:1}", "--project", "demo")
    line = f"echo $$ > {news}; read x < {gate}"
    array = shared.enqueue_array("narrow", *asked, "--array", "1-150", "--", line)
    other = shared.enqueue("--hold", "--", "true")
    shared.await_start(array[0], news)

    def shown(*words: str) -> Any:
        return json.loads(shared.ok("show", "--json", *words))

    first, last = array[0], array[-1]
    for words in ((), ("narrow",), ("@demo",), ("queue:narrow",), ("name~bash|echo",)):
        document = shown(*words)
        assert [job["id"] for job in document["jobs"][:4]] == array[:4], words
        [summary] = document["arrays"]
        assert (summary["id"], summary["last"], summary["total"]) == (first, last, 150)
        counts = {state: n for state, n in summary["states"].items() if n}
        assert counts == {"running": 1, "queued": 149}
        assert summary["finished_at"] is None
        assert "slot" in summary["reason"]
        assert document["more_by_state"] == {"queued": 146}
        held = 0 if words else 1
        assert document["totals"].get("held", 0) == held
    assert other in [job["id"] for job in shown()["jobs"]]
    opened = shown("@demo", "--members", "--limit", "120")
    assert [job["id"] for job in opened["jobs"]] == array[:120]
    assert (opened["arrays"], opened["more"]) == ([], 30)
    assert shared.client.cancel([f"{first}-{last}"])["jobs"] == array
    shared.wait(*array)
    [ended] = shown("@demo")["arrays"]
    assert ended["finished_at"] is not None
    assert ended["reason"] is None


def test_every_reply_is_one_picture_while_short_jobs_come_and_go(
    home: GrassHome,
) -> None:
    home.ok("create-queue", "q", "--json", "{slot:2}")
    asked = ("--require", "{slot:1}", "--array", "1-400")
    jobs = home.enqueue_array("q", *asked, "--", "true")
    done = 0
    while done < len(jobs):
        shown = home.client.overview("q")
        ids = [job["id"] for job in shown["jobs"]]
        assert len(ids) == len(set(ids))
        states = [job["state"] for job in shown["jobs"]]
        totals = shown["totals"]
        assert states.count("running") == totals.get("running", 0) <= 2
        assert sum(totals.values()) == len(jobs)
        [summary] = shown["arrays"]
        assert {s: n for s, n in summary["states"].items() if n} == totals
        assert shown["queues"][0]["running"] == totals.get("running", 0)
        done = totals.get("succeeded", 0)


def test_units_are_told_after_the_end_as_well(shared: GrassHome) -> None:
    job = shared.enqueue("-c", "1", "--", "true")
    shared.wait(job)
    document = shared.client.job(job)
    assert document["allocation"] == {}
    assert list(document["attempts"][-1]["allocation"]) == ["cpu"]


def test_events_of_a_later_member_begin_with_its_enqueue(shared: GrassHome) -> None:
    jobs = shared.enqueue_array("--hold", "--array", "1-3", "--", "true")
    lines = shared.ok("events", "--job", str(jobs[2]), "--json").splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["kind"] for event in events] == ["enqueued"]
    assert events[0]["data"] == {"last": jobs[2]}


def test_a_hundred_thousand_jobs_do_not_slow_a_look(home: GrassHome) -> None:
    home.ok("pause")
    empty = cheapest(home)
    home.ok("enqueue", "--array", "1-100000", "--", "true")
    assert cheapest(home) < MOST_LOOKS * empty
    assert cheapest(home, "name~tr") < MOST_LOOKS * empty
    one_page = home.ok("show", "--columns", "id,state,name")
    assert "1-100000" in one_page
    assert len(one_page.splitlines()) < 100


MOST_LOOKS = 8
"""So many looks at an empty queue are quicker than a person notices."""


def cheapest(home: GrassHome, *words: str) -> float:
    """Return the processor time of the cheapest of some looks.

    It depends on the machine, but not on what else that does.
    """
    took = []
    for _ in range(5):
        before = spent_s(home)
        home.ok("show", *words)
        took.append(spent_s(home) - before)
    return min(took)


def spent_s(home: GrassHome) -> float:
    """Return the processor time of the daemon, and of commands that have ended."""
    daemon, commands = home.daemon_pid(), resource.getrusage(resource.RUSAGE_CHILDREN)
    assert daemon is not None
    daemon_s = ticks(daemon) / os.sysconf("SC_CLK_TCK")
    return daemon_s + commands.ru_utime + commands.ru_stime


def explain(home: GrassHome, id: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(home.ok("explain", "--json", str(id)))
    return document


def test_a_waiting_job_is_explained_with_numbers(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:2}")
    line = f"read x < {gate}"
    holder = shared.enqueue("q", "--require", "{slot:1.5}", "--name", "big", line)
    id = shared.enqueue("q", "--require", "{slot:1}", "--", "true")
    for kill in (None, shared.replace_daemon):
        if kill is not None:
            kill()
        told = explain(shared, id)
        [short] = [one for one in told["constraints"] if not one["ok"]]
        assert (short["what"], short["need"]) == ("slot", "1")
        assert (short["have"], short["of"]) == ("0.5", "2")
        [held] = told["holders"]
        assert (held["job"], held["name"]) == (holder, "big")
        assert told["position"] == 1
    text = shared.ok("explain", str(id))
    assert "slot" in text
    assert "big" in text
    gate.tell()
    assert shared.wait(id)["state"] == "succeeded"


def test_other_waits_are_explained_too(shared: GrassHome) -> None:
    held = shared.enqueue("--hold", "--", "true")
    after = shared.enqueue("--after", str(held), "--begin", "+2h", "--", "true")
    assert f"grass release {held}" in shared.ok("explain", str(held))
    told = {one["what"]: one for one in explain(shared, after)["constraints"]}
    assert (told[f"job {held}"]["need"], told[f"job {held}"]["have"]) == (
        *("succeeded", "held"),
    )
    assert not told["begin"]["ok"]


def test_a_start_is_estimated_from_earlier_runs(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", "--max-running", "1")
    gate.tell(times=2)
    line = f"read x < {gate}"
    for _ in range(2):
        shared.wait(shared.enqueue("q", "--name", "known", line))
    shared.enqueue("q", "--name", "known", line)
    told = explain(shared, shared.enqueue("q", "--", "true"))
    assert told["estimated_start_at"] is not None
    assert told["estimate_from"] == "median of 2 runs"
    gate.tell()


@pytest.mark.parametrize("kill", [False, True])
def test_a_failure_is_explained(shared: GrassHome, *, kill: bool) -> None:
    id = shared.enqueue(f"seq 1 100; {BIG}; echo the end >&2; exit 3")
    shared.wait(id)
    if kill:
        shared.replace_daemon()
    told = explain(shared, id)
    assert (told["state"], told["exit_code"], told["signal"]) == ("failed", 3, None)
    assert told["last_lines"][-2:] == ["100", "the end"]
    assert len(told["last_lines"]) == 20
    assert told["max_rss"] > 64 << 20
    assert told["took_s"] >= 0
    text = shared.ok("explain", str(id))
    assert "exit code 3" in text
    assert "the end" in text


def test_explain_shows_the_end_of_an_output_with_a_long_progress_bar(
    shared: GrassHome,
) -> None:
    bar = "import sys; [print(f'{n:09}', end='\\r') for n in range(60000)]"
    id = shared.enqueue(
        "--", sys.executable, "-c", f"{bar}; print(); sys.exit('oh no')"
    )
    shared.wait(id)
    told = shared.ok("explain", str(id)).splitlines()
    assert told[-2:] == ["  000059999", "  oh no"]
    assert "earlier frames left out):" in told[-3]


def test_events_are_followed_over_new_daemons(shared: GrassHome, gate: Fifo) -> None:
    id = shared.enqueue(f"read x < {gate}; exit 3")
    following = shared.popen("events", "-f", "--json", "--job", str(id))
    assert following.stdout is not None

    def following_kind() -> str:
        assert following.stdout is not None
        event = json.loads(following.stdout.readline())
        assert event["job"] == id
        return str(event["kind"])

    assert [following_kind(), following_kind()] == ["enqueued", "started"]
    shared.replace_daemon()
    gate.tell()
    assert following_kind() == "finished"
    shared.restart()
    shared.ok("rerun", str(id))
    assert [following_kind(), following_kind()] == ["rerun", "started"]
    gate.tell()
    assert following_kind() == "finished"
    following.send_signal(signal.SIGINT)
    printed, errors = following.communicate(timeout=30)
    assert (following.returncode, printed, errors) == (130, "", "")


def test_the_journal_tells_who_did_what(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--", "true")
    for verb in ("release", "wait"):
        shared.ok(verb, str(id))
    shared.replace_daemon()
    printed = shared.ok("events", "--json", "--job", str(id))
    events = [json.loads(line) for line in printed.splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds == ["enqueued", "released", "started", "finished"]
    by_hand = [event["actor"].startswith("uid:") for event in events]
    assert by_hand == [True, True, False, False]
    assert [event["seq"] for event in events] == sorted(e["seq"] for e in events)
    assert "released" in shared.ok("events", "--kind", "released", "-n", "1")
    assert shared.ok("events", "--since", "0s") == ""
    wrong = shared.run("events", "--kind", "finnished")
    assert (wrong.returncode, wrong.stdout) == (0, "")
    assert wrong.stderr == (
        "grass: no event is of the kind `finnished` (did you mean finished?)\n"
    )


def test_logs_of_several_are_told_apart(shared: GrassHome, gate: Fifo) -> None:
    ids = shared.enqueue_array("--array", "1-2", "echo {index} one; echo {index} two")
    shared.wait(*ids)
    assert _by_job(shared.ok("logs", *map(str, ids))) == [
        (ids[0], "1 one"),
        (ids[0], "1 two"),
        (ids[1], "2 one"),
        (ids[1], "2 two"),
    ]
    assert shared.ok("logs", "--tail", "1", str(ids[0])) == "1 two\n"
    tails = _by_job(shared.ok("logs", "--tail", "1", f"{ids[0]}-{ids[1]}"))
    assert tails == [(ids[0], "1 two"), (ids[1], "2 two")]
    lines = shared.ok("logs", "--json", *map(str, ids)).splitlines()
    assert [json.loads(line)["job"] for line in lines] == ids
    more = shared.enqueue_array("--require", "{}", "--array", "1-2",
                                f"read x < {gate}; echo {{index}} now")  # fmt: skip
    following = shared.popen("logs", "-f", *map(str, more))
    gate.tell(times=2)
    printed, errors = following.communicate(timeout=30)
    assert following.returncode == 0
    ends = [f"grass: job {id} succeeded" for id in more]
    assert sorted(errors.splitlines()) == sorted(ends)
    told = [(more[0], "1 now"), (more[1], "2 now")]
    assert sorted(_by_job(printed)) == told


def _by_job(printed: str) -> list[tuple[int, str]]:
    """Read lines of the form `7 | text`; ids are aligned to the right."""
    parted = [line.partition(" | ") for line in printed.splitlines()]
    return [(int(id), text) for id, _, text in parted]


def test_wait_gives_up_in_time(shared: GrassHome, gate: Fifo) -> None:
    id = shared.enqueue(f"read x < {gate}; exit 3")
    for timeout in ("0", "0.2s"):
        late = shared.run("wait", "--timeout", timeout, str(id))
        assert late.returncode == 7
        assert late.stderr.count("\n") == 1
    gate.tell()
    assert shared.run("wait", "--timeout", "1h", str(id)).returncode == 3
    assert shared.run("wait", "--timeout", "0", str(id)).returncode == 3
    fine = shared.enqueue("--", "true")
    shared.wait(fine)
    assert shared.run("wait", "--timeout", "0", str(fine)).returncode == 0
    assert shared.run("wait", "@nosuch").returncode == 4
