"""What the API can do the command line can, and the other way round.

One table says by which method of the client and by which command each endpoint is
reached. The methods are called and the commands are run, against a real daemon, and
what they ask for is compared with the table; nothing may be missing from it.
"""

import contextlib
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from grass.api.app import ENDPOINTS
from grass.api.routes.request_bodies import JobBody
from grass.cli.commands import enqueue, run
from grass.cli.main import COMMANDS, dispatch
from grass.client.client import Client
from grass.client.cluster_client import ClusterClient
from grass.client.connection import HttpConnection
from grass.config import API_PREFIX, Home
from grass.errors import GrassError
from tests.support.fixtures import lasting
from tests.support.homes import GrassHome

__all__ = ["lasting"]

ONE = ["1"]
HOST = socket.gethostname()
JOIN = "join"
PIPED = "run --require {} -- cat"
"""With something on stdin, which is passed on to the job."""
"""Speaks to a broker of another machine only; `tests/cli/test_join.py` plays one."""
GRAIN_FILE = Path(__file__).parents[1] / "examples" / "grain.toml"
SCREEN = "top"
"""Works on a terminal only; `tests/tui` plays one."""


class Way(NamedTuple):
    """How an endpoint is reached: a method with its arguments, and a command."""

    method: str
    arguments: tuple[Any, ...]
    command: str
    code: int = 0
    """What the command exits with, here."""


# fmt: off
WAYS = {
    "GET /overview": Way("overview", (), "show"),
    "POST /jobs": Way("enqueue_jobs", ([{"command": "true"}], {}), "enqueue -- true"),
    "POST /jobs/plan": Way("plan_jobs", ([], {}), "enqueue --dry-run -- true"),
    "GET /jobs": Way("jobs", (), "show --all"),
    "GET /jobs/export": Way("export", (), "show --csv"),
    "POST /jobs/select": Way("select", (ONE,), "hold --dry-run 1"),
    "POST /jobs/estimate": Way("estimate", (ONE,), "wait 4"),
    "POST /jobs/cancel": Way("cancel", (ONE,), "cancel 6"),
    "POST /jobs/hold": Way("hold", (ONE,), "hold 1"),
    "POST /jobs/release": Way("release", (ONE,), "release 5"),
    "POST /jobs/rerun": Way("rerun", (ONE,), "rerun 4"),
    "POST /jobs/edit": Way("edit", (ONE,), "edit 1 --priority 3"),
    "POST /jobs/suspend": Way("suspend", (ONE,), "suspend 1"),
    "POST /jobs/continue": Way("continue_", (ONE,), "continue 1"),
    "POST /jobs/signal": Way("signal", (ONE, 10), "signal USR1 1"),
    "POST /jobs/remove": Way("remove", (ONE,), "remove 3"),
    "POST /jobs/prune": Way("prune", (0.0,), "prune --older 1d"),
    "POST /jobs/wait": Way("wait", (ONE,), "wait 2"),
    "POST /jobs/wait-all": Way("wait_all", (), "wait --timeout 0.1s all", 7),
    "GET /jobs/{id}": Way("job", (1,), "show 1"),
    "GET /jobs/{id}/explain": Way("explain", (1,), "explain 1"),
    "GET /jobs/{id}/output": Way("output", (1,), "logs 2"),
    "GET /jobs/{id}/lines": Way("output_lines", (1,), "logs --lines 1-2 2"),
    "GET /jobs/{id}/search": Way("matching_lines", (1, "a"), "logs --grep a 2"),
    "POST /jobs/{id}/input": Way("write_input", (1, "me", 0), PIPED),
    "GET /jobs/{id}/usage": Way("usage", (1,), "usage 2", 4),
    "GET /queues/{name}": Way("queue", ("q",), "enqueue q true"),
    "PUT /queues/{name}": Way("create_queue", ("q", {}), "create-queue fresh"),
    "PATCH /queues/{name}": Way("edit_queue", ("q", {}), "edit-queue q --max-fails 9"),
    "DELETE /queues/{name}": Way("delete_queue", ("q",), "delete-queue empty"),
    "POST /capacity/add": Way("add_capacity", ("{a:1}",), "capacity add {spare:1}"),
    "POST /capacity/remove": Way("remove_capacity", ("a:0",), "capacity remove old:0"),
    "POST /drain": Way("drain", ("slot:0",), "drain slot:0"),
    "POST /pause": Way("pause", (), "pause"),
    "POST /resume": Way("resume", (), "resume"),
    "GET /workers": Way("workers", (), "workers"),
    "GET /devices": Way("devices", (), "gpu"),
    "GET /workers/{name}/gpus/{unit}/usage": Way("gpu_usage", (HOST, "0"), "usage gpu:0", 4),  # noqa: E501
    "POST /workers/{name}/drain": Way("drain_worker", ("w",), f"drain {HOST}"),
    "POST /workers/{name}/foreign/end": Way("end_foreign", ("w", ["1.1"]), f"workers end {HOST} 1.1", 4),  # noqa: E501
    "POST /workers/{name}/foreign/keep": Way("keep_foreign", ("w", ["all"]), f"workers keep {HOST} all"),  # noqa: E501
    "DELETE /workers/{name}": Way("forget_worker", ("w",), f"workers forget {HOST}", 5),
    "GET /profiles": Way("profiles", (), "profile list"),
    "GET /profiles/export": Way("export_profiles", (), "profile export"),
    "POST /profiles/import": Way("import_profiles", ("",), "profile import /dev/null"),
    "POST /profiles/forget": Way("forget_profiles", (["x"],), "profile forget x", 4),
    "GET /events": Way("events", (), "events"),
    "GET /events/stream": Way("follow_events", (), "events -f"),
    "GET /stream": Way("follow", (["jobs"],), SCREEN),
    "GET /timeline": Way("timeline", (60.0,), "timeline"),
    "GET /doctor": Way("doctor", (), "doctor --broker local"),
    "GET /config": Way("config", (), "config show"),
    "GET /session": Way("session", (), "web --no-open --port 0"),
    "POST /web": Way("open_web", (None, 0), "web --no-open --port 0"),
    "DELETE /web": Way("close_web", (), "web --stop"),
    "POST /daemon/stop": Way("stop", (), "stop"),
    "GET /brokers": Way("brokers", (), "brokers"),
    "GET /pools": Way("pools", (), "pool show"),
    "POST /pools": Way(
        "add_pool", ({},), "pool add x --slurm --time 1h --max-workers 1", 5
    ),
    "POST /pools/script": Way("script_of", ({},), f"up --dry -c {GRAIN_FILE}", 5),
    "POST /pools/{name}/pause": Way("pause_pool", ("x",), "pool pause x", 4),
    "POST /pools/{name}/resume": Way("resume_pool", ("x",), "pool resume x", 4),
    "POST /pools/{name}/pilots": Way("ask_for_workers", ("x", 1), "up x", 4),
    "GET /pools/{name}/script": Way("pool_script", ("x",), "up --dry x", 4),
    "GET /pools/{name}/logs": Way("pool_logs", ("x",), "pool logs x", 4),
    "DELETE /pilots/{name}": Way("send_away", ("x",), "up unreg x", 4),
    "DELETE /pools/{name}": Way("remove_pool", ("x",), "pool remove x", 4),
    "GET /tokens": Way("tokens", (), "token list"),
    "POST /tokens": Way("new_token", (), "token new", 5),
    "DELETE /tokens/{name}": Way("revoke_token", ("x",), "token revoke x", 4),
    "POST /join": Way("join", ("code", "name", "worker", "instance"), JOIN),
}
# fmt: on

