"""Which GPUs are meant by `0,1`, as CUDA_VISIBLE_DEVICES and `--gpus` are written.

Indices are those of `nvidia-smi`, by PCI bus. A uuid may be shortened as long as it is
unique. A GPU that is divided means all its MIG instances; one of them is meant by its
uuid or the name of its unit, `0.1`.
"""

from collections.abc import Sequence

from grass.devices.readings import GpuUnit
from grass.errors import UsageError

NONE = frozenset({"", "-1", "none", "nodevfiles"})
"""What means no GPU, in lower case; CUDA takes the second and the last so, too."""
_ALL = "all"


def chosen_units(
    text: str, units: Sequence[GpuUnit], *, missing_ok: bool = False
) -> tuple[str, ...]:
    """Return the units that a text means, in their own order.

    Raises UsageError for a word that means none, unless one may be missing.
    """
    if text.strip().lower() in NONE:
        return ()
    if text.strip().lower() == _ALL:
        return tuple(one.unit for one in units)
    chosen: set[str] = set()
    for word in text.split(","):
        meant = _meant(word.strip(), units)
        if not meant and not missing_ok:
            raise UsageError(f"there is no GPU `{word.strip()}`", _there_are(units))
        chosen.update(meant)
    return tuple(one.unit for one in units if one.unit in chosen)


def _meant(word: str, units: Sequence[GpuUnit]) -> list[str]:
    exact = [one.unit for one in units if word in (one.unit, one.uuid, one.device)]
    if exact or not word:
        return exact
    if word.isdecimal():
        number = str(int(word))
        return [one.unit for one in units if one.unit.partition(".")[0] == number]
    return _by_prefix(word, units)


def _by_prefix(word: str, units: Sequence[GpuUnit]) -> list[str]:
    """Return what the beginning of a uuid means; raises UsageError for several."""
    uuids = {uuid for one in units for uuid in (one.uuid, one.device)}
    found = [uuid for uuid in uuids if uuid.lower().startswith(word.lower())]
    if len(found) > 1:
        raise UsageError(
            f"`{word}` is the beginning of {len(found)} uuids", "write more of it"
        )
    return [one.unit for one in units if {one.uuid, one.device}.intersection(found)]


def _there_are(units: Sequence[GpuUnit]) -> str:
    known = ", ".join(f"{one.unit} ({one.uuid})" for one in units)
    return f"there are {known}" if known else "no GPU was found; see `grass doctor`"
