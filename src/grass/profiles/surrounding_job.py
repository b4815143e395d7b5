"""What a block gets that runs inside a job: units that the job holds already.

They are shared by all that runs there, so nothing is counted or waited for. A block
that asks for more GPUs than the job has, or for a kind that it lacks, is refused.
"""

from __future__ import annotations

import os

from grass.errors import Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Amount = float | str
    Units = dict[str, list[str]]

_GPU_KINDS = ("gpu", "vram")
_SHARED_KINDS = ("cpu", "ram")
_KINDS = _GPU_KINDS + _SHARED_KINDS


def shared(units: Units, wanted: Mapping[str, Amount], job: int | None) -> Units:
    """Return what a job has, where something is taken from it; refuse what it lacks."""
    for kind, amount in wanted.items():
        has, needs = _names(units, kind), _least_units(kind, amount)
        if not units or len(has) >= needs:
            continue
        what = f"{len(has)} of the {needs}" if has else "no"
        rest = f"{kind} that are asked for" if has else kind
        raise Refused(
            f"this runs inside job {job}, which has {what} {rest}",
            "ask for it when that job is enqueued",
        )
    return units


def _names(units: Units, kind: str) -> list[str]:
    """Return the units of a kind; GPUs and their memory are the same devices."""
    same = _GPU_KINDS if kind in _GPU_KINDS else (kind,)
    return next((units[one] for one in same if one in units), [])


def _least_units(kind: str, amount: Amount) -> int:
    """Return how many units an amount takes at least; cores and memory are shared."""
    if kind in _SHARED_KINDS:
        return 0
    try:
        size = float(amount)
    except ValueError:
        if kind == "gpu":
            raise UsageError(f"gpu must be a number, not {amount!r}") from None
        size = 1.0
    return -int(-size // 1) if kind == "gpu" else int(size > 0)


def units_of_job(wanted: Iterable[str]) -> Units:
    """Return what the job has that this process runs in, as its variables say."""
    found: Units = {}
    for kind in (*_KINDS, *wanted):
        name = "".join(one if one.isalnum() else "_" for one in kind.upper())
        names = os.environ.get(f"GRASS_{name}")
        if names:
            found[kind] = names.split(",")
    return found