COMPOSED = {
    "run": {"POST /jobs", "GET /jobs/{id}/output", "GET /jobs/{id}"},
    "shell": {"POST /jobs", "GET /jobs/{id}/output", "POST /jobs/{id}/input"},
}
"""Commands that do what several others do."""

OF_A_PROCESS = {
    *("POST /guests", "POST /guests/{id}/wait"),
    *("POST /guests/{id}/measured", "POST /guests/{id}/end"),
    "POST /jobs/{id}/inner-type",
}
"""Endpoints for a process that speaks of itself: `grass.allocate` asks them."""

OF_PICKLES = {
    "POST /jobs/results": "small_results",
    "GET /jobs/{id}/result": "result",
    "POST /blobs/missing": "missing_blobs",
    "PUT /blobs/{name}": "add_blob",
}
"""Endpoints for bytes that only Python reads: `grass.enqueue` asks them."""

ASKS_BEFORE = {"POST /jobs/wait-all": "GET /overview"}
"""Endpoints whose method has to ask another one first."""

ON_TERMINALS = {"POST /jobs/estimate"}
"""Endpoints that a command asks only where it draws."""

LOCAL = {
    *("start", "restart", "daemon", "completion", "config path", "leave"),
    *("store check", "backup", "restore"),
}
"""Commands that are about this machine: processes, shells and files."""

SHORTHANDS = {"enqueue", "enqueue_many", "listing"}
"""Methods that call another one, or read what another one reads in another order."""

FIELDS = {
    "begin_at": "begin",
    "time_limit_s": "time_limit",
    "grace_s": "grace",
    "backoff_s": "backoff",
    "labels": "label",
    "shell_program": "shell",
    "require_also": "gpu",
    "limit_signal": "signal",
    "job_type": "type",
    "stdin": "pty",
    "window": "pty",
}
"""Fields of a job whose options have another name."""


def endpoint_of(method: str, path: str) -> str:
    """Find the row of the API's table that a request belongs to."""
    plain = path.partition("?")[0].removeprefix(API_PREFIX)
    fitting = [
        one
        for one in ENDPOINTS
        if one.method == method
        and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one.path), plain)
    ]
    # `/jobs/select` fits `/jobs/{id}`, too; the row without a place to fill is meant.
    found = min(fitting, key=lambda one: one.path.count("{"))
    return f"{found.method} {found.path}"


