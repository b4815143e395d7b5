"""Runs the programs of an engine, each with a time limit.

A program that does not end in time is killed with all that it started in its process
group, and its answer is unknown. With a prefix such as `ssh login1` the words travel
through a remote shell, so they are quoted for it.
"""

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from grass.errors import CannotAsk

DEFAULT_LIMIT_S = 30.0
_MOST_WORDS = 500
"""In characters: how much of what a program prints goes into a message."""
MOST_OUTPUT = 64 << 20
_NO_ANSWER = frozenset({124, 137, 255})
"""Codes behind `ssh`: `timeout` ended it, a signal killed it, its connection failed."""


class CommandResult(NamedTuple):
    """What a program printed, and how it ended."""

    code: int
    output: str
    errors: str

    @property
    def words(self) -> str:
        """What it said went wrong, as one line."""
        said = _one_line(self.errors) or _one_line(self.output)
        return (said or f"it exited with {self.code}")[:_MOST_WORDS]


class EngineCommands:
    """How the programs of one engine are run."""

    def __init__(
        self,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        limit_s: float = DEFAULT_LIMIT_S,
    ) -> None:
        self._prefix = tuple(prefix)
        self._environment = os.environ if environment is None else environment
        self._limit_s = limit_s

    async def run(
        self,
        *words: str,
        script: str = "",
        has_variable: Callable[[str], bool] = lambda _: True,
    ) -> CommandResult:
        """Run a program with a script as its input; raises CannotAsk.

        `has_variable` chooses by name which variables it has.

        Its end is waited for, not that of its output: it may leave a process that
        holds that open, as `ssh` does that keeps a connection for later. A pipe as its
        input would be closed by a program that ends before all was written to it.
        """
        files = [os.memfd_create(name) for name in ("input", "output", "errors")]
        try:
            os.write(files[0], script.encode())
            os.lseek(files[0], 0, os.SEEK_SET)
            environment = {
                name: value
                for name, value in self._environment.items()
                if has_variable(name)
            }
            code = await self._code(words, files, environment)
            if os.fstat(files[1]).st_size > MOST_OUTPUT:
                # Of a list, what comes later would count as absent.
                raise CannotAsk(f"`{words[0]}` printed more than {MOST_OUTPUT} bytes")
            answer = CommandResult(code, _text(files[1]), _text(files[2]))
        finally:
            for file in files:
                os.close(file)
        if self._broke_off(answer):
            raise CannotAsk(answer.words)
        return answer

    async def _code(
        self,
        words: Sequence[str],
        files: Sequence[int],
        environment: Mapping[str, str],
    ) -> int:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words(words),
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            program = self._words(words)[0]
            raise CannotAsk(
                f"`{program}` cannot be run on this host: {error.strerror}",
                "run the broker where it is installed, or give --submit-prefix",
            ) from None
        try:
            async with asyncio.timeout(self._limit_s):
                return await process.wait()
        except TimeoutError:
            told = _one_line(_text(files[2]))[:_MOST_WORDS]
            text = f"`{words[0]}` did not answer within {self._limit_s:g} s"
            raise CannotAsk(": ".join(filter(None, (text, told)))) from None
        finally:
            await _end(process)

    def _broke_off(self, answer: CommandResult) -> bool:
        """Tell whether a program ended without saying what it did.

        A signal killed it, or the connection of `ssh` failed, or took too long.
        """
        return answer.code < 0 or (answer.code in _NO_ANSWER and self._is_remote)

    @property
    def _is_remote(self) -> bool:
        """Whether `ssh` is among the words, as in `timeout 20 ssh login1`."""
        return any(os.path.basename(word) == "ssh" for word in self._prefix)

    def _words(self, words: Sequence[str]) -> tuple[str, ...]:
        if not self._prefix:
            return tuple(words)
        if self._is_remote:
            return (*self._prefix, shlex.join(words))
        return (*self._prefix, *words)


def previewed(words: Sequence[str], script: str) -> str:
    """Return a script, with the command that it is given to as a comment on top."""
    first, newline, rest = script.partition("\n")
    comment = f"# {shlex.join(words)}"
    return f"{first}{newline}{comment}\n{rest}"


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _text(file: int) -> str:
    return os.pread(file, MOST_OUTPUT, 0).decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a program that still runs, and what it started."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
