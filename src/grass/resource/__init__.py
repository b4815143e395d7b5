"""Resources as values: what a task asks for, and what it was given.

`Cores(3) & Memory(2)` is three cores and two GiB. A resource has parts, one of each
kind. Kinds that Grass counts (`Cores`, `Memory`, `Gpu`, `Vram`, `Kind`) are placed by
the scheduler. A class of the user's own, with `_request`, `_alloc` and `_dealloc`, is
asked in the program that made it. `WTime` is time, which is not counted at all.

Comparison asks what is affordable: `Node(N=16, M=28) >= Cores(3)`.
"""

from grass.resource.grain_rules import (
    ONE_INSTANCE,
    REJECT,
    Capacity,
    Reject,
    Token,
)
from grass.resource.kinds import (
    CPU,
    Cores,
    Gpu,
    Kind,
    Memory,
    Node,
    Vram,
    capacity_of,
    counted,
    given,
    own_parts,
    part_of,
    request_of,
    resource_from,
)
from grass.resource.parts import ZERO, Resource, combined
from grass.resource.wall_time import WTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.resource.kinds import Asked as Asked

__all__ = [
    "CPU",
    "ONE_INSTANCE",
    "REJECT",
    "ZERO",
    "Capacity",
    "Cores",
    "Gpu",
    "Kind",
    "Memory",
    "Node",
    "Reject",
    "Resource",
    "Token",
    "Vram",
    "WTime",
    "capacity_of",
    "combined",
    "counted",
    "given",
    "own_parts",
    "part_of",
    "request_of",
    "resource_from",
]
