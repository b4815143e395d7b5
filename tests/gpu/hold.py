"""Hold memory of the first GPU that this process sees, until it is killed.

    python hold.py MIB [busy] [fault]

It uses CUDA's driver alone, by ctypes, so it starts at once and needs no torch. With
`busy` it fills the memory again and again, with `fault` it ends with a fault of the
GPU. It prints `holding`, which devices it was given, and how many multiprocessors it
sees. A context takes some hundred MiB beside what is asked for.
"""

import ctypes
import os
import signal
import sys
import time

FAULT = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry fault() {
    .reg .u64 %a;
    .reg .u32 %v;
    mov.u64 %a, 0;
    mov.u32 %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""
MULTIPROCESSORS = 16


def check(code: int) -> None:
    if code:
        name = ctypes.c_char_p()
        ctypes.CDLL("libcuda.so.1").cuGetErrorName(code, ctypes.byref(name))
        raise SystemExit(f"CUDA error {code} {(name.value or b'').decode()}")


def fault(cuda: ctypes.CDLL) -> None:
    """Write to memory that is nobody's."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), FAULT + b"\0"))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fault"))
    one, none = ctypes.c_uint(1), ctypes.c_uint(0)
    size = (one,) * 6
    check(cuda.cuLaunchKernel(kernel, *size, none, None, None, None))
    check(cuda.cuCtxSynchronize())


def multiprocessors(cuda: ctypes.CDLL) -> int:
    found = ctypes.c_int()
    check(cuda.cuDeviceGetAttribute(ctypes.byref(found), MULTIPROCESSORS, 0))
    return found.value


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
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    print("holding", devices, multiprocessors(cuda), flush=True)
    if "fault" in sys.argv:
        fault(cuda)
    while "busy" in sys.argv:
        for value in range(50):
            check(cuda.cuMemsetD8_v2(block, value, ctypes.c_size_t(size)))
        check(cuda.cuCtxSynchronize())
        time.sleep(0.001)
    signal.pause()
