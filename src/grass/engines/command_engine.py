"""Any scheduler as an engine, through the commands of a site's template.

The script goes to the input of the command that submits. One command lists the jobs of
the pool; the mark of each stands where the template put it. A list that does not look
like an answer says nothing of any pilot.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grass.engines import filling, pilot_notes
from grass.engines.engine_commands import CommandResult, EngineCommands, previewed
from grass.engines.listing import by_mark
from grass.engines.provider import PilotRequest
from grass.errors import CannotAsk, EngineRefusal
from grass.model.command_templates import (
    CommandTemplate,
    StateWords,
    StatusCommand,
)
from grass.model.pools import PilotReport, PilotState
from grass.model.selectors import compile_pattern

_UNCHECKED = "the template has no [check], so its scheduler was only asked for a list"


class CommandEngine:
    """The scheduler that a template's commands speak to."""

    def __init__(
        self, commands: EngineCommands, template: CommandTemplate, folder: str = ""
    ) -> None:
        """`folder` is where pilots leave notes, if the template lists no jobs."""
        self._commands = commands
        self._template = template
        self._folder = Path(folder)

    def preview(self, request: PilotRequest) -> str:
        """Return the call that submits, and its script."""
        submit = self._template.submit
        words = filling.command_of(submit.command, request)
        return previewed(words, filling.script_of(submit.script, request))

    async def check(self, request: PilotRequest) -> str:
        """Have the scheduler test the script, or at least list its jobs."""
        check = self._template.check
        if check is None:
            await self.poll(request.name, [])
            return _UNCHECKED
        answer = await self._send(check.command, request)
        return " ".join((answer.errors or answer.output).split()) or "accepted"

    async def submit(self, request: PilotRequest) -> str:
        """Submit a pilot."""
        submit = self._template.submit
        answer = await self._send(submit.command, request)
        if self._template.status is None:
            return request.mark
        engine_id = _found(submit.id, answer.output)
        if not engine_id:
            raise CannotAsk(f"`{submit.command[0]}` printed no job id: {answer.words}")
        return engine_id

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        """Read the list of a pool's jobs."""
        status, states = self._template.status, self._template.states
        if status is None or states is None:
            notes = asyncio.to_thread(pilot_notes.reports, self._folder, marks)
            return by_mark(await notes, marks)
        answer = await self._commands.run(*filling.words_with(status.command, name))
        # A site may list the jobs of everybody: reading so many takes its time.
        return await asyncio.to_thread(_listed, status, states, answer, marks)

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        """End jobs; those that ended already are no error."""
        cancel = self._template.cancel
        if cancel is None:
            await asyncio.to_thread(pilot_notes.cancel, self._folder, engine_ids)
            return
        words = filling.words_with(cancel.command, "", engine_ids)
        answer = await self._commands.run(*words)
        if answer.code and not _says(answer, cancel.over):
            raise CannotAsk(answer.words)

    async def _send(
        self, command: Sequence[str], request: PilotRequest
    ) -> CommandResult:
        script = filling.script_of(self._template.submit.script, request)
        words = filling.command_of(command, request)
        answer = await self._commands.run(*words, script=script)
        if answer.code and _says(answer, self._template.submit.no_answer):
            raise CannotAsk(answer.words)
        if answer.code:
            raise EngineRefusal(answer.words)
        return answer


def _listed(
    status: StatusCommand,
    states: StateWords,
    answer: CommandResult,
    marks: Sequence[str],
) -> Mapping[str, PilotReport]:
    if answer.code and not _says(answer, status.empty):
        raise CannotAsk(answer.words)
    if not answer.code and not compile_pattern(status.answer).search(answer.output):
        raise CannotAsk(f"`{status.command[0]}` printed no list: {answer.words}")
    ours = [
        job for job in _jobs(status, answer.output) if _found(status.mark, job) in marks
    ]
    return by_mark(_reports(status, states, ours), marks)


def _reports(
    status: StatusCommand, states: StateWords, jobs: Sequence[str]
) -> Iterator[PilotReport]:
    for job in jobs:
        found = {name: _found(one, job) for name, one in status.patterns().items()}
        word, engine_id = found.pop("state"), found.pop("id")
        if engine_id:
            state = _state(states, word)
            yield PilotReport(engine_id=engine_id, state=state, word=word, **found)


def _state(states: StateWords, word: str) -> PilotState:
    if word in states.ended:
        return PilotState.ENDED
    if word in states.running:
        return PilotState.RUNNING
    return PilotState.PENDING if word in states.pending else PilotState.UNKNOWN


def _jobs(status: StatusCommand, output: str) -> list[str]:
    whole = output.replace(status.unfold, "") if status.unfold else output
    return whole.split(status.split)[1:] if status.split else whole.splitlines()


def _found(pattern: str, text: str) -> str:
    match: Any = compile_pattern(f"(?m:{pattern})").search(text)
    return "" if match is None else (match.group(1) or "").strip()


def _says(answer: CommandResult, parts: Sequence[str]) -> bool:
    return any(part in answer.errors + answer.output for part in parts)
