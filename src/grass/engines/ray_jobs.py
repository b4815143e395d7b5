"""Ray as an engine, over the Jobs API of its dashboard: plain HTTP and JSON.

Ray's own client would tie a broker to one version of Ray and of Python, so nothing of
Ray is imported. A pilot is a job whose submission id holds the mark, so a submit that
is repeated is the same job. Ray lets what no node can ever run wait for ever; the nodes
are asked first. Ray has no time limit for a job, so the pilot's command has one.

A request is made in a thread, with a time limit of its own. These threads are not those
that the rest of the broker uses, so a head that hangs holds up pools on Ray alone.
"""

import asyncio
import contextlib
import http.client
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from grass.engines.engine_commands import DEFAULT_LIMIT_S
from grass.engines.listing import by_mark
from grass.engines.provider import PilotRequest
from grass.errors import CannotAsk, EngineRefusal, UsageError
from grass.model.pools import PilotReport, PilotState

CHECK = "nodes"
"""Left out for a cluster that grows: what no node can run now may run later."""
_LARGEST_ANSWER = 16 << 20
_MOST_WORDS = 500
_GRACE_S = 30
_MIB = 1 << 20
_THREADS = ThreadPoolExecutor(8, "ray")

STATES: Mapping[str, PilotState] = {
    "PENDING": PilotState.PENDING,
    "RUNNING": PilotState.RUNNING,
    "STOPPED": PilotState.ENDED,
    "SUCCEEDED": PilotState.ENDED,
    "FAILED": PilotState.ENDED,
}
"""Every status that Ray documents; any other word is unknown."""


class _Answer(NamedTuple):
    status: int
    text: str

    @property
    def words(self) -> str:
        """What Ray says: of a traceback its last line."""
        lines = [line.strip(" .") for line in self.text.splitlines()]
        said = next((line for line in reversed(lines) if line), "")
        return (said or f"it answered with {self.status}")[:_MOST_WORDS]

    def document(self) -> Any:  # noqa: ANN401 -- bytes come in here
        try:
            return msgspec.json.decode(self.text)
        except msgspec.DecodeError:
            raise CannotAsk(f"Ray answered with no JSON: {self.words}") from None


