"""Hold memory of the first GPU that this process sees, until it is killed.

    python hold.py MIB [busy]

It uses CUDA's driver alone, by ctypes, so it starts at once and needs no torch. With
`busy` it fills the memory again and again. It prints `holding` and which devices it was
given. A context takes some hundred MiB beside what is asked for.
"""

import ctypes
import os
import signal
import sys
import time


def check(code: int) -> None:
    if code:
        raise SystemExit(f"CUDA error {code}")


def hold(size: int) -> tuple[ctypes.CDLL, ctypes.c_uint64]:
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    block = ctypes.c_uint64()
    check(cuda.cuInit(0))
    check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)))
    check(cuda.cuMemsetD8_v2(block, 1, ctypes.c_size_t(size)))
    check(cuda.cuCtxSynchronize())
    return cuda, block


if __name__ == "__main__":
    size = int(sys.argv[1]) << 20
    cuda, block = hold(size)
    print("holding", os.environ.get("CUDA_VISIBLE_DEVICES", "all"), flush=True)
    while "busy" in sys.argv:
        for value in range(50):
            check(cuda.cuMemsetD8_v2(block, value, ctypes.c_size_t(size)))
        check(cuda.cuCtxSynchronize())
        time.sleep(0.001)
    signal.pause()
