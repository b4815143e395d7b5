"""A machine that joins again by the API: its name, its jobs, and what it may now."""

from pathlib import Path

import pytest
from tests.api.links import (
    REMOTE,
    closed,
    hello,
    linked,
    machine_token,
    say,
    until_gone,
    welcomed,
)
from tests.api.tcp_api import TcpApi, over_tcp
from tests.support.calling import Api, play
from websockets.exceptions import InvalidStatus

from grass.broker.shell.new_secrets import new_code

HELD = {"jobs": [{"command": "x"}], "defaults": {"hold": True}}


async def join(api: Api, role: str, shown: str | None = None) -> str:
    """Join as a client; give its token."""
    code = await new_code(api.broker, "daemon", role)
    body = {"code": code, "name": "lab", "worker": REMOTE}
    return str((await api.remote("POST", "/join", body, shown)).document["token"])


async def seen(api: Api, token: str) -> int:
    return (await api.remote("GET", "/overview", {}, token)).status


def test_a_client_that_joins_again_keeps_its_jobs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        first = await join(api, "submit")
        job = (await api.remote("POST", "/jobs", HELD, first)).document["first"]
        second = await join(api, "submit", first)
        assert first.partition(".")[0] == second.partition(".")[0] == "lab"
        assert [await seen(api, one) for one in (first, second)] == [200, 200]
        assert [await seen(api, one) for one in (first, second)] == [401, 200]
        select = {"select": [str(job)]}
        done = await api.remote("POST", "/jobs/cancel", select, second)
        assert (done.status, done.document["jobs"]) == (200, [job])
        listed = (await api.get("/tokens")).document["tokens"]
        assert [one["name"] for one in listed if not one["code"]] == ["lab"]

    play(tmp_path, story)


@pytest.mark.parametrize("shown", [None, "lab.", "lab.nonsense", "code.nonsense"])
def test_a_code_without_the_token_makes_another_client(
    tmp_path: Path, shown: str | None
) -> None:
    async def story(api: Api) -> None:
        own = await join(api, "submit")
        await api.remote("POST", "/jobs", HELD, own)
        thief = await join(api, "operate", shown)
        assert thief.partition(".")[0] == "lab-2"
        assert await seen(api, own) == 200
        assert api.broker.state.tokens["lab"].role == "submit"

    play(tmp_path, story)


def test_the_role_of_the_new_code_counts_at_once(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        first = await join(api, "submit")
        assert (await api.remote("POST", "/jobs", HELD, first)).status == 200
        await join(api, "read", first)
        assert (await api.remote("POST", "/jobs", HELD, first)).status == 403
        assert await seen(api, first) == 200

    play(tmp_path, story)


def test_a_worker_that_joins_as_a_client_is_cut_off_until_it_works_again(
    tmp_path: Path,
) -> None:
    async def story(tcp: TcpApi) -> None:
        first = await machine_token(tcp)
        async with welcomed(tcp, first) as channel, linked(tcp, first) as silent:
            client = await machine_token(tcp, "submit", first)
            await closed(channel)
            await until_gone(tcp)
            # It was let in before, and has not said yet who it is.
            await say(silent, hello())
            await closed(silent)
        assert not tcp.api.broker.state.workers[REMOTE].connected
        for token in (first, client):
            assert token.partition(".")[0] == "lab"
            with pytest.raises(InvalidStatus) as refused:
                async with linked(tcp, token):
                    pass
            assert refused.value.response.status_code == 403
        assert await tcp.overview(client) == 200
        again = await machine_token(tcp, "machine", client)
        assert again.partition(".")[0] == "lab"
        async with welcomed(tcp, again):
            assert tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story)


def test_a_client_becomes_a_worker_under_its_name(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        client = await machine_token(tcp, "submit")
        await tcp.api.remote("POST", "/jobs", HELD, client)
        worker = await machine_token(tcp, "machine", client)
        assert worker.partition(".")[0] == "lab"
        async with welcomed(tcp, worker):
            listed = (await tcp.api.get("/tokens")).document["tokens"]
            machines = [one for one in listed if not one["code"]]
            assert [one["worker"] for one in machines] == ["lab"]
        done = await tcp.api.remote("POST", "/jobs/cancel", {"select": ["1"]}, worker)
        assert done.status == 200

    over_tcp(tmp_path, story)
