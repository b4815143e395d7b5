"""Calls about attempts that a worker runs and this database knows nothing of."""

from grass.broker.core.calls import Call, Done


class EndForeign(Call[Done]):
    """Stop attempts that a worker runs and this database knows nothing of."""

    actor: str
    worker: str
    """By name or id."""
    attempts: list[str]
    """Their names, or `all`: those of this cluster."""


class KeepForeign(Call[Done]):
    """Let such attempts run to their end, without further reminders."""

    actor: str
    worker: str
    """By name or id."""
    attempts: list[str]
