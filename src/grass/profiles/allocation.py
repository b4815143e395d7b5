"""Units that this process holds while a block runs: `with grass.allocate(gpu=0.5)`.

The process becomes a guest: a job without a command, which waits in the queue as every
job does and ends when the block does, or with the process. Inside a job nothing is
asked for: the block takes from what that job has, and so does a block inside another.
"""

from __future__ import annotations

import contextlib
import os
import sys
from _thread import allocate_lock
from contextvars import ContextVar

from grass.client.connection import Broken
from grass.errors import GrassError, NoDaemon, Refused, UsageError
from grass.profiles import cuda_state
from grass.profiles.guest_calls import GuestCalls, tell_inner_type
from grass.profiles.process_allocations import state
from grass.profiles.surrounding_job import shared, units_of_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from grass.client.json_codec import Document

    Amount = float | str

INTERRUPTED = 130
_FIRST_LOOK_S = 0.3
_LOOK_S = 30.0
_POLICIES = ("spread", "pack")
_innermost: ContextVar[Allocation | None] = ContextVar("grass_allocation", default=None)
_told: set[str] = set()
_inside: dict[tuple[int, str], bool] = {}
"""The types that were told of jobs around this process, and whether they are known."""


def surrounding() -> Allocation | None:
    """Return the innermost allocation that this code runs in, and that is held."""
    outer = _innermost.get()
    while outer is not None and not outer.is_held_here:
        outer = outer.outer
    return outer


def allocate(  # noqa: PLR0913 -- each is one thing to ask for
    *,
    gpu: Amount | None = None,
    vram: Amount | None = None,
    cpu: Amount | None = None,
    ram: Amount | None = None,
    require: Mapping[str, Amount] | None = None,
    name: str | None = None,
    priority: int | None = None,
    project: str | None = None,
    queue: str | None = None,
    policy: str | None = None,
    job_type: str | None = None,
    time_limit_s: float | None = None,
    continue_on_server_unavailable: bool = False,
) -> Allocation:
    """Return units to be held while a `with` or `async with` block runs.

    `gpu=0.5` is half of a GPU with half of its memory, `vram="8G"` memory alone;
    `require` names any other kind. Without an amount it is one whole GPU, or one core
    where the machine has no GPU. Entering the block waits until the units are free.
    `vram="auto"` is the memory that was learned of `job_type`, or of the name.
    """
    given = {"gpu": gpu, "vram": vram, "cpu": cpu, "ram": ram}
    wanted = {kind: amount for kind, amount in given.items() if amount is not None}
    wanted |= require or {}
    asked: Document = {"name": name or _program(), "priority": priority}
    asked |= {"project": project, "queue": queue, "time_limit_s": time_limit_s}
    asked["require"] = wanted or None
    asked["policy"], asked["job_type"] = policy_named(policy), job_type
    known = {field: value for field, value in asked.items() if value is not None}
    return Allocation(known, may_go_on=continue_on_server_unavailable)


def policy_named(policy: object) -> str | None:
    """Read a policy, as text or as a member of an enumeration."""
    if policy is None:
        return None
    text = str(getattr(policy, "name", policy)).lower()
    if text not in _POLICIES:
        raise UsageError(f"there is no policy `{text}`", "spread or pack")
    return text


