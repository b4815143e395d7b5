"""Input for jobs on this machine: each piece is passed to the host of its attempt.

Nothing is kept here, so a daemon that is killed loses nothing: the sender repeats what
was not answered, and the host knows what it has taken.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable

from grass.keeper.input_pieces import ANSWER_S, LARGEST_PIECE, Piece, Taken
from grass.link.messages import InputTaken, WriteInput
from grass.worker.core.prepare import input_socket
from grass.worker.shell.output_ends import CreateTask

PATIENCE_S = ANSWER_S + 5.0
RETRY_S = 0.01
"""A host that has just been started does not listen yet."""


def remove_socket(folder: str, attempt: str) -> None:
    """Remove what a host has left that was killed."""
    with contextlib.suppress(OSError):
        os.unlink(input_socket(folder, attempt))


class JobInputs:
    """Answers the broker's messages about input."""

    def __init__(
        self,
        folder: str,
        is_running: Callable[[str], bool],
        answer: Callable[[InputTaken], None],
        begin: CreateTask,
    ) -> None:
        """`folder` has the sockets."""
        self._folder = folder
        self._is_running = is_running
        self._answer = answer
        self._begin = begin

    def write(self, message: WriteInput) -> None:
        """Pass a piece on, and answer when the host has."""
        self._begin(self._write(message))

    async def _write(self, message: WriteInput) -> None:
        if len(message.data) > LARGEST_PIECE:
            self._say(message, problem="too much input at once")
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                taken = await self._taken(message)
        except TimeoutError:
            self._say(message, problem="the job's host does not answer")
        except (OSError, ValueError) as error:
            self._say(message, problem=str(error))
        else:
            self._answer(InputTaken(message.stream, taken.offset, taken.closed))

    def _say(self, message: WriteInput, problem: str) -> None:
        self._answer(InputTaken(message.stream, message.offset, problem=problem))

    async def _taken(self, message: WriteInput) -> Taken:
        """Ask the host, again while it is not there; an ended attempt takes nothing."""
        while self._is_running(message.attempt):
            with contextlib.suppress(FileNotFoundError, ConnectionError):
                return await self._asked(message)
            await asyncio.sleep(RETRY_S)
        return Taken(message.offset, closed=True)

    async def _asked(self, message: WriteInput) -> Taken:
        reader, writer = await connected_to(self._folder, message.attempt)
        piece = Piece(
            message.sender,
            message.offset,
            len(message.data),
            message.end,
            message.window,
        )
        try:
            writer.write(piece.header() + message.data)
            line = await reader.readline()
        finally:
            writer.close()
        if not line:
            raise ConnectionResetError("the host has ended")
        return Taken(*json.loads(line))


async def connected_to(
    folder: str, attempt: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the socket of an attempt, however long its path is."""
    folder, name = os.path.split(input_socket(folder, attempt))
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        path = f"/proc/self/fd/{descriptor}/{name}"
        return await asyncio.open_unix_connection(path)
    finally:
        os.close(descriptor)
