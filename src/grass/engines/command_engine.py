"""Any scheduler as an engine, through the commands of a site's template.

The script goes to the input of the command that submits. One command lists the jobs of
the pool; the mark of each stands where the template put it. A list that does not look
like an answer says nothing of any pilot.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grass.engines import filling
from grass.engines.engine_commands import Answer, EngineCommands, previewed
from grass.engines.listing import by_mark
from grass.engines.provider import PilotRequest
from grass.errors import CannotAsk, EngineRefusal
from grass.model.command_templates import CommandTemplate, StatusCommand
from grass.model.pools import PilotReport, PilotState
from grass.model.selectors import compile_pattern

_UNCHECKED = "the template has no [check], so its scheduler was only asked for a list"


class CommandEngine:
    """The scheduler that a template's commands speak to."""

    def __init__(self, commands: EngineCommands, template: CommandTemplate) -> None:
        self._commands = commands
        self._template = template

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
        engine_id = _found(submit.id, answer.output)
        if not engine_id:
            raise CannotAsk(f"`{submit.command[0]}` printed no job id: {answer.words}")
        return engine_id

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        """Read the list of a pool's jobs."""
        status = self._template.status
        answer = await self._commands.run(*filling.words_with(status.command, name))
        if answer.code and not _says(answer, status.empty):
            raise CannotAsk(answer.words)
        if not answer.code and not compile_pattern(status.answer).search(answer.output):
            raise CannotAsk(f"`{status.command[0]}` printed no list: {answer.words}")
        return by_mark(self._reports(answer.output), marks)

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        """End jobs; those that ended already are no error."""
        cancel = self._template.cancel
        words = filling.words_with(cancel.command, "", engine_ids)
        answer = await self._commands.run(*words)
        if answer.code and not _says(answer, cancel.over):
            raise CannotAsk(answer.words)

    async def _send(self, command: Sequence[str], request: PilotRequest) -> Answer:
        script = filling.script_of(self._template.submit.script, request)
        words = filling.command_of(command, request)
        answer = await self._commands.run(*words, script=script)
        if answer.code and _says(answer, self._template.submit.no_answer):
            raise CannotAsk(answer.words)
        if answer.code:
            raise EngineRefusal(answer.words)
        return answer

    def _reports(self, output: str) -> Iterator[PilotReport]:
        for job in _jobs(self._template.status, output):
            found = {
                name: _found(pattern, job)
                for name, pattern in self._template.status.patterns().items()
            }
            word = found.pop("state")
            if found["id"] and found["mark"]:
                engine_id = found.pop("id")
                state = self._state(word)
                yield PilotReport(engine_id=engine_id, state=state, word=word, **found)

    def _state(self, word: str) -> PilotState:
        states = self._template.states
        if word in states.ended:
            return PilotState.ENDED
        if word in states.running:
            return PilotState.RUNNING
        return PilotState.PENDING if word in states.pending else PilotState.UNKNOWN


def _jobs(status: StatusCommand, output: str) -> list[str]:
    if not status.split:
        return output.splitlines()
    # PBS breaks long lines, and begins what follows with a tab.
    return output.replace("\n\t", "").split(status.split)[1:]


def _found(pattern: str, text: str) -> str:
    match: Any = compile_pattern(f"(?m:{pattern})").search(text)
    return "" if match is None else (match.group(1) or "").strip()


def _says(answer: Answer, parts: Sequence[str]) -> bool:
    return any(part in answer.errors + answer.output for part in parts)
