"""A GPU of a worker and who is on it, as the worker tells it when it is asked.

All sizes are bytes. What is not known is None, or empty. These values travel over the
link: fields are only added, with a default.
"""

import msgspec


class GpuUser(msgspec.Struct, omit_defaults=True):
    """One process on a GPU."""

    pid: int
    memory: int | None = None
    utilization: int | None = None
    """How busy it keeps the GPU, in percent."""
    user: str = ""
    command: str = ""
    attempt: str = ""
    """The attempt that it belongs to; empty: it is a stranger."""


class GpuUse(msgspec.Struct, omit_defaults=True):
    """One GPU, or one MIG instance of it, at one moment."""

    unit: str
    name: str = ""
    uuid: str = ""
    memory: int = 0
    """What processes can have of it, without the driver's own part."""
    used: int = 0
    utilization: int | None = None
    temperature: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fault: str | None = None
    """Why nothing can run there, in words; None while it works."""
    pids_hidden: bool = False
    """Whether its processes cannot be named from there, as in a container."""
    users: list[GpuUser] = []
    attempts: dict[str, int] = {}
    """What each attempt uses of its memory."""
