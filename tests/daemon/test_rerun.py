"""Running a job again: the same job, with one attempt more."""

from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_older_attempts_and_their_output_are_kept(shared: GrassHome) -> None:
    line = "echo attempt {attempt}; exit $((4 - {attempt}))"
    id = shared.enqueue(line)
    first = shared.wait(id)
    assert shared.ok("rerun", str(id)) == f"{id}\n"
    shared.wait(id)
    shared.replace_daemon()
    shared.ok("rerun", str(id))
    shared.wait(id)
    job = shared.client.job(id)
    assert [one["exit_code"] for one in job["attempts"]] == [3, 2, 1]
    assert job["attempts"][0] == first["attempts"][0]
    assert (job["exit_code"], job["created_at"]) == (1, first["created_at"])
    for number in (1, 2, 3):
        printed = shared.ok("logs", "--attempt", str(number), str(id))
        assert printed == f"attempt {number}\n"
    assert shared.ok("logs", str(id)) == "attempt 3\n"


def test_a_chain_comes_back_with_its_leader(shared: GrassHome, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    first = shared.enqueue("--", "test", "-e", str(mended))
    assert shared.wait(first)["state"] == "failed"
    late = shared.run("enqueue", "--array", "1-3", "--after", str(first), "--", "true")
    assert (late.returncode, f"job {first} has failed" in late.stderr) == (0, True)
    last = shared.enqueue("--after", late.stdout.strip(), "--", "true")
    assert shared.wait(last)["state"] == "cancelled"
    mended.touch()
    asked = shared.run("rerun", str(first), "--with-dependents")
    assert "this would rerun 5 jobs" in asked.stderr
    again = shared.run("rerun", "--yes", str(first), "--with-dependents")
    assert again.stdout == f"{first}-{last}\n"
    assert "4 jobs of these had waited" in again.stderr
    ended = shared.client.wait([f"{first}-{last}"])
    assert [job["state"] for job in ended] == ["succeeded"] * 5


def test_an_edit_may_come_with_it(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--json", "{slot:2}")
    id = shared.enqueue("--name", "old", "--env", "A=1", "--", "false")
    shared.wait(id)
    shared.ok(
        *("rerun", str(id), "--queue", "q", "--require", "{slot:1}", "--name", "new"),
        *("--env", "B=2", "--edit", "--", "sh", "-c", "echo $A $B $GRASS_SLOT"),
    )
    job = shared.wait(id)
    assert (job["state"], job["name"], job["queue"]) == ("succeeded", "new", "q")
    assert job["command"] == ["sh", "-c", "echo $A $B $GRASS_SLOT"]
    assert shared.logs(id) == "1 2 0\n"
    assert [one["exit_code"] for one in job["attempts"]] == [1, 0]


@pytest.mark.parametrize("line", ["exit 0", "exit 3", "kill -KILL $$"])
def test_any_end_can_be_run_again_and_its_retries_count_anew(
    shared: GrassHome, line: str
) -> None:
    id = shared.enqueue("--retries", "1", f"true; {line}")
    before = len(shared.wait(id)["attempts"])
    shared.ok("rerun", str(id))
    assert len(shared.wait(id)["attempts"]) == 2 * before


def test_a_cancelled_job_can_be_run_again(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--", "true")
    shared.ok("cancel", str(id))
    shared.ok("rerun", "--hold", str(id))
    assert shared.state(id) == "held"
    shared.replace_daemon()
    assert shared.state(id) == "held"
    shared.ok("release", str(id))
    job = shared.wait(id)
    assert (job["state"], job["reason"]) == ("succeeded", None)
    assert job["stopping_since"] is None


def test_a_job_that_has_not_ended_is_refused(shared: GrassHome, gate: Fifo) -> None:
    id = shared.enqueue(f"read x < {gate}")
    refused = shared.run("rerun", str(id))
    assert (refused.returncode, refused.stdout) == (5, "")
    assert f"job {id} has not ended" in refused.stderr
    ended = shared.enqueue("--require", "{}", "--", "true")
    shared.wait(ended)
    both = shared.run("rerun", "--yes", str(id), str(ended))
    assert (both.returncode, both.stdout) == (0, f"{ended}\n")
    assert f"job {id} has not ended" in both.stderr
    gate.tell()
    shared.wait(id, ended)
    assert [len(shared.client.job(one)["attempts"]) for one in (id, ended)] == [1, 2]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["{id}", "--", "true"], 2),
        (["{id}", "--edit"], 2),
        (["{id}", "--cwd", "/no/such"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_rerun_changes_nothing(
    shared: GrassHome, words: list[str], code: int
) -> None:
    id = shared.enqueue("--", "false")
    before = shared.wait(id)
    refused = shared.run("rerun", *(word.format(id=id) for word in words))
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.job(id) == before


def test_a_failed_array_is_run_again_by_its_state(shared: GrassHome) -> None:
    shared.client.prune(0)
    flag = shared.desk / "mended"
    ids = shared.enqueue_array("--array", "1-4", f"test {{index}} -gt 2 -o -e {flag}")
    shared.wait(*ids)
    assert shared.states(ids) == ["failed", "failed", "succeeded", "succeeded"]
    flag.touch()
    printed = shared.ok("rerun", "--yes", "state:failed")
    assert printed == f"{ids[0]}-{ids[1]}\n"
    shared.wait(*ids)
    assert shared.states(ids) == ["succeeded"] * 4
    assert [len(shared.client.job(id)["attempts"]) for id in ids] == [2, 2, 1, 1]