def test_every_endpoint_is_in_the_table() -> None:
    every = [f"{one.method} {one.path}" for one in ENDPOINTS]
    besides = {*OF_A_PROCESS, *OF_PICKLES}
    assert [one for one in every if one not in besides] == list(WAYS)


def test_every_command_is_in_the_table() -> None:
    named = {way.command.split()[0] for way in WAYS.values() if way.command}
    named |= set(COMPOSED) | {words.split()[0] for words in LOCAL}
    assert named == set(COMMANDS)


def test_every_method_of_the_client_is_in_the_table() -> None:
    methods = {**vars(Client), **vars(ClusterClient)}
    public = {name for name in methods if not name.startswith("_")}
    of_pickles = set(OF_PICKLES.values())
    assert public - SHORTHANDS - of_pickles == {way.method for way in WAYS.values()}


class Asked(GrassError):
    """Raised instead of an answer."""


@pytest.mark.parametrize("endpoint", WAYS)
def test_the_method_reaches_its_endpoint(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def note(_self: object, method: str, path: str, _body: object = None) -> None:
        asked.append(endpoint_of(method, path))
        raise Asked(path)

    monkeypatch.setattr(HttpConnection, "stream", note)
    ours, theirs = socket.socketpair()
    with ours, theirs, Client(Home("/nowhere")) as client:
        monkeypatch.setattr(client, "_opened", lambda: HttpConnection(ours))
        way = WAYS[endpoint]
        with contextlib.suppress(Asked):
            answer = getattr(client, way.method)(*way.arguments)
            next(answer)
    assert asked == [ASKS_BEFORE.get(endpoint, endpoint)]


@pytest.fixture(scope="module")
def used(lasting: GrassHome) -> GrassHome:
    """A home that has something for every command."""
    lasting.ok("create-queue", "q", "--json", "{slot:2}")
    lasting.ok("create-queue", "empty")
    lasting.ok("capacity", "add", "{old:1}")
    held, ended = ("--hold", "--", "true"), ("--", "true")
    ids = [lasting.enqueue(*words) for words in (held, ended, ended, ended, held, held)]
    lasting.wait(*ids[1:4])
    return lasting


@pytest.fixture
def restored(used: GrassHome) -> Iterator[GrassHome]:
    """The same; what would keep other commands from working is put right again."""
    before = signal.getsignal(signal.SIGINT)
    yield used
    signal.signal(signal.SIGINT, before)
    if used.daemon_pid() is None:
        used.ok("start")
    with used.client as client:
        client.resume()
        client.drain_worker(HOST, on=False)


@contextlib.contextmanager
def piped_in(something: bool) -> Iterator[None]:
    """Have something to read on stdin."""
    before, (reader, writer) = os.dup(0), os.pipe()
    os.write(writer, b"x" * something)
    os.dup2(reader, 0)
    for descriptor in (reader, writer):
        os.close(descriptor)
    yield
    os.dup2(before, 0)
    os.close(before)


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("way", "wanted"),
    [
        *(
            (way, {endpoint})
            for endpoint, way in WAYS.items()
            if way.command not in (JOIN, SCREEN) and endpoint not in ON_TERMINALS
        ),
        (Way("", (), "run --require {} -- true"), COMPOSED["run"]),
    ],
)
def test_the_command_reaches_its_endpoint(
    restored: GrassHome, way: Way, wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    ask = HttpConnection.stream

    def note(
        self: HttpConnection, method: str, path: str, body: object = None
    ) -> Iterator[bytes]:
        asked.add(endpoint_of(method, path))
        if asked >= wanted and "GET /events/stream" in wanted:
            raise KeyboardInterrupt
        return ask(self, method, path, body)

    monkeypatch.setattr(HttpConnection, "stream", note)
    monkeypatch.setenv("GRASS_HOME", str(restored.folder))
    with contextlib.suppress(KeyboardInterrupt), piped_in(way.command == PIPED):
        assert dispatch(way.command.split()) == way.code
    assert asked >= wanted


NO_OPTION = ("task", "arguments", "sbatch")
"""Bytes that Python has pickled, and the `#SBATCH` lines of a script."""


def test_every_field_of_a_job_has_an_option() -> None:
    options = {option.key for option in (*enqueue.OPTIONS, *run.OPTIONS)}
    for field in JobBody.__struct_fields__:
        assert (
            field in ("command", *NO_OPTION) or FIELDS.get(field, field) in options
        ), field


def test_every_option_of_a_job_is_a_field() -> None:
    fields = {FIELDS.get(field, field) for field in JobBody.__struct_fields__}
    besides = {"cpu", "ram", "vram", "from", "broker", "quiet", "format", "dry_run"}
    besides.add("no_directives")
    others = {"command", FIELDS["stdin"], *NO_OPTION}
    assert {option.key for option in enqueue.OPTIONS} - besides == fields - others
