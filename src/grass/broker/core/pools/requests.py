"""Calls about pools: of users, and of the shell that asks engines."""

from grass.broker.core.calls import Call, Done, Enqueue
from grass.model.pools import PilotReport, PilotSize, Pool


class AddPool(Call[Done]):
    """Add a pool, whose engine was asked before whether it would take its pilots."""

    actor: str
    pool: Pool


class SetPoolPaused(Call[Done]):
    """Ask for no more pilots of a pool, or again, with its refusals forgotten."""

    actor: str
    name: str
    paused: bool


class RemovePool(Call[Done]):
    """Have the pilots of a pool leave, and forget it with the last of them."""

    actor: str
    name: str


class AskForPilots(Call[Done]):
    """Ask the engine of a pool for workers now, whether or not a job waits."""

    actor: str
    name: str
    count: int


class LeavePilot(Call[Done]):
    """Have a pilot leave once its jobs have ended."""

    actor: str
    name: str
    """Its worker's name or id, its id in the engine, or its mark."""


class PilotSizes(Call[list[tuple[str, PilotSize]]]):
    """Which pilots would be asked for, by pool, for the jobs of a call alone."""

    enqueue: Enqueue


class PilotSubmitted(Call[None]):
    """An engine has taken a pilot."""

    pool: str
    mark: str
    engine_id: str


class PilotRefused(Call[None]):
    """An engine has said no, or has not answered; then it may have taken it."""

    mark: str
    words: str
    answered: bool


class PilotsNotListed(Call[None]):
    """The engine of a pool could not be asked about its pilots."""

    pool: str
    words: str
    again_s: float
    """After how long it is asked again."""


class PilotsListed(Call[None]):
    """An engine has told of all these pilots."""

    reports: list[PilotReport]