class RayJobs:
    """The Ray cluster whose dashboard has this address."""

    def __init__(
        self,
        address: str,
        token_file: str = "",
        omitted: Iterable[str] = (),
        limit_s: float = DEFAULT_LIMIT_S,
    ) -> None:
        """`token_file` holds the token of a head that asks for one."""
        self._url = _url(address)
        self._token_file = token_file
        self._omitted = frozenset(omitted)
        self._limit_s = limit_s

    def preview(self, request: PilotRequest) -> str:
        """Return the body of the request that submits."""
        text = msgspec.json.format(msgspec.json.encode(_body(request)), indent=2)
        return f"POST {self._url.geturl()}/api/jobs/\n{text.decode()}\n"

    async def check(self, request: PilotRequest) -> str:
        """Ask for Ray's version, and whether a node is large enough."""
        answer = await self._ask("GET", "/api/version")
        _raise_if_refused(answer)
        await self._check_nodes(request)
        return f"Ray {answer.document().get('ray_version', '')} would take it"

    async def submit(self, request: PilotRequest) -> str:
        """Submit a pilot; one that is there already under its mark is the same."""
        await self._check_nodes(request)
        body = _body(request)
        answer = await self._ask("POST", "/api/jobs/", body)
        engine_id = str(body["submission_id"])
        if "already exists" not in answer.words:
            _raise_if_refused(answer)
        return engine_id

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        """Ask for each of the jobs."""
        return by_mark([await self._report(name, mark) for mark in marks], marks)

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        """Stop jobs; those that Ray does not know, or that ended, are no error."""
        for engine_id in engine_ids:
            answer = await self._ask("POST", f"/api/jobs/{quote(engine_id)}/stop")
            if not _is_unknown(answer) and answer.status != http.HTTPStatus.OK:
                raise CannotAsk(answer.words)

    async def _report(self, name: str, mark: str) -> PilotReport:
        engine_id = _engine_id(name, mark)
        answer = await self._ask("GET", f"/api/jobs/{quote(engine_id)}")
        if _is_unknown(answer):
            return PilotReport(mark=mark, state=PilotState.ABSENT)
        if answer.status != http.HTTPStatus.OK:
            raise CannotAsk(answer.words)
        job = answer.document()
        word = str(job.get("status", ""))
        return PilotReport(
            mark=mark,
            state=STATES.get(word, PilotState.UNKNOWN),
            engine_id=engine_id,
            word=word,
            reason=_first_line(job.get("message")) if word != "RUNNING" else "",
            place=str(job.get("driver_node_id") or "")[:8],
        )

    async def _check_nodes(self, request: PilotRequest) -> None:
        """Refuse what no node can run; Ray would let it wait for ever."""
        if CHECK in self._omitted:
            return
        answer = await self._ask("GET", "/api/v0/nodes?detail=1&limit=10000")
        _raise_if_refused(answer)
        wanted, nodes = _wanted(request), _nodes_alive(answer)
        if not any(
            all(node.get(kind, 0) >= amount for kind, amount in wanted.items())
            for node in nodes
        ):
            asked = ", ".join(f"{kind} {amount:g}" for kind, amount in wanted.items())
            raise EngineRefusal(f"none of Ray's {len(nodes)} nodes has {asked}")

    async def _ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> _Answer:
        loop, sending = asyncio.get_running_loop(), partial(self._send, method, path)
        try:
            async with asyncio.timeout(self._limit_s):
                return await loop.run_in_executor(_THREADS, sending, body)
        except TimeoutError:
            raise CannotAsk(
                f"{self._url.netloc} did not answer within {self._limit_s:g} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            words = getattr(error, "strerror", None) or str(error)
            raise CannotAsk(f"{self._url.netloc} cannot be asked: {words}") from None

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> _Answer:
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        assert self._url.hostname is not None
        connection = kind(self._url.hostname, self._url.port, timeout=self._limit_s)
        try:
            payload = None if body is None else msgspec.json.encode(body)
            target = self._url.path.rstrip("/") + path
            connection.request(method, target, payload, self._headers())
            response = connection.getresponse()
            text = response.read(_LARGEST_ANSWER).decode(errors="replace")
            return _Answer(response.status, text)
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token_file:
            headers["Authorization"] = f"Bearer {_token(self._token_file)}"
        return headers


def _url(address: str) -> SplitResult:
    # It raises for a port that is no number, and for brackets that do not close.
    with contextlib.suppress(ValueError):
        url = urlsplit(address)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return url
    raise UsageError(f"`{address}` is no address", "as http://head:8265")


def _token(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "it holds no token"
        raise CannotAsk(f"{path}: {words}") from None


class _Node(msgspec.Struct):
    state: str
    resources_total: dict[str, float]


class _Nodes(msgspec.Struct):
    result: list[_Node]


class _NodesData(msgspec.Struct):
    result: _Nodes


class _NodesAnswer(msgspec.Struct):
    data: _NodesData


def _nodes_alive(answer: _Answer) -> list[dict[str, float]]:
    try:
        listed = msgspec.json.decode(answer.text, type=_NodesAnswer)
    except msgspec.MsgspecError:
        raise CannotAsk(f"Ray lists no nodes: {answer.words}") from None
    nodes = listed.data.result.result
    alive = [one.resources_total for one in nodes if one.state == "ALIVE"]
    if not alive:
        raise CannotAsk("Ray has no node that is alive")
    return alive


def _engine_id(name: str, mark: str) -> str:
    return f"{name}-{mark}"


def _body(request: PilotRequest) -> dict[str, object]:
    wanted = _wanted(request)
    own = {kind: amount for kind, amount in wanted.items() if kind not in _KINDS}
    body: dict[str, object] = {
        "submission_id": _engine_id(request.name, request.mark),
        "entrypoint": _entrypoint(request),
        "entrypoint_num_cpus": request.cpus,
        "entrypoint_num_gpus": request.gpus,
        "metadata": {"grass": request.mark},
    }
    if "memory" in wanted:
        body["entrypoint_memory"] = wanted["memory"]
    if own:
        body["entrypoint_resources"] = own
    return body


_KINDS = ("CPU", "GPU", "memory")


def _wanted(request: PilotRequest) -> dict[str, float]:
    """Return what a node must have, by Ray's names; an option is one: `vram=20`."""
    wanted: dict[str, float] = {"CPU": request.cpus}
    if request.gpus:
        wanted["GPU"] = request.gpus
    if request.memory_mib is not None:
        wanted["memory"] = request.memory_mib * _MIB
    for option in request.options:
        kind, _, amount = option.partition("=")
        try:
            wanted[kind] = float(amount)
        except ValueError:
            raise UsageError(
                f"`{option}` is no resource of Ray", "as --option vram=20"
            ) from None
    return wanted


def _entrypoint(request: PilotRequest) -> str:
    """Return lines for the shell that Ray runs them with; it ends if one fails."""
    limit = (f"--kill-after={_GRACE_S}", str(math.ceil(request.time_limit_s)))
    words = ("timeout", "--foreground", *limit, *request.command)
    lines = [
        "set -e",
        f"cd {shlex.quote(request.directory)}",
        f"exec >> {shlex.quote(request.output)} 2>&1",
        *request.setup,
        f"exec {shlex.join(words)}",
    ]
    # Each on its own, as a line may end with a comment.
    return "\n".join(lines)


def _raise_if_refused(answer: _Answer) -> None:
    if answer.status == http.HTTPStatus.OK:
        return
    if answer.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        raise EngineRefusal(answer.words, "--token-file with the token of Ray's head")
    if answer.status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
        raise EngineRefusal(answer.words)
    raise CannotAsk(answer.words)


def _is_unknown(answer: _Answer) -> bool:
    missing = answer.status == http.HTTPStatus.NOT_FOUND
    return missing and "does not exist" in answer.text


def _first_line(text: object) -> str:
    return str(text or "").partition("\n")[0][:_MOST_WORDS]
