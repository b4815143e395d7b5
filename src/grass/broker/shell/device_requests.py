"""Devices on demand: each worker is asked how its devices are used when people look.

Nothing measured is kept here or goes through a commit. Callers that ask at the same
time share one request. A worker may be broken or hostile: of its answer no more is kept
than a machine can have, and numbers that cannot be true refuse all of it.
"""

import asyncio
from collections.abc import Iterator
from itertools import count

from grass.broker.shell.links import LinkOf
from grass.errors import GrassError, ProtocolError, TimedOut, Unreachable
from grass.link.messages import Devices, ReadDevices
from grass.model.usage.gpu_use import GpuUse, GpuUser

PATIENCE_S = 5.0
"""How long a worker may take; one of an older version never answers."""
MOST_GPUS = 256
MOST_USERS = 1024
"""Of one GPU."""
LONGEST_TEXT = 256
_MOST = 2**50


class DeviceRequests:
    """Requests that wait for a worker's answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self._numbers = count(1)
        self._waiting: dict[str, tuple[int, asyncio.Future[list[GpuUse]]]] = {}

    async def read(self, worker: str) -> list[GpuUse]:
        """Return how the GPUs of a worker are used now."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.shield(self._asked(worker))
        except TimeoutError:
            self._waiting.pop(worker, None)
            raise TimedOut(
                f"the worker did not answer within {PATIENCE_S:g} s",
                "its grass may be of an older version",
            ) from None

    def _asked(self, worker: str) -> "asyncio.Future[list[GpuUse]]":
        if worker in self._waiting:
            return self._waiting[worker][1]
        link = self._link_of(worker)
        if link is None:
            raise _away()
        number, answer = (
            next(self._numbers),
            asyncio.get_running_loop().create_future(),
        )
        # A caller that has left does not read its exception.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[worker] = number, answer
        link.send(ReadDevices(number))
        return answer

    def received(self, worker: str, said: Devices) -> None:
        """Deliver a worker's answer; it is dropped if it comes too late."""
        number, answer = self._waiting.get(worker, (0, None))
        if answer is None or number != said.number:
            return
        del self._waiting[worker]
        try:
            answer.set_result([_checked(gpu) for gpu in said.gpus[:MOST_GPUS]])
        except ProtocolError as error:
            answer.set_exception(error)

    def gone(self, worker: str) -> None:
        """Fail the request that waits for a worker."""
        _, answer = self._waiting.pop(worker, (0, None))
        if answer is not None:
            answer.set_exception(_away())


def _away() -> GrassError:
    return Unreachable("the worker is unreachable")


def _checked(gpu: GpuUse) -> GpuUse:
    """Cut what is too long; raise if a number cannot be true."""
    gpu.users = [_checked_user(user) for user in gpu.users[:MOST_USERS]]
    gpu.unit, gpu.name = _short(gpu.unit), _short(gpu.name)
    gpu.uuid, gpu.fault = _short(gpu.uuid), gpu.fault and _short(gpu.fault)
    for number in _numbers(gpu):
        if number is not None and not 0 <= number <= _MOST:
            raise ProtocolError(f"a number of gpu {gpu.unit} is {number}")
    return gpu


def _checked_user(user: GpuUser) -> GpuUser:
    user.user, user.command = _short(user.user), _short(user.command)
    user.attempt = _short(user.attempt)
    return user


def _numbers(gpu: GpuUse) -> Iterator[float | None]:
    yield from (gpu.memory, gpu.used, gpu.utilization, gpu.power_w, gpu.power_limit_w)
    yield None if gpu.temperature is None else abs(gpu.temperature)
    yield from gpu.attempts.values()
    for user in gpu.users:
        yield from (user.pid, user.memory, user.utilization)


def _short(text: str) -> str:
    """Cut a text, and replace what is no text."""
    return text[:LONGEST_TEXT].encode(errors="replace").decode()
