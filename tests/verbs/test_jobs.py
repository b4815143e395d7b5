"""Jobs of a Python program: enqueued, waited for, read and steered."""

import sys
from pathlib import Path

import pytest

import grass
from grass.errors import NeverFits, NotFound, Refused, TimedOut, UsageError
from grass.verbs.job_list import Jobs
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.daemon


def test_a_program_and_a_shell_line_run_as_jobs(desk: GrassHome) -> None:
    one = grass.enqueue(["echo", "a b"], name="first", request={"cpu": 1})
    two = grass.enqueue("echo $A; exit 3", env={"A": "b"}, after=f"{one.id}:any")
    assert (one.name, one.command, one.request) == (
        "first",
        ["echo", "a b"],
        {"cpu": 1},
    )
    assert one.wait(PATIENCE_S).has_succeeded
    assert (one.exit_code, one.reason, list(one.logs())) == (0, None, ["a b"])
    assert two.wait(f"{PATIENCE_S}s").state == "failed"
    assert (two.exit_code, list(two.logs())) == (3, ["b"])
    assert one.created_at is not None
    assert one.finished_at is not None
    assert one.created_at <= one.finished_at
    assert repr(two) == f"<Job {two.id} echo: failed>"
    assert two == grass.jobs(two.id)[0]
    assert two != one
    assert f"job {two.id} failed: exit code 3" in two.explain()


def test_a_script_says_what_it_needs(desk: GrassHome) -> None:
    script = desk.desk / "train.sh"
    script.write_text("#!/bin/sh\n#GRASS --name trained --priority 4\n")
    script.chmod(0o755)
    job = grass.enqueue(["./train.sh"], priority=5)
    assert (job.name, job.priority) == ("trained", 5)
    assert grass.enqueue(["./train.sh"], no_directives=True).name == "train.sh"


def test_lines_come_while_the_job_runs(desk: GrassHome, gate: Fifo) -> None:
    job = grass.enqueue(f"echo one; read x < {gate}; printf 'caf\\303\\251\\ntwo'")
    lines = job.logs(follow=True)
    assert next(lines) == "one"
    assert job.refresh().state == "running"
    gate.tell("go")
    assert list(lines) == ["café", "two"]
    assert list(job.wait().logs(tail=1)) == ["two"]


def test_a_wait_ends_at_its_limit(desk: GrassHome) -> None:
    job = grass.enqueue(["true"], hold=True)
    for limit in (0.1, -1e-9, "0s"):
        with pytest.raises(TimedOut):
            job.wait(limit)
    assert job.state == "held"


def test_several_are_a_list_with_the_verbs(desk: GrassHome) -> None:
    many = grass.enqueue_many([["true"], "exit 4"], project="demo", hold=True)
    assert [one.state for one in many] == ["held", "held"]
    assert many.release().ids == many.ids
    assert [one.state for one in many.wait(PATIENCE_S)] == ["succeeded", "failed"]
    failed = grass.jobs("state:failed")
    assert failed.ids == [many[1].id]
    assert set(grass.jobs("@demo", failed, any=True)) == set(many)
    assert grass.jobs("@demo", "state:failed", "1-99").ids == failed.ids
    assert grass.jobs(many, "state:failed").ids == failed.ids
    assert grass.jobs(many[:0], "state:failed").ids == []
    with pytest.raises(NotFound, match=f"job {many[0].id} is not `state:failed`"):
        grass.jobs(many[0], "state:failed")
    again = failed.rerun(["true"], name="again").wait(PATIENCE_S)
    assert [(one.name, one.state) for one in again] == [("again", "succeeded")]
    assert many[1].state == "failed"
    assert many.refresh()[1].state == "succeeded"
    assert many[:1].ids == [many[0].id]
    assert len(grass.jobs("state:failed").rerun()) == 0


def test_an_array_is_a_list(desk: GrassHome) -> None:
    made = grass.enqueue_array(["echo", "{index}"], "1-3%2", quiet=True)
    assert [one.index for one in made] == [1, 2, 3]
    assert [list(one.logs()) for one in made.wait(PATIENCE_S)] == [["1"], ["2"], ["3"]]
    assert grass.enqueue(["true"], after=made).wait(PATIENCE_S).has_succeeded


