"""An engine in this process: it starts pilots as plain processes on this host."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from grass.engines.provider import PilotRequest
from grass.errors import CannotAsk, EngineRefusal
from grass.model.pools import PilotReport, PilotState

MOST_GPUS = 2
_NO_ANSWER = "the fake engine does not answer"


class FakeEngine:
    """Takes what asks for at most two GPUs, and answers unless it is told not to."""

    def __init__(self) -> None:
        self.answers = True
        self.accepts_unanswered = False
        """Whether a submit that is not answered is accepted all the same."""
        self.slots = 100
        """So many jobs run at a time; more are pending."""
        self.submitted: list[PilotRequest] = []
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._cancelled: set[str] = set()

    def preview(self, request: PilotRequest) -> str:
        return " ".join(request.command)

    async def check(self, request: PilotRequest) -> str:
        self._ask()
        _refuse_too_large(request)
        return "would start now"

    async def submit(self, request: PilotRequest) -> str:
        if not self.answers and self.accepts_unanswered:
            self._accept(request)
        self._ask()
        _refuse_too_large(request)
        return self._accept(request)

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        self._ask()
        self._start_pending()
        jobs = enumerate(self.submitted, 1)
        listed = {
            job.mark: self._report(str(number), job)
            for number, job in jobs
            if job.name == name
        }
        absent = {
            mark: PilotReport(mark=mark, state=PilotState.ABSENT) for mark in marks
        }
        return absent | {mark: listed[mark] for mark in marks if mark in listed}

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        self._ask()
        for number in engine_ids:
            self._cancelled.add(number)
            if number in self._running:
                self._running[number].terminate()

    def stop(self) -> None:
        """End all that runs."""
        for process in self._running.values():
            process.kill()
            process.wait()

    def _ask(self) -> None:
        if not self.answers:
            raise CannotAsk(_NO_ANSWER)

    def _accept(self, request: PilotRequest) -> str:
        self.submitted.append(request)
        self._start_pending()
        return str(len(self.submitted))

    def _start_pending(self) -> None:
        for number, request in enumerate(self.submitted, 1):
            alive = [one for one in self._running.values() if one.poll() is None]
            waits = str(number) not in self._running.keys() | self._cancelled
            if waits and len(alive) < self.slots:
                self._running[str(number)] = _start(request)

    def _report(self, number: str, request: PilotRequest) -> PilotReport:
        process = self._running.get(number)
        if process is None and number not in self._cancelled:
            state, word = PilotState.PENDING, "WAITS"
        elif process is not None and process.poll() is None:
            state, word = PilotState.RUNNING, "RUNS"
        else:
            state, word = PilotState.ENDED, "OVER"
        return PilotReport(mark=request.mark, state=state, engine_id=number, word=word)


def _refuse_too_large(request: PilotRequest) -> None:
    if request.gpus > MOST_GPUS:
        raise EngineRefusal(f"no node has {request.gpus} GPUs")


def _start(request: PilotRequest) -> "subprocess.Popen[bytes]":
    with Path(request.output).open("ab") as output:
        return subprocess.Popen(
            request.command, cwd=request.directory, stdout=output, stderr=output
        )
