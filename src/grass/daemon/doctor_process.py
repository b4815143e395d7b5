"""Runs `grass doctor` for those who ask the daemon what is wrong with its machine.

The checks have a process of their own: one may hang on a disk or in a vendor's library,
and their modules would stay in the daemon. One runs at a time, and what it found is
told again for a few seconds, so that callers cannot start any number of them.
"""

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grass
from grass.config import Home
from grass.errors import GrassError, TimedOut
from grass.queries.documents import JsonObject

MOST_S = 30.0
KEPT_S = 5.0
_MAIN = os.path.join(os.path.dirname(os.path.abspath(grass.__file__)), "__main__.py")


class DoctorProcess:
    """The findings of `grass doctor` about this machine."""

    def __init__(self, home: Home) -> None:
        self._environment = {"GRASS_HOME": home.folder}
        self._running = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="doctor")
        self._process: subprocess.Popen[bytes] | None = None
        self._found: tuple[float, JsonObject] = (float("-inf"), {})

    async def findings(self) -> JsonObject:
        """Return what `grass doctor --json` prints."""
        loop = asyncio.get_running_loop()
        async with self._running:
            found_at, found = self._found
            if loop.time() > found_at + KEPT_S:
                found = _read(await self._output())
                self._found = loop.time(), found
        return found

    async def _output(self) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._run)
        except asyncio.CancelledError:
            if self._process is not None:
                self._process.kill()
            raise

    def _run(self) -> bytes:
        command = [sys.executable, "-I", _MAIN, "doctor", "--json"]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, **self._environment},
        ) as process:
            self._process = process
            try:
                return process.communicate(timeout=MOST_S)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise TimedOut(
                    f"`grass doctor` did not end within {MOST_S:g} s",
                    "run it there: its last line is before the check that hangs",
                ) from None


def _read(output: bytes) -> JsonObject:
    try:
        found: JsonObject = json.loads(output)
    except ValueError:
        raise GrassError("`grass doctor` found nothing", "run it there") from None
    return found
