"""What is made of Ray's answers, which a server of this process gives."""

import asyncio
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from grass.engines.ray_jobs import RayJobs
from grass.errors import CannotAsk, EngineRefusal, UsageError
from grass.model.pools import PilotState
from tests.engines.asking import do, wanted

NODES = '{"data": {"result": {"result": [{"state": "ALIVE", "resources_total": %s}]}}}'
LARGE = NODES % '{"CPU": 8, "GPU": 2, "vram": 20}'


class Head(ThreadingHTTPServer):
    """Answers by the end of a path, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {"nodes": (200, LARGE), "version": (200, '{"ray_version": "2"}')}
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Head

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.asked.append((path, body, self.headers.get("Authorization")))
        status, text = self.server.answers.get(path.rpartition("/")[2], (404, ""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET  # noqa: N815 -- its name in the standard library

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture
def head() -> Iterator[Head]:
    made = Head()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "text", "kind", "words"),
    [
        (401, "Unauthorized: Missing authentication token", EngineRefusal, "Missing"),
        (403, "Forbidden: Invalid authentication token", EngineRefusal, "Invalid"),
        (400, "Traceback:\n  File x\nTypeError: no int\n", EngineRefusal, "TypeErr"),
        (500, "No available agent, please try again later.", CannotAsk, "No avail"),
        (502, "<html>\nBad Gateway\n", CannotAsk, "Bad Gateway"),
    ],
)
def test_an_answer_is_a_refusal_or_none(
    head: Head,
    folder: Path,
    status: int,
    text: str,
    kind: type[EngineRefusal | CannotAsk],
    words: str,
) -> None:
    head.answers["jobs"] = (status, text)
    with pytest.raises(kind, match=words):
        do(RayJobs(head.address).submit(wanted(folder)))


def test_a_submit_that_is_repeated_is_the_same_job(head: Head, folder: Path) -> None:
    head.answers["jobs"] = (500, "ValueError: Job grass-1 already exists. Use x.\n.\n")
    request = wanted(folder)
    assert do(RayJobs(head.address).submit(request)).endswith(request.mark)


def test_a_job_that_the_head_does_not_know_is_absent_and_a_proxys_404_says_nothing(
    head: Head,
) -> None:
    head.answers["n-m1"] = (404, "Job n-m1 does not exist")
    ray = RayJobs(head.address)
    assert do(ray.poll("n", ["m1"]))["m1"].state is PilotState.ABSENT
    head.answers["n-m1"] = (404, "404 page not found")
    with pytest.raises(CannotAsk, match="page not found"):
        do(ray.poll("n", ["m1"]))


def test_a_status_of_a_later_ray_is_unknown_and_not_an_end(head: Head) -> None:
    head.answers["n-m1"] = (200, '{"status": "MELTED", "message": "hot\\nindeed"}')
    report = do(RayJobs(head.address).poll("n", ["m1"]))["m1"]
    assert (report.state, report.word) == (PilotState.UNKNOWN, "MELTED")
    assert report.reason == "hot"


def test_a_head_that_is_not_there_cannot_be_asked(folder: Path) -> None:
    with pytest.raises(CannotAsk, match="cannot be asked: Connection refused"):
        do(RayJobs("http://127.0.0.1:9").check(wanted(folder)))


def test_resources_of_its_own_are_asked_for_and_checked(
    head: Head, folder: Path
) -> None:
    from msgspec.structs import replace

    head.answers["jobs"] = (200, "{}")
    request = replace(wanted(folder), options=("vram=20",), setup=("module load x",))
    do(RayJobs(head.address).submit(request))
    _, body, _ = head.asked[-1]
    assert '"entrypoint_resources":{"vram":20.0}' in body
    assert "\\nmodule load x\\nexec timeout --foreground" in body
    large = replace(request, options=("vram=21",))
    with pytest.raises(EngineRefusal, match="none of Ray's 1 nodes has CPU 1, vram 21"):
        do(RayJobs(head.address).submit(large))
    do(RayJobs(head.address, omitted=["nodes"]).submit(large))


def test_the_token_of_a_head_is_read_from_a_file(head: Head, folder: Path) -> None:
    token = folder / "token"
    with pytest.raises(CannotAsk, match="token: No such file"):
        do(RayJobs(head.address, str(token)).check(wanted(folder)))
    token.write_text("secret\n")
    do(RayJobs(head.address, str(token)).check(wanted(folder)))
    assert {auth for _, _, auth in head.asked} == {"Bearer secret"}


def test_a_line_of_setup_may_have_a_comment_and_one_that_fails_ends_the_pilot(
    head: Head, folder: Path
) -> None:
    from msgspec.structs import replace

    head.answers["jobs"] = (200, "{}")
    usual = replace(wanted(folder, "echo", "runs"), setup=("A=1  # for us",))
    for request in (usual, replace(usual, setup=("false", "true"))):
        do(RayJobs(head.address).submit(request))
        line = json.loads(head.asked[-1][1])["entrypoint"]
        subprocess.run(line, shell=True, check=False)
    assert (folder / "output").read_text() == "runs\n"


def test_a_head_that_hangs_holds_up_nobody_else(folder: Path) -> None:
    async def story() -> None:
        loop, accepting = asyncio.get_running_loop(), ThreadPoolExecutor(1)
        loop.set_default_executor(ThreadPoolExecutor(1))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            ray = RayJobs(f"http://127.0.0.1:{silent.getsockname()[1]}")
            asked = asyncio.ensure_future(ray.check(wanted(folder)))
            connection, _ = await loop.run_in_executor(accepting, silent.accept)
            with connection:
                assert await asyncio.to_thread(len, "others") == 6
                assert not asked.done()
            with pytest.raises(CannotAsk):
                await asked

    do(story())


@pytest.mark.parametrize(
    "address",
    [
        "head:8265",
        "ray://head:10001",
        "http://",
        "http://head:abc",
        "http://head:99999",
        "http://[head",
    ],
)
def test_what_is_no_address_is_said_to_be_none(address: str) -> None:
    with pytest.raises(UsageError, match="is no address"):
        RayJobs(address)
