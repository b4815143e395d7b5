"""What every engine can do for a pool: `check`, `submit`, `poll` and `cancel`.

`preview` shows what a submit would send, and asks nobody.

A provider keeps no state and decides nothing. Each call ends within the time limit that
the provider was made with, or raises `CannotAsk`. Three outcomes are kept apart:

- The engine said no: `EngineRefusal`, with the engine's own words. Nothing was
  submitted.
- The engine could not be asked, or did not answer: `CannotAsk`. A submit that ended so
  may have been accepted all the same; `poll` finds it by its mark. It never means that
  a pilot is gone.
- The engine answered.

A mark is random and is made before the submit. The engine keeps it with the job, so
that a broker which was killed before it noted the job's id finds the job again.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from grass.model.pools import PilotReport


class PilotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is asked to start: one job that runs one worker."""

    mark: str
    name: str
    """What users of the engine see it as; the pilots of one pool share it."""
    command: tuple[str, ...]
    """The words that the job runs; never a secret."""
    directory: str
    """Where it runs, and where its output goes."""
    output: str
    """The file of its output."""
    time_limit_s: float
    cpus: int = 1
    memory_mib: int | None = None
    gpus: int = 0
    options: tuple[str, ...] = ()
    """Options of the site's own, as the engine takes them; they win."""
    setup: tuple[str, ...] = ()
    """Shell lines that run before the command: modules, a container's setup."""
    login: bool = True
    """It has the variables of a login on its host; otherwise a few of the broker's."""


class Provider(Protocol):
    """One engine, as one pool uses it."""

    def preview(self, request: PilotRequest) -> str:
        """Return what `submit` would hand to the engine, as a person reads it."""

    async def check(self, request: PilotRequest) -> str:
        """Ask whether the engine would take a request; return what it says.

        Nothing is submitted. Raises EngineRefusal or CannotAsk.
        """

    async def submit(self, request: PilotRequest) -> str:
        """Submit a pilot; return its id. Raises EngineRefusal or CannotAsk."""

    async def poll(self, name: str, marks: Sequence[str]) -> Mapping[str, PilotReport]:
        """Report every one of these marks, of pilots with this name.

        Raises CannotAsk.
        """

    async def cancel(self, engine_ids: Sequence[str]) -> None:
        """End these jobs; one that has ended is no error. Raises CannotAsk."""