class Allocation:
    """Units of this process, held from the beginning of a block to its end."""

    def __init__(self, asked: Document, *, may_go_on: bool = False) -> None:
        """Prepare; `allocate` makes one."""
        self._asked = asked
        self._may_go_on = may_go_on
        self._calls: GuestCalls | None = None
        self._pid = 0
        self._given_up = False
        self._taking = allocate_lock()
        """Held by a thread that takes the units for a coroutine."""
        self._begun = False
        self.outer: Allocation | None = None
        """The one that it is inside of."""
        self.job: int | None = None
        """The id of the job; None: the units belong to no job."""
        self.units: dict[str, list[str]] = {}
        """The names of the units by kind."""
        self.amounts: dict[str, dict[str, float]] = {}
        """How much of each unit it has; empty where the units belong to no job."""
        self.tells_waits = False
        """Whether it says what it waits for elsewhere than on a terminal too."""
        self.profiled = False
        """Whether it is known already what its type needs."""

    def __repr__(self) -> str:
        """Return what it holds, in words."""
        held = (f"{kind} {','.join(names)}" for kind, names in self.units.items())
        return f"<Allocation: {'; '.join(held) or 'nothing'}>"

    @property
    def gpus(self) -> list[str]:
        """The names of the GPUs."""
        return self.units.get("gpu") or self.units.get("vram") or []

    def __enter__(self) -> Self:
        """Wait for the units, and take them."""
        self._take()
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the units back."""
        self._end()
        self._give_back(exit_code_of(error))

    async def __aenter__(self) -> Self:
        """Wait for the units, while other tasks go on, and take them."""
        import anyio.to_thread

        try:
            # A limiter of its own: a wait may last for days, and keeps nobody out.
            await anyio.to_thread.run_sync(
                self._take_in_thread,
                abandon_on_cancel=True,
                limiter=anyio.CapacityLimiter(1),
            )
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._abandon)
            raise
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the units back."""
        import anyio.to_thread

        self._end()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._give_back, exit_code_of(error))

    def measured(self) -> None:
        """Have it learned what this process uses now; it waits for that a little."""
        if self._calls is not None and self.job is not None:
            self._calls.measured(self.job)

    def _begin(self) -> None:
        self.outer = surrounding()
        self._begun = True
        _innermost.set(self)

    def _end(self) -> None:
        self._begun = False
        _innermost.set(self.outer)

    def _take(self) -> None:
        if self._pid:
            raise UsageError(
                "this allocation was used already", "call `allocate` again"
            )
        self._pid = os.getpid()
        outer = surrounding()
        if outer is not None:
            self.units = shared(outer.units, self._wanted, outer.job)
        elif (job := state.outer_job) is not None:
            self.units = shared(units_of_job(self._wanted), self._wanted, job)
            self._tell_type(job)
        elif not self._wants_gpus:
            self._enter(self._asked)
        elif state.await_first(lambda: self._given_up):
            try:
                self._enter(self._asked)
            finally:
                state.chosen()
        else:
            self._enter({**self._asked, "gpu_model": f"gpu:{','.join(state.gpus)}"})

    def _tell_type(self, job: int) -> None:
        """Say once what runs in a job: what is known of its memory holds there."""
        named = self._asked.get("job_type")
        if named and job and self.gpus:
            if (job, named) not in _inside:
                _inside[job, named] = tell_inner_type(job, named)
            self.profiled = _inside[job, named]

    @property
    def _wanted(self) -> Mapping[str, Amount]:
        return self._asked.get("require") or {}

    @property
    def _wants_gpus(self) -> bool:
        wanted = self._wanted
        return not wanted or not {"gpu", "vram"}.isdisjoint(wanted)

    @property
    def is_of_this_process(self) -> bool:
        """Whether it was made here, and not before a fork."""
        return self._pid == os.getpid()

    @property
    def is_held_here(self) -> bool:
        """Whether its block runs in this process."""
        return self._begun and self.is_of_this_process

    def _enter(self, asked: Document) -> None:
        calls = GuestCalls()
        try:
            entered = calls.enter(asked)
        except NoDaemon as error:
            calls.close()
            if not self._may_go_on:
                raise
            _tell_once(f"{error}; `{self._asked['name']}` runs without an allocation")
            return
        except BaseException:
            calls.close()
            raise
        self._calls, self.job = calls, int(entered["first"])
        if entered.get("hint"):
            _tell_once(str(entered["hint"]))
        try:
            self._started(self._await_start(calls, self.job))
        except BaseException as error:
            self._give_back(exit_code_of(error))
            raise

    def _await_start(self, calls: GuestCalls, job: int) -> Document:
        """Wait for the units; on a terminal say what for, whenever that changes."""
        told, look_s = "", _FIRST_LOOK_S
        while True:
            if self._given_up:
                raise Refused(f"job {job} is not waited for any more")
            reply = calls.wait(job, look_s)
            look_s = _LOOK_S
            if reply["environment"]:
                return reply
            if reply["state"] not in ("queued", "waiting", "held", "running"):
                why = reply["reason"] or reply["state"]
                raise Refused(f"job {job} was {reply['state']}: {why}")
            reason = str(reply["reason"] or "")
            if reason == told and f"(pid {os.getpid()}," in reason:
                _tell_once(f"job {job} waits for memory that this process holds itself")
            elif reason == told and state.is_holding:
                _tell_once(f"job {job} {_TURN}")
            if reason != told:
                told = reason
                if self.tells_waits or sys.stderr.isatty():
                    _tell(f"job {job} waits: {told}")

    def _started(self, reply: Document) -> None:
        assert self.job is not None
        self.amounts = reply["units"]
        self.units = {kind: list(units) for kind, units in self.amounts.items()}
        self.profiled = bool(reply.get("profiled"))
        self._check_device(reply.get("gpus") or {})
        state.hold(self.job, reply["environment"], tuple(self.gpus))

    def _check_device(self, uuids: dict[str, str]) -> None:
        """Refuse GPUs other than those that CUDA uses in this process already."""
        if not self.gpus:
            return
        if state.gpus and not set(self.gpus) <= set(state.gpus):
            raise Refused(_other_gpu(state.gpus, self.gpus), _KEEPS)
        names = {uuid.partition("-")[2]: unit for unit, uuid in uuids.items()}
        wanted = [one for one, unit in names.items() if one and unit in self.gpus]
        seen = cuda_state.visible_gpus()
        if seen is None or len(wanted) < len(self.gpus):
            return
        if set(seen[: len(wanted)]) != set(wanted):
            has = [names.get(one, one) for one in seen[:1]] or ["none"]
            raise Refused(_other_gpu(has, self.gpus), _BEFORE)

    def _take_in_thread(self) -> None:
        with self._taking:
            if not self._given_up:
                self._take()

    def _abandon(self) -> None:
        """Do not wait for the units any more, and give back what has come."""
        self.give_up()
        with self._taking:
            self._give_back(INTERRUPTED)

    def give_up(self) -> None:
        """Have the thread that waits for the units return."""
        self._given_up = True
        if self._calls is not None and self.job is not None:
            with contextlib.suppress(GrassError, Broken):
                self._calls.give_back(self.job, INTERRUPTED)

    def _give_back(self, exit_code: int) -> None:
        job, calls = self.job, self._calls
        self._calls = None
        if job is None or calls is None or not self.is_of_this_process:
            return
        state.release(job)
        if self.gpus and not state.is_holding:
            cuda_state.free_cached_memory()
        try:
            calls.give_back(job, exit_code)
        except (GrassError, Broken) as error:
            # Its units are free when this process ends, which the keeper sees.
            _tell(f"job {job} holds its units until this process ends: {error}")
        finally:
            calls.close()


_TURN = (
    "waits while another thread of this process holds units; a thread that was started"
    " inside a block takes from it if its target is `contextvars.copy_context().run`"
)
_KEEPS = "a process keeps its first GPU: use another process for another GPU"
_BEFORE = "allocate before anything in this process uses CUDA"


def _other_gpu(has: list[str] | tuple[str, ...], gets: list[str]) -> str:
    return (
        f"this process already uses GPU {', '.join(has)} and cannot move to GPU "
        f"{', '.join(gets)}"
    )


def exit_code_of(error: BaseException | None) -> int:
    """Return the exit code that Python would end with."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        code = error.code
        return 0 if code is None else code & 0xFF if isinstance(code, int) else 1
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _program() -> str:
    """Return what this process is called."""
    return os.path.basename(sys.argv[0] if sys.argv else "") or "python"


def _tell_once(text: str) -> None:
    if text not in _told:
        _told.add(text)
        _tell(text)


def _tell(text: str) -> None:
    plain = "".join(one if one.isprintable() else "?" for one in text)
    sys.stderr.write(f"grass: {plain}\n")
    sys.stderr.flush()
