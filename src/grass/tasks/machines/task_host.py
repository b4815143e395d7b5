"""One task host of a program: its job, the channel to it, and what became of it.

The host is a job at the broker of an address. It may wait for its units there, while
the program goes on with those that it has. The channel may break and is opened again;
if that takes longer than the host itself waits for its program, what ran there is lost.
So a task that is run again elsewhere does not run there any more.
"""

from __future__ import annotations

import json
import pickle
import platform
import sys
import time
from contextlib import suppress
from threading import Lock

import anyio

from grass.client.connection import Broken
from grass.client.task_channel import in_daemon_thread, open_channel
from grass.errors import GrassError, ProtocolError, UsageError
from grass.tasks.children import frames
from grass.tasks.host.conversation import Conversation
from grass.tasks.host.host_frames import (
    END,
    ERROR,
    FRAMES_VERSION,
    FUNCTION,
    GONE,
    READY,
    RESULT,
    SETUP,
    HostFrame,
)
from grass.tasks.machines.host_children import HostChildren
from grass.tasks.machines.signs_of_life import signs_of_life
from grass.tasks.program_units import ProgramUnits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grass.client.client import Client
    from grass.client.task_channel import TaskChannel
    from grass.model.resources import Capacity
    from grass.tasks.machines.host_children import SentFunctions
    from grass.tasks.machines.remote_child import RemoteChild
    from grass.tasks.session import Session

