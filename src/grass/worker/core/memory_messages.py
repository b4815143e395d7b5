"""What programs write when a GPU has no memory left for them.

A library says so in its own words, and the program ends with any exit code. So the end
of the output of a program that failed is searched for these words.
"""

import re

TAIL = 64 * 1024
"""So many bytes at the end of an output are searched."""

_MESSAGES = re.compile(
    rb"CUDA out of memory|HIP out of memory|CUDA error: out of memory"
    rb"|torch\.(?:cuda\.)?OutOfMemoryError|c10::OutOfMemoryError"
    rb"|RESOURCE_EXHAUSTED: (?:Out of memory|OOM)|OOM when allocating tensor"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
    rb"|hipErrorMemoryAllocation|cudaMalloc failed: out of memory"
    rb"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    rb"|cupy\.cuda\.memory\.OutOfMemoryError"
)


def tells_of_no_gpu_memory(tail: bytes) -> bool:
    """Tell whether the end of an output says that a GPU had no memory left."""
    return _MESSAGES.search(tail) is not None
