"""How a program ended, in words: signals by name, and what exit codes tell."""

OUT_OF_MEMORY = "out of memory?"
"""A SIGKILL that grass did not send most often came from the kernel."""

# Causes of failures that others act on.
OUT_OF_GPU_MEMORY = "out-of-gpu-memory"
OUT_OF_HOST_MEMORY = "out-of-memory"
GPU_FAULT = "gpu-fault"

_FROM_SIGNAL = 128
_SIGKILL, _SIGTERM = 9, 15
_CODES = {
    126: "a program was found, but could not be executed",
    127: "a command was not found",
}
_ACCIDENTS = {4: "illegal instruction", 6: "abort", 7: "bus error", 8: "arithmetic"}
_ACCIDENTS[11] = "segmentation fault"


def signal_name(number: int) -> str:
    """Return a signal's name: `SIGKILL`, or `signal 40` where it has none."""
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def killed(signal: int, *, by_grass: bool) -> str:
    """Say which signal ended a program: `killed by SIGKILL (out of memory?)`."""
    hint = "" if by_grass else _cause(signal)
    return f"killed by {signal_name(signal)}{f' ({hint})' if hint else ''}"


def exit_meaning(code: int) -> str:
    """Say what an exit code tells by the custom of shells; empty: nothing."""
    if code in _CODES:
        return _CODES[code]
    signal = code - _FROM_SIGNAL
    if signal in (_SIGTERM, _SIGKILL, *_ACCIDENTS):
        return f"a program in it was {killed(signal, by_grass=False)}"
    return ""


def _cause(signal: int) -> str:
    return OUT_OF_MEMORY if signal == _SIGKILL else _ACCIDENTS.get(signal, "")
