"""What can be asked of a job: each field arrives, and nonsense is refused whole."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.calling import Api, play

from grass.link.messages import Exited, Start

FAR = "2999-01-31T08:00:00+01:00"


async def enqueue(api: Api, **fields: Any) -> dict[str, Any]:
    """Enqueue one job and read it back."""
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}]})
    assert answer.status == 200, answer.document
    document: dict[str, Any] = (await api.get("/jobs/last")).document
    return document


def test_every_limit_of_a_job_is_kept(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        options = {
            "time_limit_s": 90.5,
            "grace_s": 2.0,
            "retries": 3,
            "backoff_s": 30.0,
            "retry_on": ["1", "137", "signal", "time-limit", "not-started"],
            "retry_lost": 1,
            "nice": 19,
        }
        job = await enqueue(api, **options, hold=True, env={"A": "secret"})
        assert job["variables"] == ["A"]
        assert "secret" not in str(job)
        assert {name: job[name] for name in options} == options
        assert job["retries_left"] == 3
        assert (job["state"], job["max_fails"]) == ("held", None)
        assert "grass release 1" in job["reason"]

    play(tmp_path, story)


def test_the_shell_of_a_line_can_be_chosen(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        job = await enqueue(api, command="a && b", shell_program="zsh")
        assert (job["shell"], job["shell_program"]) == (True, "zsh")
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.shell_program == "zsh"

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("defaults", "job", "request_made"),
    [
        ({}, {}, {"cpu": 1}),
        ({}, {"require_also": {"tape": 0.5}}, {"cpu": 1, "tape": 0.5}),
        ({}, {"require_also": {"cpu": 2}}, {"cpu": 2}),
        ({}, {"require_also": {"cpu": 0}}, {}),
        ({"require_also": {"tape": 1}}, {}, {"cpu": 1, "tape": 1}),
        ({"require_also": {"tape": 1}}, {"require": {"cpu": 2}}, {"cpu": 2}),
        (
            {"require_also": {"tape": 1}},
            {"require_also": {"cpu": 2}},
            {"cpu": 2, "tape": 1},
        ),
        ({"require": {"tape": 1}}, {"require_also": {"cpu": 2}}, {"cpu": 2, "tape": 1}),
        ({"queue": "q"}, {}, {"slot": 2}),
        ({"queue": "q"}, {"require_also": {"cpu": 1}}, {"cpu": 1, "slot": 2}),
        ({"queue": "q"}, {"require_also": {"slot": 1}}, {"slot": 1}),
        ({"queue": "q"}, {"require": {"cpu": 1}}, {"cpu": 1}),
    ],
)
def test_what_is_not_named_stays_of_the_default_request(
    tmp_path: Path,
    defaults: dict[str, Any],
    job: dict[str, Any],
    request_made: dict[str, Any],
) -> None:
    async def story(api: Api) -> None:
        queue = {"capacity": {"slot": 4, "tape": [8]}, "default_require": {"slot": 2}}
        assert (await api.put("/queues/q", queue)).status == 200
        body = {"jobs": [{"command": ["x"], **job}], "defaults": defaults}
        answer = await api.post("/jobs", body)
        assert answer.status == 200, answer.document
        document = (await api.get("/jobs/last")).document
        assert document["request"] == request_made

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("job", "request_made"),
    [
        ({}, {"slot": 1, "vram": "auto"}),
        ({"require_also": {"slot": 2}}, {"slot": 2, "vram": "auto"}),
        ({"require_also": {"vram": 3}}, {"slot": 1, "vram": 3}),
        ({"require": {"cpu": 1}}, {"cpu": 1}),
    ],
)
def test_memory_to_look_up_may_be_the_default_of_a_queue(
    tmp_path: Path, job: dict[str, Any], request_made: dict[str, Any]
) -> None:
    async def story(api: Api) -> None:
        capacity = {"slot": 4, "gpu": 1, "vram": [80]}
        default = {"slot": 1, "vram": "auto"}
        queue = {"capacity": capacity, "default_require": default}
        assert (await api.put("/queues/q", queue)).status == 200
        shown = (await api.get("/overview")).document["queues"]
        assert [one["default_request"] for one in shown] == [None, default]
        answer = await api.post(
            "/jobs", {"jobs": [{"command": ["x"], "queue": "q", **job}]}
        )
        assert answer.status == 200, answer.document
        document = (await api.get("/jobs/last")).document
        assert document["request"] == request_made

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("fields", "threads"),
    [
        ({}, None),
        ({"require_also": {"tape": 1}}, None),
        ({"require_also": {"cpu": 2}}, 2),
        ({"require_also": {"cpu": 0.5}}, 1),
        ({"require_also": {"cpu": 0}}, None),
        ({"require": {"cpu": 1.5}}, 1),
        ({"require": {"tape": 1}}, None),
        ({"require": {"cpu": 1}, "require_also": {"cpu": 2}}, 2),
    ],
)
def test_a_job_that_asks_for_cores_is_told_how_many_threads_to_use(
    tmp_path: Path, fields: dict[str, Any], threads: int | None
) -> None:
    async def story(api: Api) -> None:
        assert (await api.put("/queues/q", {"capacity": {"tape": [8]}})).status == 200
        await enqueue(api, **fields)
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.threads == threads

    play(tmp_path, story)


def test_a_name_is_that_of_one_job_alone(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        named = {"command": ["x"], "nice": 5, "name": "mine"}
        body = {"jobs": [named, {"command": ["x"], "nice": 5}]}
        await api.post("/jobs", body)
        assert (await api.get("/jobs/2")).document["name"] == "x"

    play(tmp_path, story)


def test_exit_codes_may_be_numbers(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        job = await enqueue(api, retry_on=[1, "01", 255], hold=True)
        assert job["retry_on"] == ["1", "255"]

    play(tmp_path, story)


def test_an_array_becomes_one_job_for_each_index(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        body = {"jobs": [{"command": ["x", "{index}"]}], "defaults": {"array": "1-9:4"}}
        answer = await api.post("/jobs", body)
        told = "everything is paused: `grass resume` lets jobs start"
        assert answer.document == {"first": 1, "last": 3, "hint": told}
        jobs = (await api.get("/jobs?order=oldest")).document["jobs"]
        assert [job["index"] for job in jobs] == [1, 5, 9]
        assert {job["array"] for job in jobs} == {1}
        assert (await enqueue(api))["array"] is None

    play(tmp_path, story)


def test_an_array_may_say_how_many_run_and_how_many_may_fail(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api, array="1-4%1", max_fails=2)
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        second = (await api.get("/jobs/2")).document
        assert (second["state"], second["max_fails"]) == ("queued", 2)
        assert second["reason"] == "1 of at most 1 of its array run"

    play(tmp_path, story)


def test_a_job_waits_for_others(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await api.post("/jobs", {"jobs": [{"command": ["x"]}] * 3})
        job = await enqueue(api, after=["1,2:any", "last:failed"])
        assert job["after"] == ["1:succeeded", "2:any", "3:failed"]
        assert (job["state"], job["reason"]) == (
            "waiting",
            "waits for job 1 (queued) and 2 more to end as asked",
        )

    play(tmp_path, story)


def test_a_job_may_wait_for_one_that_ended_already(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api)
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        api.worker.link.send(Exited(start.attempt, 2_000_000, 3))
        await api.broker.ended([1])
        await api.post("/pause", {})
        assert (await enqueue(api, after=["1:failed"]))["state"] == "queued"
        assert (await enqueue(api, after=["1"]))["state"] == "cancelled"

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("after", "waits_for"),
    [
        (["@p"], ["1-2:succeeded"]),
        (["@p:any"], ["1-2:any"]),
        (["@p:any,3:failed"], ["1-2:any", "3:failed"]),
        (["queue:default:failed"], ["1-3:failed"]),
        (["state:queued"], ["1-3:succeeded"]),
        (["name~^b"], ["2:succeeded"]),
        (["all"], ["1-3:succeeded"]),
        (["state:failed"], []),
    ],
)
def test_a_job_waits_for_what_selectors_mean_now(
    tmp_path: Path, after: list[str], waits_for: list[str]
) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        jobs = [{"command": [name], "project": "p"} for name in ("a", "b")]
        await api.post("/jobs", {"jobs": [*jobs, {"command": ["c"]}]})
        body = {"jobs": [{"command": ["x"], "after": after, "project": "p"}]}
        answer = await api.post("/jobs", body)
        none = "no unfinished job matches" in answer.document["hint"]
        assert none == (not waits_for)
        assert (await api.get("/jobs/last")).document["after"] == waits_for
        edited = await api.post("/jobs/edit", {"select": ["4"], "after": after})
        assert edited.status == 200, edited.document
        assert bool(edited.document["warnings"]) == (not waits_for)
        mine = [one for one in waits_for if not one.startswith("4:")]
        assert (await api.get("/jobs/4")).document["after"] == mine
        missing = await api.post("/jobs", {"jobs": [{"command": "x", "after": ["@q"]}]})
        assert (missing.status, missing.document["code"]) == (404, "not-found")
        assert "--after" in missing.document["detail"]

    play(tmp_path, story)


def test_a_job_begins_at_its_time(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        job = await enqueue(api, begin_at=FAR)
        assert job["begin_at"] == "2999-01-31T07:00:00.000Z"
        assert (job["state"], job["reason"]) == (
            "waiting",
            "begins 2999-01-31T07:00:00.000Z",
        )

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"array": "x"}, "--array `x` is not understood"),
        ({"array": ""}, "--array `` is not understood"),
        ({"array": "1-100001"}, "at most 100,000 members"),
        ({"array": "1-3%0"}, "after % comes a number"),
        ({"after": [""]}, "--after `` names no job"),
        ({"after": ["7:done"]}, "a job ends as succeeded, failed, any"),
        ({"after": ["nonsense"]}, "--after: `nonsense` selects no job"),
        ({"after": ["last"]}, "there is no job yet"),
        ({"after": ["7"]}, "there is no job 7"),
        ({"begin_at": "22:00"}, "--begin `22:00` is not a time with an offset"),
        ({"begin_at": "2030-01-31T08:00"}, "is not a time with an offset"),
        ({"time_limit_s": 0}, "--time-limit is 0 seconds"),
        ({"time_limit_s": -1}, "--time-limit is -1 seconds"),
        ({"time_limit_s": 1e10}, "--time-limit is 1e+10 seconds"),
        ({"grace_s": -1}, "--grace is -1 seconds"),
        ({"retries": -1}, "--retries is -1"),
        ({"retries": 1001}, "--retries is 1001"),
        ({"backoff_s": -0.5}, "--backoff is -0.5 seconds"),
        ({"retry_on": ["256"]}, "--retry-on `256` is no failure"),
        ({"retry_on": ["oom"]}, "--retry-on `oom` is no failure"),
        ({"retry_on": [-1]}, "--retry-on `-1` is no failure"),
        ({"retry_lost": 1001}, "--retry-lost is 1001"),
        ({"priority": 10**9}, "priority 1000000000 is out of range"),
        ({"project": "a b"}, "project name `a b` is not allowed"),
        ({"nice": 20}, "--nice is 20"),
        ({"nice": -1}, "--nice is -1"),
        ({"worker": ""}, "there is no worker ``"),
        ({"shell_program": ""}, "--shell `` is no program"),
        ({"shell_program": "zsh"}, "--shell goes with a shell line"),
        ({"max_fails": 3}, "--max-fails goes with --array"),
        ({"max_fails": 0, "array": "1-3"}, "--max-fails must be at least 1"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    async def story(api: Api) -> None:
        body = {"jobs": [{"command": ["x"], **fields}]}
        answer = await api.post("/jobs", body)
        assert answer.status in (400, 404)
        assert told in answer.document["detail"]
        assert "\n" not in answer.document["detail"]
        as_default = {"jobs": [{"command": ["x"]}], "defaults": fields}
        again = await api.post("/jobs", as_default)
        # Only the error about the job's own fields says which job it is about.
        assert again.document | {"job": 1} == answer.document | {"job": 1}
        assert api.broker.state.last_job == 0

    play(tmp_path, story)


def test_an_array_goes_with_one_command(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        body = {"jobs": [{"command": ["x"]}] * 2, "defaults": {"array": "1-3"}}
        answer = await api.post("/jobs", body)
        assert answer.document["detail"] == "--array goes with one command, not with 2"
        assert api.broker.state.last_job == 0

    play(tmp_path, story)


def test_a_missing_queue_that_the_settings_name_is_said_to_be_theirs(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        context = api.app.state.context
        settings = context.settings._replace(queue="night")
        api.app.state.context = context._replace(settings=settings)
        named = {"command": ["x"], "queue": "default"}
        assert (await api.post("/jobs", {"jobs": [named]})).status == 200
        answer = await api.post("/jobs", {"jobs": [named, {"command": ["x"]}]})
        assert answer.status == 404
        assert answer.document["detail"] == (
            "there is no queue `night`, and defaults.queue names it"
        )
        assert len(api.broker.state.jobs) == 1

    play(tmp_path, story)
