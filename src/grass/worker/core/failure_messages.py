"""What programs write when a GPU has no memory left for them, or has a fault.

A library says so in its own words, and the program ends with any exit code. So the end
of the output of a program that failed is searched for these words.
"""

import re

TAIL = 64 * 1024
"""How many bytes at the end of an output are searched."""

_NO_MEMORY = re.compile(
    rb"CUDA out of memory|HIP out of memory|CUDA error: out of memory"
    rb"|torch\.(?:cuda\.)?OutOfMemoryError|c10::OutOfMemoryError"
    rb"|RESOURCE_EXHAUSTED: (?:Out of memory|OOM)|OOM when allocating tensor"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
    rb"|hipErrorMemoryAllocation|cudaMalloc failed: out of memory"
    rb"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    rb"|cupy\.cuda\.memory\.OutOfMemoryError"
)
_FAULT = re.compile(
    rb"an illegal (?:memory access|instruction|address) was encountered"
    rb"|unspecified launch failure|misaligned address|hardware stack error"
    rb"|device-side assert triggered|an uncorrectable ECC error"
    rb"|CUDA_ERROR_(?:ILLEGAL|LAUNCH_FAILED|MISALIGNED|HARDWARE|ASSERT|MPS)"
    rb"|cudaError(?:Illegal|LaunchFailure|Misaligned|HardwareStack|Assert|Mps)"
    rb"|MPS (?:client|server|daemon|connection)[^\n]*(?:terminat|fail|not ready)"
)


def tells_of_gpu_fault(tail: bytes) -> bool:
    """Tell whether the end of an output says that a GPU had a fatal fault."""
    return _FAULT.search(tail) is not None


def tells_of_no_gpu_memory(tail: bytes) -> bool:
    """Tell whether the end of an output says that a GPU had no memory left."""
    return _NO_MEMORY.search(tail) is not None
