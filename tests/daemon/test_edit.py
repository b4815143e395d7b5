"""Changing jobs that have not started, and queues."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon

Look = Callable[[Document], Any]


def shown(home: GrassHome, id: int) -> Document:
    """Give a job without its reason, which tells of others."""
    job = dict(home.client.job(id))
    job.pop("reason")
    return job


def test_fields_can_be_changed_and_the_others_stay(shared: GrassHome) -> None:
    words = (
        *("--priority", "5", "-c", "1", "-m", "64M", "--queue", "q"),
        *("--time-limit", "none", "--begin", "2099-01-01T00:00Z", "--after", "none"),
    )
    fields = {
        "priority": 5,
        "request": {"cpu": 1, "ram": 0.0625},
        "queue": "q",
        "time_limit_s": None,
        "begin_at": "2099-01-01T00:00:00.000Z",
        "after": [],
        "command": ["echo", "new"],
        "filled_command": ["echo", "new"],
    }
    shared.ok("create-queue", "q")
    shared.ok("pause")
    other = shared.enqueue("--", "true")
    id = shared.enqueue(
        *("--after", str(other), "--time-limit", "1h", "--retries", "1", "--", "true")
    )
    before = shown(shared, id)
    said = shared.ok("edit", *words, str(id), "--", "echo", "new")
    assert said == "edited 1 job\n"
    changed = {**before, **fields}
    for field in ("state", "retries_left"):
        changed[field] = shared.client.job(id)[field]
    assert shown(shared, id) == changed


def test_edits_are_what_runs_also_after_a_kill(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:2}")
    id = shared.enqueue("--hold", "--env", "A=1", "--env", "B=1", "--", "true")
    shared.ok(
        *("edit", str(id), "--queue", "q", "--require", "{slot:2}"),
        *("--env", "B=2", "--cwd", "/", "--", "echo $A $B $PWD {slot} $GRASS_SLOT"),
    )
    shared.replace_daemon()
    shared.ok("release", str(id))
    job = shared.wait(id)
    assert (job["state"], job["queue"]) == ("succeeded", "q")
    assert shared.logs(id) == "1 2 / 0,1 0,1\n"


def test_a_higher_priority_counts_at_once(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", "--max-running", "1")
    order = shared.desk / "order"
    blocker = shared.enqueue("q", f"read x < {gate}")
    ids = [shared.enqueue("q", f"echo {n} >> {order}; true") for n in (1, 2, 3)]
    shared.ok("edit", "--priority", "9", str(ids[2]))
    gate.tell()
    shared.wait(blocker, *ids)
    assert order.read_text().split() == ["3", "1", "2"]


def test_a_job_is_put_first(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("create-queue", "q", "--max-running", "1")
    order = shared.desk / "first"
    blocker = shared.enqueue("q", f"read x < {gate}")
    ids = [shared.enqueue("q", f"echo {n} >> {order}; true") for n in (1, 2, 3)]
    shared.ok("edit", "--priority", "9", str(ids[1]))
    assert shared.ok("edit", str(ids[2]), "--first") == "edited 1 job\n"
    gate.tell()
    shared.wait(blocker, *ids)
    assert order.read_text().split() == ["3", "2", "1"]


def test_what_has_started_cannot_be_edited(shared: GrassHome, gate: Fifo) -> None:
    running = shared.enqueue(f"read x < {gate}")
    ended = shared.enqueue("--require", "{}", "--", "true")
    shared.wait(ended)
    waiting = shared.enqueue("--hold", "--", "true")
    for id, hint in ((running, "grass cancel"), (ended, "grass rerun")):
        refused = shared.run("edit", str(id), "--priority", "3")
        assert (refused.returncode, refused.stdout) == (5, "")
        assert hint in refused.stderr
        both = shared.run("edit", "--yes", str(id), str(waiting), "--priority", "3")
        assert both.returncode == 5
    assert [shared.client.job(id)["priority"] for id in (running, ended, waiting)] == [
        *(0, 0, 0)
    ]
    gate.tell()
    shared.wait(running)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["{id}", "--priority", "high"], 2),
        (["{id}", "--priority", "3", "--first"], 2),
        (["{id}", "--priority", "3", "--require", "{{cpu:999}}"], 6),
        (["{id}", "--priority", "3", "--after", "{id}"], 5),
        (["{id}", "--priority", "3", "--cwd", "/no/such"], 2),
        (["999999", "--priority", "3"], 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_edit_changes_nothing(
    shared: GrassHome, words: list[str], code: int
) -> None:
    id = shared.enqueue("--hold", "--", "true")
    before = shared.client.job(id)
    refused = shared.run("edit", *(word.format(id=id) for word in words))
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.job(id) == before


def queue(home: GrassHome, name: str) -> Document:
    queues: list[Document] = home.client.overview()["queues"]
    [found] = [one for one in queues if one["name"] == name]
    return found


def test_a_queue_can_be_widened_and_narrowed_while_jobs_run(
    shared: GrassHome, gate: Fifo
) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:1}", "--max-running", "1")
    line = f"read x < {gate}"
    ids = [shared.enqueue("q", "--require", "{slot:0.5}", line) for _ in range(3)]
    assert shared.states(ids) == ["running", "queued", "queued"]
    shared.ok("edit-queue", "q", "--max-running", "none")
    assert shared.states(ids) == ["running", "running", "queued"]
    shared.ok("edit-queue", "q", "--capacity", "{slot:2}")
    assert shared.states(ids) == ["running"] * 3
    shared.ok("edit-queue", "q", "--max-running", "1")
    fourth = shared.enqueue("q", "--require", "{slot:0.5}", line)
    shared.replace_daemon()
    assert queue(shared, "q")["max_running"] == 1
    assert shared.state(fourth) == "queued"
    gate.tell(times=4)
    assert shared.wait(*ids, fourth)["state"] == "succeeded"


def test_what_a_queue_gives_its_jobs_can_be_changed(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--env", "A=1", "echo", "old")
    shared.ok(
        *("edit-queue", "q", "--env", "B=2", "--cwd", "/", "--max-fails", "7"),
        *("--default-require", "{cpu:0.5}", "sh", "-c"),
    )
    id = shared.enqueue("q", "echo ${A-none} $B $PWD")
    assert shared.wait(id)["request"] == {"cpu": 0.5}
    assert shared.logs(id) == "none 2 /\n"
    assert queue(shared, "q")["max_fails"] == 7
    shared.ok("edit-queue", "q", "--max-fails", "none", "--default-require", "none")
    assert (queue(shared, "q")["max_fails"], queue(shared, "q")["default_request"]) == (
        *(None, None),
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["q"], 2),
        (["nosuch", "--max-running", "1"], 4),
        (["default", "--capacity", "{slot:9}"], 5),
        (["q", "--max-fails", "3", "--max-running", "0"], 2),
        (["q", "--max-fails", "3", "--cwd", "/no/such"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_change_of_a_queue_changes_nothing(
    shared: GrassHome, words: list[str], code: int
) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:2}")
    before = shared.client.overview()
    refused = shared.run("edit-queue", *words)
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert shared.client.overview() == before


def test_the_same_again_is_no_change(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--max-running", "2")
    said = shared.ok("edit-queue", "q", "--max-running", "2")
    assert said == "queue q is like that already\n"


def test_a_change_that_means_nothing_is_told(shared: GrassHome) -> None:
    shared.ok("create-queue", "q")
    said = shared.run("edit-queue", "q", "--cwd", "/")
    assert said.returncode == 0
    assert said.stdout == "queue q is like that already\n"
    assert "queue `q` has no command, so the directory / is left out" in said.stderr
