"""Why a job does not start, for each worker of its queue."""

from pathlib import Path

from tests.api.explaining import explained, starts
from tests.api.farm import cut_off, enqueue, joined
from tests.support.calling import Api, play

from grass.link.messages import Start


async def whys(api: Api, job: int) -> dict[str, tuple[str, str]]:
    told = (await explained(api, job))["workers"]
    return {one["worker"]: (one["reason"], one["why"]) for one in told}


def test_many_workers_are_all_listed_by_name(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        names = [f"w{number:02}" for number in range(12)]
        for name in reversed(names):
            far = await api.add_worker(name, "{gpu:1}")
            await enqueue(api, require={"gpu": 1}, worker=name)
            await far.hears(Start)
        await enqueue(api, require={"gpu": 1})
        told = await whys(api, 13)
        # The worker without any gpu is listed too.
        assert [name for name in told if name in names] == names
        assert {told[name] for name in names} == {("busy", "needs gpu 1, free 0 of 1")}
        assert [why for name, why in told.items() if name not in names] == [
            ("too-small", "needs gpu 1, has none")
        ]

    play(tmp_path, story)


def test_a_worker_with_room_is_not_what_a_job_waits_for(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        assert list((await whys(api, 1)).values()) == [("free", "has room for it")]

    play(tmp_path, story)


def test_a_job_that_has_started_or_ended_has_no_such_list(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api)
        await starts(api)
        await enqueue(api, hold=True)
        for job in (1, 2):
            assert (await explained(api, job))["workers"] == []

    play(tmp_path, story)


def test_a_job_for_a_forgotten_worker_names_it(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm", hold=True)
        await cut_off(api, worker)
        await api.post("/jobs/release", {"select": ["1"]})
        reason, why = (await whys(api, 1))["farm"]
        assert reason == "unreachable"
        assert why.startswith("is unreachable since 20")
        await api.send("DELETE", "/workers/farm", b"")
        told = await whys(api, 1)
        assert set(told.values()) == {("pinned", "it may run on `farm` alone")}

    play(tmp_path, story)
