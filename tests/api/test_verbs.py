"""Every verb on jobs: what it does, what it answers, and what it refuses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.calling import Answer, Api, play

from grass.broker.shell import pruning
from grass.link import messages
from grass.link.messages import Exited, RemoveOutput, Start, Started


async def some_jobs(api: Api, count: int, **fields: Any) -> None:
    """Add jobs that do not start."""
    await api.post("/pause", {})
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}] * count})
    assert answer.status == 200


async def run_one(api: Api, **fields: Any) -> str:
    """Add a job and let it run."""
    await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}]})
    start = await api.worker.hears(Start)
    assert isinstance(start, Start)
    started = Started(start.attempt, 42, 1_000_000, f"/out/{start.job}.log", 0)
    api.worker.link.send(started)
    return start.attempt


async def ended_one(api: Api, code: int = 0, size: int = 0) -> int:
    """Add a job and let it run to its end."""
    attempt = await run_one(api)
    job = int(attempt.split(".")[1])
    api.worker.link.send(Exited(attempt, 2_000_000, code, output_bytes=size))
    await api.broker.ended([job])
    return job


async def verb(api: Api, word: str, /, *select: str, **more: Any) -> Answer:
    return await api.post(f"/jobs/{word}", {"select": list(select), **more})


async def state_of(api: Api, job: int) -> str:
    return str((await api.get(f"/jobs/{job}")).document["state"])


def test_selectors_are_told_what_they_mean(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 5, project="p")
        for select, ids in {
            ("2-3", "3-4"): [2, 3, 4],
            ("last", "1-4"): [4],
            ("@p",): [1, 2, 3, 4, 5],
            ("state:failed",): [],
            ("4-99",): [4, 5],
            ("@p", "4-99"): [4, 5],
            ("@p", "state:failed"): [],
            ("2-3", "state:failed"): [],
            ("4", "state:queued", "@p"): [4],
        }.items():
            told = (await verb(api, "select", *select)).document
            assert told == {"jobs": ids, "count": len(ids), "running": 0}

    play(tmp_path, story)


def test_a_union_has_the_jobs_of_any_selector(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2, project="p")
        await some_jobs(api, 3)
        told = await verb(api, "select", "@p", "4", "last", any=True)
        assert told.document["jobs"] == [1, 2, 4, 5]
        page = await api.get("/jobs?select=@p&select=4&any=1&order=oldest")
        assert [job["id"] for job in page.document["jobs"]] == [1, 2, 4]
        assert (await verb(api, "select", "@p", "99", any=True)).status == 404
        await verb(api, "hold", "@p", "4", any=True)
        held = await verb(api, "select", "state:held")
        assert held.document["jobs"] == [1, 2, 4]

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (["1", "state:failed"], "job 1 is not `state:failed`"),
        (["1", "3", "@q"], "job 1 is not `@q`"),
        (["1", "2", "@q", "@r"], "jobs 1, 2 are not `@q` or `@r`"),
        (["1", "name~^a", "state:held"], "job 1 is not `state:held`"),
        (["1", "3", "last"], "job 1 is not `last`"),
        (["1", "99", "state:failed"], "there is no job 99"),
        (["@nosuch", "state:queued"], "no job is `@nosuch`"),
        (["8-9", "state:queued"], "no job is `8-9`"),
        (["last", "state:failed"], "no job is `last`: no job matches `state:failed`"),
        (["queue:nosuch", "state:failed"], "there is no queue `nosuch`"),
    ],
)
@pytest.mark.parametrize("name", ["hold", "cancel", "wait", "select", "estimate"])
def test_an_id_that_others_leave_out_is_named_and_nothing_is_done(
    tmp_path: Path, select: list[str], message: str, name: str
) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2, name="a", project="p")
        await some_jobs(api, 1, name="b", project="q")
        await some_jobs(api, 1, name="c", project="r")
        await verb(api, "hold", "4")
        answer = await verb(api, name, *select)
        assert (answer.status, answer.document["detail"]) == (404, message)
        states = (await api.get("/jobs?order=oldest")).document["jobs"]
        assert [one["state"] for one in states] == ["queued"] * 3 + ["held"]

    play(tmp_path, story)


def test_a_page_names_an_id_that_others_leave_out(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 3)
        for order in ("newest", "display", "-id"):
            for select, status in (("2", 404), ("2-3", 200), ("1&select=2", 404)):
                query = f"order={order}&select={select}&select=state:failed"
                answer = await api.get(f"/jobs?{query}")
                assert answer.status == status, query
        answer = await api.get("/jobs?select=1&select=state:queued&select=last")
        assert [one["id"] for one in answer.document["jobs"]] == [1]
        exported = await api.get("/jobs/export?select=1&select=state:failed")
        assert exported.status == 404

    play(tmp_path, story)


def test_those_in_some_states_are_picked_and_counted(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 4, project="p")
        await verb(api, "hold", "2", "4")
        told = (await verb(api, "select", "@p", states=["held", "failed"])).document
        assert told == {"jobs": [2, 4], "count": 2, "running": 0}
        told = (await verb(api, "select", "@p", "1-3", states=["queued"])).document
        assert told["jobs"] == [1, 3]
        assert (await verb(api, "select", "@p", states=["done"])).status == 400

    play(tmp_path, story)


def test_a_thousand_ids_may_be_named_one_by_one(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 3000)
        odd = [str(id) for id in range(1, 3000, 2)]
        told = (await verb(api, "select", *odd)).document
        assert told["count"] == 1500
        missing = await verb(api, "select", *odd, "3001")
        assert missing.document["detail"] == "there is no job 3001"

    play(tmp_path, story)


def test_a_held_job_starts_after_its_release(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2)
        assert (await verb(api, "hold", "1-2")).document["jobs"] == [1, 2]
        assert await state_of(api, 1) == "held"
        again = (await verb(api, "hold", "1")).document
        assert (again["jobs"], again["changed"]) == ([], False)
        assert again["warnings"] == ["job 1 is held, not waiting to start"]
        assert (await verb(api, "release", "1")).document["jobs"] == [1]
        assert await state_of(api, 1) == "queued"
        assert await state_of(api, 2) == "held"

    play(tmp_path, story)


def test_a_running_job_is_suspended_and_goes_on(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        attempt = await run_one(api)
        assert (await verb(api, "suspend", "1")).document["jobs"] == [1]
        assert await api.worker.hears(messages.Suspend) == messages.Suspend(attempt)
        job = (await api.get("/jobs/1")).document
        assert "suspended" in job["flags"]
        assert job["suspended_since"]
        why = (await api.get("/jobs/1/explain")).document["why"]
        assert "grass continue 1" in why
        assert (await verb(api, "continue", "1")).document["jobs"] == [1]
        assert await api.worker.hears(messages.Continue) == messages.Continue(attempt)
        assert "suspended" not in (await api.get("/jobs/1")).document["flags"]

    play(tmp_path, story)


def test_a_job_that_has_not_started_is_edited(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2, time_limit_s=5)
        changes = {
            "priority": 7,
            "require": "{cpu:2}",
            "command": "echo a; echo b",
            "time_limit_s": None,
            "name": "other",
            "after": ["1:any"],
            "retries": 2,
            "cwd": "/tmp",
            "begin_at": "2999-01-01T00:00:00Z",
        }
        done = await verb(api, "edit", "2", **changes)
        assert done.document["jobs"] == [2]
        job = (await api.get("/jobs/2")).document
        assert (job["priority"], job["request"]) == (7, {"cpu": 2})
        assert (job["command"], job["shell"]) == (["echo a; echo b"], True)
        assert (job["time_limit_s"], job["name"], job["retries"]) == (None, "other", 2)
        assert (job["after"], job["cwd"], job["state"]) == (
            ["1:any"],
            "/tmp",
            "waiting",
        )
        await verb(api, "edit", "2", after=None, begin_at=None)
        job = (await api.get("/jobs/2")).document
        assert (job["after"], job["begin_at"], job["state"]) == ([], None, "queued")
        assert (await api.get("/jobs/1")).document["time_limit_s"] == 5

    play(tmp_path, story)


def test_words_of_an_edit_are_not_a_shell_line(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 1)
        await verb(api, "edit", "1", command=["echo", "a b"])
        job = (await api.get("/jobs/1")).document
        assert (job["command"], job["shell"]) == (["echo", "a b"], False)

    play(tmp_path, story)


def test_a_job_that_ended_runs_again(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await ended_one(api, code=1)
        done = await verb(api, "rerun", "1", command=["y"], env={"A": "1"})
        assert done.document["jobs"] == [1]
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert (start.number, start.words, start.env) == (2, ("y",), (("A", "1"),))
        job = (await api.get("/jobs/1")).document
        assert [one["number"] for one in job["attempts"]] == [1, 2]
        assert job["exit_code"] is None

    play(tmp_path, story)


def test_a_rerun_may_be_held(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await ended_one(api)
        await verb(api, "rerun", "1", hold=True)
        assert await state_of(api, 1) == "held"

    play(tmp_path, story)


def test_a_job_that_has_not_ended_does_not_run_again(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await ended_one(api)
        await some_jobs(api, 1)
        alone = await verb(api, "rerun", "2")
        assert (alone.status, alone.document["code"]) == (409, "refused")
        both = (await verb(api, "rerun", "1-2")).document
        assert both["jobs"] == [1]
        assert both["warnings"] == ["job 2 has not ended"]

    play(tmp_path, story)


def test_ended_jobs_are_removed_with_their_output(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await ended_one(api, size=7)
        await ended_one(api, size=5)
        await some_jobs(api, 1)
        done = (await verb(api, "remove", "1-3")).document
        assert (done["jobs"], done["output_bytes"]) == (2, 12)
        assert done["warnings"] == ["1 jobs have not ended and were left alone"]
        heard = await api.worker.hears(RemoveOutput)
        assert heard == RemoveOutput(["/out/1.log", "/out/2.log"], 1)
        jobs = (await api.get("/jobs")).document["jobs"]
        assert [job["id"] for job in jobs] == [3]

    play(tmp_path, story)


def test_a_verb_that_a_stop_cuts_off_says_so(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2000)
        holding = asyncio.ensure_future(verb(api, "hold", "all"))
        # Its first slices are written; then the server gives up, as at a stop.
        await api.broker.next_commit()
        assert not holding.done()
        api.app.state.api.closing.set()
        holding.cancel()
        cut_off = await holding
        assert (cut_off.status, cut_off.document["code"]) == (503, "stopping")
        assert "may not have reached all jobs" in cut_off.document["detail"]

    play(tmp_path, story)


def test_prune_passes_over_jobs_that_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)

    async def story(api: Api) -> None:
        for _ in range(5):
            await ended_one(api)
        await some_jobs(api, 1, after=["1:any", "2:any", "3:any"], hold=True)
        done = await api.post("/jobs/prune", {"older_s": 0})
        assert done.document["jobs"] == 2
        left = (await api.get("/jobs")).document["jobs"]
        assert [job["id"] for job in left] == [6, 3, 2, 1]

    play(tmp_path, story)


def test_unfinished_jobs_are_not_removed(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 2)
        one = await verb(api, "remove", "1")
        assert (one.status, one.document["detail"]) == (409, "job 1 has not ended")
        assert (await verb(api, "remove", "1-2")).status == 409
        assert (await verb(api, "select", "1-2")).document["count"] == 2

    play(tmp_path, story)


@pytest.mark.parametrize(
    "name",
    ["cancel", "hold", "release", "rerun", "suspend", "continue", "remove", "edit"],
)
def test_a_selector_that_means_nothing_touches_nothing(
    tmp_path: Path, name: str
) -> None:
    async def story(api: Api) -> None:
        more = {"priority": 1} if name == "edit" else {}
        before = api.broker.state.now_us
        answer = await verb(api, name, "state:lost", **more)
        assert answer.status == 200
        assert answer.document["jobs"] in ([], 0)
        assert api.broker.state.now_us == before

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("name", "more", "status", "told"),
    [
        ("edit", {}, 400, "nothing to change was given"),
        ("edit", {"priority": None}, 400, "Expected `int`, got `null`"),
        ("edit", {"priority": 10**9}, 400, "priority 1000000000 is out of range"),
        ("edit", {"require": "{gpu:"}, 400, "--require, line 1"),
        ("edit", {"require": {"gpu": 1}}, 422, "has no gpu"),
        ("edit", {"command": []}, 400, "no command was given"),
        ("edit", {"queue": "nobodys"}, 404, "there is no queue `nobodys`"),
        ("edit", {"time_limit_s": 0}, 400, "--time-limit is 0 seconds"),
        ("edit", {"after": ["9"]}, 404, "there is no job 9"),
        ("edit", {"after": ["1"]}, 409, "would wait for itself"),
        ("edit", {"begin_at": "soon"}, 400, "--begin `soon`"),
        ("edit", {"retries": -1}, 400, "--retries is -1"),
        ("edit", {"env": {"A=": "1"}}, 400, "cannot be an environment variable"),
        ("edit", {"cwd": "here"}, 400, "--cwd `here` is not an absolute path"),
        ("edit", {"hold": True}, 400, "unknown field `hold`"),
        ("rerun", {"after": ["2"]}, 400, "unknown field `after`"),
        ("hold", {"grace_s": 1}, 400, "unknown field `grace_s`"),
    ],
)
def test_a_bad_change_changes_nothing(
    tmp_path: Path, name: str, more: dict[str, Any], status: int, told: str
) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 1)
        before = (await api.get("/jobs/1")).document
        answer = await verb(api, name, "1", **more)
        assert answer.status == status, answer.document
        assert told in answer.document["detail"]
        assert (await api.get("/jobs/1")).document == before

    play(tmp_path, story)


def test_a_page_holds_what_filters_leave(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await some_jobs(api, 3, project="p", name="a")
        await some_jobs(api, 2, project="q", name="a")
        await some_jobs(api, 1, project="q", name="b")

        async def ids(query: str) -> list[int]:
            page = await api.get(f"/jobs?order=oldest&{query}")
            return [job["id"] for job in page.document["jobs"]]

        owner = (await api.get("/jobs/1")).document["owner"]
        assert await ids("project=q") == [4, 5, 6]
        assert await ids("project=q&name=a") == [4, 5]
        assert await ids(f"owner={owner}") == [1, 2, 3, 4, 5, 6]
        assert await ids("owner=uid:4242") == []
        assert await ids("select=2-3&select=last") == [3]
        assert await ids("select=2-5&select=name~a&select=@q") == [4, 5]
        assert await ids("select=@q&after=4&limit=1") == [5]
        assert await ids("select=state:failed") == []
        assert (await api.get("/jobs?select=77")).status == 404
        assert (await api.get("/jobs?select=77&after=3")).status == 200

    play(tmp_path, story)
