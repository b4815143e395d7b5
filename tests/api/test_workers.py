"""Workers over the API: who is there, who rests, who is forgotten; and their jobs."""

from pathlib import Path

from tests.api.farm import cut_off, enqueue, farm, joined
from tests.support.calling import Api, play

from grass.link.messages import Start


def test_a_worker_is_listed_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await joined(api, labels=("a100",), lease_s=45.0)
        await enqueue(api, worker="farm")
        found = await farm(api)
        assert (found["id"], found["address"]) == ("f1", "10.0.0.7")
        assert (found["labels"], found["lease_s"]) == (["a100"], 45.0)
        assert (found["connected"], found["draining"]) == (True, False)
        assert found["unreachable_since"] is None
        assert found["heard_at"] is not None
        assert found["running"] == 1
        assert sum(found["free"]["cpu"].values()) == 3

    play(tmp_path, story)


def test_a_job_says_where_it_may_run(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api, labels=("a100",))
        job = await enqueue(api, worker="farm", labels=["a100"])
        assert (job["wanted_worker"], job["labels"]) == ("farm", ["a100"])
        await worker.hears(Start)
        for fields, code in (
            ({"worker": "moon"}, "not-found"),
            ({"labels": ["h200"]}, "never-fits"),
            ({"labels": ["a b"]}, "usage"),
        ):
            body = {"jobs": [{"command": ["x"], **fields}]}
            assert (await api.post("/jobs", body)).document["code"] == code

    play(tmp_path, story)


def test_an_edit_may_change_and_take_away_where_a_job_runs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await joined(api, labels=("a100",))
        await enqueue(api, hold=True)
        there = {"select": ["1"], "worker": "farm", "labels": ["a100"]}
        assert (await api.post("/jobs/edit", there)).status == 200
        job = (await api.get("/jobs/1")).document
        assert (job["wanted_worker"], job["labels"]) == ("farm", ["a100"])
        anywhere = {"select": ["1"], "worker": None, "labels": None}
        assert (await api.post("/jobs/edit", anywhere)).status == 200
        job = (await api.get("/jobs/1")).document
        assert (job["wanted_worker"], job["labels"]) == (None, [])

    play(tmp_path, story)


def test_a_job_of_a_worker_that_is_away_is_marked_and_stays(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        job = await enqueue(api, worker="farm")
        assert (job["state"], job["unreachable"]) == ("running", False)
        await cut_off(api, worker)
        job = (await api.get("/jobs/1")).document
        assert (job["state"], job["unreachable"]) == ("running", True)
        assert "unreachable" in job["flags"]
        found = await farm(api)
        assert not found["connected"]
        assert found["unreachable_since"] == found["heard_at"]
        await enqueue(api, worker="farm")
        told = (await api.get("/jobs/2/explain")).document
        assert told["why"] == "worker `farm`, which could run it, is unreachable"
        assert told["constraints"][0]["note"] == told["why"]

    play(tmp_path, story)


def test_a_worker_that_is_drained_takes_nothing_new(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        drained = await api.post("/workers/farm/drain", {"on": True})
        assert drained.document["changed"]
        assert (await farm(api))["draining"]
        await enqueue(api, worker="farm")
        told = (await api.get("/jobs/1/explain")).document
        assert told["why"] == "worker `farm`, which could run it, is draining"
        await api.post("/workers/f1/drain", {"on": False})
        await worker.hears(Start)

    play(tmp_path, story)


def test_a_worker_is_forgotten_only_when_it_is_gone(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        refused = await api.send("DELETE", "/workers/farm", b"")
        assert (refused.status, refused.document["code"]) == (409, "refused")
        await cut_off(api, worker)
        gone = await api.send("DELETE", "/workers/farm", b"")
        assert gone.document["jobs"] == [1]
        job = (await api.get("/jobs/1")).document
        assert (job["state"], job["reason"]) == ("lost", "its worker was forgotten")
        again = await api.send("DELETE", "/workers/farm", b"")
        assert again.document["code"] == "not-found"

    play(tmp_path, story)
