"""What libraries are told of a job's share of a GPU, where it is to be enforced.

Only libraries that ask for it keep to it, and only in their own allocator. Variables
that the user has set are left alone.
"""

from collections.abc import Mapping

from grass.model.amounts import bytes_of_amount
from grass.model.resources import Allocation

CONTEXT = 512 * 2**20
"""What a process uses of a GPU beside its allocator, at least on large ones."""
_NEARLY_ALL = 0.98
_TORCH = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
_XLA = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"


def framework_limits(
    allocation: Allocation, memory: Mapping[str, int], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that tell libraries the share; `memory` is of each GPU.

    Of each library the variable that versions without the other one ignore: PyTorch
    before 2.9 refuses what it does not know in its older variable, and JAX refuses both
    of its own at once.
    """
    share = _fraction(allocation.get("vram", {}), memory)
    if share is None or share >= _NEARLY_ALL:
        return {}
    limits = {}
    if not any(name in environment for name in _TORCH):
        limits[_TORCH[0]] = f"per_process_memory_fraction:{share:.4f}"
    if not any(name in environment for name in _XLA):
        limits[_XLA[0]] = f"{share:.4f}"
    return limits


def _fraction(reserved: Mapping[str, int], memory: Mapping[str, int]) -> float | None:
    """Return the least part of a GPU's memory that an allocator may have."""
    parts = [
        _without_context(amount) / bytes_of_amount(memory[unit])
        for unit, amount in reserved.items()
        if memory.get(unit)
    ]
    return min(parts, default=None)


def _without_context(amount: int) -> int:
    size = bytes_of_amount(amount)
    return max(size - CONTEXT, size // 2)
