"""The link of a worker on another machine: a WebSocket beside the routes.

A worker sends its token and its id with the upgrade. Its first message is a `Hello` of
that worker in a supported version; otherwise the link is closed with the reason. A
worker that sends nothing for a while is disconnected.
"""

import asyncio
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from grass.api.access.auth import connection_of, identify, record_use, require
from grass.api.context import api_state, context_of
from grass.api.problem import problem_response
from grass.api.tcp_connections import TcpConnection
from grass.broker.core.calls import BindToken
from grass.errors import Forbidden, GrassError, ProtocolError
from grass.event_log import EventLog
from grass.link.frames import decoder_to_broker
from grass.link.messages import Hello, ToBroker, ToWorker
from grass.link.remote_end import LINK_SILENCE_S, REFUSED, WORKER_HEADER, RemoteEnd
from grass.link.versions import version_problem
from grass.model.access import Right
from grass.model.worker import check_worker_id

log = EventLog(__name__)

LONGEST_ID = 255
LONGEST_CLOSE_REASON = 120
"""In bytes: the size of a WebSocket's close frame is limited."""
CLOSE_S = 2.0
"""How long the close frame may wait behind unread data."""
NORMAL = 1000
TOO_BIG = 1009


async def link(websocket: WebSocket) -> None:
    """Serve a worker's link until it ends."""
    try:
        worker = await _authorized_worker(websocket)
    except GrassError as error:
        await websocket.send_denial_response(problem_response(error))
        return
    connection = connection_of(websocket)
    await websocket.accept()
    end: RemoteEnd[ToWorker, ToBroker] = RemoteEnd(
        _sender(websocket), _receiver(websocket, worker), decoder_to_broker
    )
    checked = CheckedLink(end, worker)
    # A link without an address is that of the broker's own worker.
    address = "unknown" if connection is None else connection.host
    context_of(websocket).broker.serve(checked, worker=worker, address=address)
    closing = asyncio.ensure_future(_end_with(api_state(websocket).closing, end))
    try:
        await end.run()
    except Exception as error:  # noqa: BLE001 -- the next link begins anew
        log.defect(error, worker=worker)
    finally:
        closing.cancel()
    if end.refusal:
        context_of(websocket).broker.log_refusal(worker, end.refusal)
    await _close(websocket, end.refusal, connection)


class CheckedLink:
    """A link that checks the worker's id and version in each `Hello`."""

    def __init__(self, end: RemoteEnd[ToWorker, ToBroker], worker: str) -> None:
        self._end = end
        self._worker = worker
        self._handshake_done = False
        self._arrived: Callable[[list[ToBroker]], None] | None = None

    def listen(
        self, arrived: Callable[[list[ToBroker]], None], ended: Callable[[], None]
    ) -> None:
        """Hand over messages once the first one was checked."""
        self._arrived = arrived
        self._end.listen(self._check, ended)

    def send(self, message: ToWorker) -> None:
        """Send a message to the worker without waiting."""
        self._end.send(message)

    def close(self, refusal: str = "") -> None:
        """End the link; may be called twice."""
        self._end.close(refusal)

    def _check(self, messages: list[ToBroker]) -> None:
        problem = self._problem(messages)
        if problem is not None:
            self._end.close(problem)
            return
        assert self._arrived is not None
        self._arrived(messages)

    def _problem(self, messages: list[ToBroker]) -> str | None:
        hellos = [one for one in messages if isinstance(one, Hello)]
        if not self._handshake_done and not isinstance(messages[0], Hello):
            return "a worker begins with hello"
        self._handshake_done = True
        for hello in hellos:
            if hello.worker != self._worker:
                return "this token belongs to another worker"
            problem = version_problem(hello.version, "broker", "worker")
            if problem is not None:
                return problem
        return None


async def _authorized_worker(websocket: WebSocket) -> str:
    """Return the worker of a link, or raise."""
    principal = identify(websocket)
    require(websocket, Right.WORK)
    context = context_of(websocket)
    named = websocket.headers.get(WORKER_HEADER) or principal.worker
    if named is None or len(named) > LONGEST_ID:
        raise ProtocolError(f"the header {WORKER_HEADER} is missing or too long")
    if named == context.worker:
        raise Forbidden("this worker is the broker's own")
    check_worker_id(named)
    if principal.worker is None:
        await context.broker.call(BindToken(principal.token, named))
    elif named != principal.worker:
        raise Forbidden(
            "this token belongs to another worker",
            "paste a line of `grass token new` on this machine",
        )
    await record_use(websocket)
    return named


def _sender(websocket: WebSocket) -> Callable[[bytes], asyncio.Future[None]]:
    async def send(frame: bytes) -> None:
        try:
            await websocket.send_bytes(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionResetError("the worker has disconnected") from error

    return send  # type: ignore[return-value]


def _receiver(
    websocket: WebSocket, worker: str
) -> Callable[[], asyncio.Future[bytes | None]]:
    broker = context_of(websocket).broker

    async def receive() -> bytes | None:
        await broker.may_read_more(worker)
        async with asyncio.timeout(LINK_SILENCE_S):
            message = await websocket.receive()
        if message["type"] != "websocket.receive":
            if message.get("code") == TOO_BIG:
                raise ProtocolError("a frame is too large")
            return None
        frame = message.get("bytes")
        if frame is None:
            raise ProtocolError("a worker sends no text")
        return bytes(frame)

    return receive  # type: ignore[return-value]


async def _end_with(closing: asyncio.Event, end: RemoteEnd[ToWorker, ToBroker]) -> None:
    await closing.wait()
    end.close()


async def _close(
    websocket: WebSocket, refusal: str, connection: TcpConnection | None
) -> None:
    """Close the WebSocket, with the reason of a refusal."""
    said = refusal.encode(errors="replace")[:LONGEST_CLOSE_REASON]
    code, reason = REFUSED if refusal else NORMAL, said.decode(errors="ignore")
    try:
        async with asyncio.timeout(CLOSE_S):
            await websocket.close(code, reason)
    except (WebSocketDisconnect, RuntimeError):
        # The worker has closed it already.
        return
    except TimeoutError:
        # The worker does not read, and unsent data would be kept forever.
        if connection is not None:
            connection.drop()