PATIENCE_S = 30.0
"""How long a host waits for its program before it leaves."""
_MARGIN_S = 10.0
"""How much longer the program waits for its host."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_LEAVING_S = 5.0
_KILLED = -9
_KINDS = {RESULT: frames.RESULT, ERROR: frames.ERROR, READY: frames.READY}


class TaskHost:
    """A task host, as its program sees it."""

    def __init__(
        self,
        name: str,
        client: Client,
        job: int,
        session: Session,
        functions: SentFunctions,
    ) -> None:
        self.name = name
        """What it is called in messages: its address."""
        self.job = job
        self.loss = ""
        """Why it is lost, if it is."""
        self.children: dict[int, RemoteChild] = {}
        """By number, those that have not died."""
        self._client = client
        self._session = session
        self._functions = functions
        self._known: set[int] = set()
        self._about: dict[str, str] = {}
        self._capacity: Capacity = {}
        self._talk = Conversation(b"{}", self._greeted, self._taken)
        self._is_leaving = self._is_over = self._has_ended = False
        self._scope, self._telling = anyio.CancelScope(), anyio.CancelScope()
        self._calling = Lock()
        """Of the client, which is for one caller at a time."""
        self._ended = anyio.Event()

    def about(self) -> str:
        """Say which interpreter it has, on which machine."""
        told = self._about
        python, program = told.get("python", "?"), told.get("program", "?")
        return f"{self.name} (Python {python}, {program})"

    def put(self, frame: HostFrame) -> None:
        """Send a frame to the host; it is dropped when that is lost."""
        if self._is_over:
            frame.close()
        else:
            self._talk.put(frame)

    def teach(self, number: int, data: bytes) -> None:
        """Send a function, unless the host has it."""
        if number not in self._known:
            self._known.add(number)
            self.put(HostFrame(FUNCTION, number=number, data=data))

    async def run(self) -> None:
        """Connect, and again when the connection ends, until it leaves or is lost."""
        try:
            with self._scope:
                await self._connect_always()
        finally:
            self._over()
            if self._has_ended:
                self._client.close()
            else:
                # One that was not heard for long leaves by itself.
                limit_s = _LEAVING_S / 5 if self.loss else _LEAVING_S
                with anyio.move_on_after(limit_s, shield=True):
                    await self._end_job()
            self._ended.set()

    async def leave(self) -> None:
        """Have the host end; wait for that."""
        self._is_leaving = True
        if self._about:
            self.put(HostFrame(END))
            with anyio.move_on_after(_LEAVING_S):
                await self._ended.wait()
        self._scope.cancel()
        await self._ended.wait()

    async def tell_why(self) -> None:
        """Have the line of progress say why the host is still to come."""
        with self._telling:
            while self._session.progress.is_seen and not self._about:
                with suppress(GrassError, Broken, OSError):
                    job = await in_daemon_thread(self._read_job)
                    self._session.progress.reasons[self.name] = job["reason"] or ""
                await anyio.sleep(_LONGEST_PAUSE_S)

    def _read_job(self) -> dict[str, Any]:
        with self._calling:
            return self._client.job(self.job)

    async def _connect_always(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._is_over:
            began = time.monotonic()
            channel = await self._opened()
            if channel is not None:
                await self._talk_over(channel)
                if channel.is_ended:
                    await self._job_ended()
            if self._is_leaving or self._is_over:
                return
            if self._about and self._silent_s() > PATIENCE_S + _MARGIN_S:
                self._lose(f"{self.name} was not heard for {self._silent_s():.0f} s")
                return
            if time.monotonic() - began > _LONGEST_PAUSE_S:
                pause_s = _FIRST_PAUSE_S
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _silent_s(self) -> float:
        return time.monotonic() - self._talk.heard_at

    async def _open_now(self) -> TaskChannel:
        route = self._client.route
        assert route is not None
        return await open_channel(route, self.job)

    async def _opened(self) -> TaskChannel | None:
        """Open the channel; None: it cannot be now."""
        left_s = PATIENCE_S + _MARGIN_S - self._silent_s() if self._about else None
        # A broker may be restarted, or a network be away: see `_silent_s`.
        with suppress(GrassError, OSError), anyio.move_on_after(left_s):
            return await self._open_now()
        return None

    async def _talk_over(self, channel: TaskChannel) -> None:
        try:
            told = await channel.running()
            self._begin(told["allocation"])
            async with signs_of_life(channel, self._open_now):
                await self._talk.run(channel)
        except ProtocolError as error:
            self._lose(f"{self.name} is not the one that was there before: {error}")
        except (GrassError, OSError):
            """It is opened again."""
        finally:
            channel.close()

    def _begin(self, allocation: Capacity) -> None:
        if not self._capacity:
            self._capacity = allocation
            self._talk.put(HostFrame(SETUP, data=pickle.dumps(allocation, 5)))

    def _greeted(self, greeting: bytes) -> None:
        """Use the host, if it can run what this program sends it."""
        if self._about:
            return
        self._about = json.loads(greeting)
        problem = mismatch(self.about(), self._about)
        if problem is not None:
            self._session.fail(problem)
            return
        program = ProgramUnits({})
        children = HostChildren(self._session, program, self._functions, self)
        self._session.add_machine(self.name, self._capacity, children)

    def _taken(self, arrived: list[HostFrame]) -> None:
        for frame in arrived:
            child = self.children.get(frame.child)
            if child is None:
                frame.close()
            elif frame.kind == GONE:
                del self.children[frame.child]
                child.ended(int(frame.data))
            else:
                kind, number = _KINDS[frame.kind], frame.number
                rest = (frame.seconds, frame.data, frame.descriptor)
                child.deliver(frames.Frame(kind, number, *rest))

    async def _job_ended(self) -> None:
        """Learn how the job has ended, unless this program has ended it."""
        if self._is_leaving:
            self._has_ended = True
        if self._is_leaving or self._is_over:
            return
        reason = ""
        try:
            job = await in_daemon_thread(self._read_job)
        except (GrassError, Broken, OSError) as error:
            reason = str(error)
        else:
            if job["finished_at"] is None:
                # Only its channel has ended.
                return
            self._has_ended = True
            reason = _end_of(job)
        self._lose(f"the task host on {self.name}, job {self.job}, {reason}")

    def _lose(self, why: str) -> None:
        """Give up the host: what ran there is run elsewhere, or fails."""
        if not self._is_over:
            self.loss = why
            sys.stderr.write(f"grass: {why}\n")
            self._over()

    def _over(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._telling.cancel()
            self._session.remove_machine(self.name)
            self._talk.close()
            for child in list(self.children.values()):
                child.ended(_KILLED)
            self.children.clear()

    async def _end_job(self) -> None:
        """Cancel the job, unless it has ended by itself."""

        def cancel() -> None:
            with self._calling:
                try:
                    self._client.cancel([str(self.job)])
                except (GrassError, Broken, OSError):
                    """It has ended, or leaves when it hears nothing any more."""
                finally:
                    self._client.close()

        await in_daemon_thread(cancel)


def mismatch(about: str, told: dict[str, str]) -> UsageError | None:
    """Say why functions of this program cannot run there, if they cannot."""
    here = platform.python_version()
    if told.get("frames") != str(FRAMES_VERSION):
        return UsageError(
            f"{about} has another version of Grass than this program",
            "install the same on both",
        )
    if told.get("python", "").split(".")[:2] == here.split(".")[:2]:
        return None
    return UsageError(
        f"functions of this program, which runs Python {here}, cannot run on {about}",
        "name an interpreter of the same version there: `grass config set tasks.python"
        " PROGRAM`",
    )


def _end_of(job: dict[str, Any]) -> str:
    """Say how a job has ended."""
    code, signal = job.get("exit_code"), job.get("signal")
    if job["state"] in ("cancelled", "lost"):
        how = f"was {job['state']}"
    elif signal is not None:
        how = f"was killed by signal {signal}"
    else:
        how = f"has ended with exit code {code}; see `grass logs {job['id']}` there"
    return f"{how} ({job['reason']})" if job.get("reason") else how
