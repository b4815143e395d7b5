"""Forgetting jobs that have ended: `remove` and `prune`."""

import json
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon


def test_removed_jobs_are_gone_with_all_their_output(shared: GrassHome) -> None:
    kept = shared.enqueue("--", "echo", "kept")
    gone = shared.enqueue("--retries", "1", "--", "sh", "-c", "echo text; exit 1")
    mine = shared.enqueue("--output", "mine.txt", "--", "echo", "mine")
    shared.wait(kept, gone, mine)
    files = [Path(one["output"]) for one in shared.client.job(gone)["attempts"]]
    assert len(files) == 2
    said = shared.ok("remove", "--yes", str(gone), str(mine))
    assert said.startswith("removed 2 jobs with ")
    for id in (gone, mine):
        assert shared.run("show", str(id)).returncode == 4
        assert shared.run("logs", str(id)).returncode == 4
    shared.replace_daemon()
    assert shared.run("show", str(gone)).returncode == 4
    shared.restart()
    assert not any(file.exists() for file in files)
    assert (shared.desk / "mine.txt").read_text() == "mine\n"
    assert shared.logs(kept) == "kept\n"
    assert shared.enqueue("--", "true") > mine


def test_what_has_not_ended_stays(shared: GrassHome, gate: Fifo) -> None:
    running = shared.enqueue(f"read x < {gate}")
    held = shared.enqueue("--hold", "--", "true")
    for id in (running, held):
        ran = shared.run("remove", str(id))
        assert "removed" not in ran.stdout
        assert f"job {id}" in ran.stdout + ran.stderr
    assert shared.states([running, held]) == ["running", "held"]
    gate.tell()
    shared.wait(running)


def test_a_job_that_others_wait_for_may_be_removed(
    shared: GrassHome, gate: Fifo
) -> None:
    first = shared.enqueue("--", "true")
    other = shared.enqueue(f"read x < {gate}")
    shared.wait(first)
    waiting = shared.enqueue("--after", f"{first},{other}", "--", "true")
    shared.ok("remove", str(first))
    shared.replace_daemon()
    gate.tell()
    job = shared.wait(waiting)
    assert job["state"] in ("succeeded", "cancelled")
    assert job["state"] == "succeeded" or "forgotten" in job["reason"]


def test_prune_forgets_by_age_and_says_what_it_would(shared: GrassHome) -> None:
    id = shared.enqueue("--", "echo", "text")
    shared.wait(id)
    held = shared.enqueue("--hold", "--", "true")
    assert shared.ok("prune", "--older", "1h").startswith("forgot 0 jobs")
    planned = json.loads(shared.ok("prune", "--older", "0s", "--dry-run", "--json"))
    assert planned["jobs"] >= 1
    assert shared.state(id) == "succeeded"
    done = json.loads(shared.ok("prune", "--older", "0s", "--yes", "--json"))
    assert (done["jobs"], done["output_bytes"]) == (
        planned["jobs"],
        planned["output_bytes"],
    )
    shared.replace_daemon()
    assert [job["id"] for job in shared.client.jobs()] == [held]
    assert shared.client.overview()["daemon"]["output_bytes"] == 0


@pytest.mark.parametrize("words", [["--older", "old"], ["--older", "-1d"], ["7"]])
def test_bad_ages_forget_nothing(shared: GrassHome, words: list[str]) -> None:
    id = shared.enqueue("--", "true")
    shared.wait(id)
    assert shared.run("prune", *words).returncode == 2
    assert shared.state(id) == "succeeded"


@pytest.mark.sqlite
def test_the_database_is_shorter_after_many_jobs_were_forgotten(
    home: GrassHome,
) -> None:
    database = home.folder / "grass.db"
    words = ["--", "true", "x" * 8_000]
    home.ok("enqueue", "--hold", "--array", "1-2000", *words)
    home.ok("cancel", "--yes", "all")
    home.ok("prune", "--older", "0s", "--yes")
    until(
        lambda: database.stat().st_size,
        "the room was not given back",
        lambda size: size < 8 << 20,
    )