def test_a_long_list_is_read_as_it_is_looked_at(desk: GrassHome) -> None:
    made = grass.enqueue_array(["true"], "1-450", hold=True)
    assert len(made) == 450
    assert [made[0].is_known, made[449].state] == [False, "held"]
    assert not made[0].is_known
    assert {one.state for one in made} == {"held"}
    assert len(made.cancel()) == 450
    assert {one.state for one in made.refresh()} == {"cancelled"}


def test_jobs_are_held_changed_and_ended(desk: GrassHome, news: Fifo) -> None:
    job = grass.enqueue(["true"], hold=True, time_limit="2h")
    assert job.edit(priority=7, time_limit=None).priority == 7
    assert job.document["time_limit_s"] is None
    assert job.release().wait(PATIENCE_S).has_ended
    runs = grass.enqueue(f"trap '' TERM; echo $$ > {news}; sleep 600")
    desk.await_start(runs.id, news)
    with pytest.raises(Refused, match=f"job {runs.id} "):
        runs.hold()
    assert runs.cancel(now=True).state == "cancelled"
    assert runs.cancel().state == "cancelled"


def test_selectors_of_nothing_never_mean_everything(desk: GrassHome) -> None:
    job = grass.enqueue(["true"], hold=True, name="a,b")
    assert grass.jobs("all").ids == grass.jobs("name~a,b").ids == [job.id]
    with pytest.raises(UsageError, match="no job was named"):
        grass.jobs()
    none = grass.jobs("state:running")
    assert len(grass.jobs(none).cancel()) == 0
    assert job.refresh().state == "held"
    assert grass.jobs("all").cancel().ids == [job.id]
    assert repr(grass.jobs("all")) == "<Jobs none>"
    assert repr(Jobs([3, 4, 7])) == "<Jobs 3-4, 7>"


def test_hints_are_told_on_stderr(
    desk: GrassHome, capfd: pytest.CaptureFixture[str]
) -> None:
    desk.ok("pause")
    grass.enqueue_many([["true"]])
    told = "grass: everything is paused: `grass resume` lets jobs start\n"
    assert capfd.readouterr().err == told
    grass.enqueue(["true"], quiet=True)
    assert capfd.readouterr().err == ""


def test_wrong_calls_are_told_as_on_the_command_line(desk: GrassHome) -> None:
    with pytest.raises(NeverFits, match="has no licence"):
        grass.enqueue(["true"], request={"licence": 1})
    with pytest.raises(UsageError, match="--priority must be a whole number"):
        grass.enqueue(["true"], priority="x")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="no command was given"):
        grass.enqueue([])
    with pytest.raises(UsageError, match=r"0\.1 is no word"):
        grass.enqueue(["python", "x.py", 0.1])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"is no command.*a shell line"):
        grass.enqueue(3)  # type: ignore[call-overload]
    with pytest.raises(NotFound, match="there is no job 999999"):
        grass.jobs(999999)
    with pytest.raises(UsageError, match="there is no directory"):
        grass.enqueue(["true"], cwd="/nowhere")
    assert len(grass.enqueue_many([])) == 0
    assert grass.jobs("all").ids == []


def test_words_may_come_as_paths_and_from_any_iterable(desk: GrassHome) -> None:
    (desk.desk / "hello.txt").write_text("hello\n")
    words = (word for word in ("cat", Path("hello.txt")))
    job = grass.enqueue(words).wait(PATIENCE_S)
    assert list(job.logs()) == ["hello"]


def test_lines_go_on_over_a_restart_of_the_daemon(
    home: GrassHome, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    job = grass.enqueue(f"echo one; read x < {gate}; echo two")
    lines = job.logs(follow=True)
    assert next(lines) == "one"
    home.replace_daemon()
    gate.tell("go")
    assert list(lines) == ["two"]
    assert job.wait(PATIENCE_S).has_succeeded


def test_a_queue_with_a_prefix_takes_arguments(desk: GrassHome) -> None:
    desk.ok("create-queue", "py", "--", sys.executable, "-c")
    job = grass.enqueue(["print(1)"], queue="py").wait(PATIENCE_S)
    assert list(job.logs()) == ["1"]
