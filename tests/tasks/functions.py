"""Functions that run in children; what they import is imported there."""

import atexit
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

from grass import GVAR, exec1
from grass.errors import UsageError


class Critical(Exception):
    pass


class Temporary(Exception):
    pass


class Picky(Exception):
    """One that cannot be made of its arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")
        self.second = second


def add(first: int, second: int = 0) -> int:
    return first + second


def pid() -> int:
    return os.getpid()


def held() -> str:
    return repr(GVAR.res)


def cores() -> set[int]:
    return os.sched_getaffinity(0)


def devices() -> tuple[str, str]:
    return os.environ["CUDA_VISIBLE_DEVICES"], GVAR.instance


def fail() -> None:
    raise Critical("as told")


def fail_pickily() -> None:
    raise Picky(1, 2)


def fail_with_a_lock() -> None:
    error = Critical("as told")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


def fail_as_a_group() -> None:
    held = Critical("held")
    held.lock = threading.Lock()  # type: ignore[attr-defined]
    raise ExceptionGroup("both", [Picky(1, 2), ExceptionGroup("inner", [held])])


class Mute(Exception):
    """One that cannot say anything."""

    def __str__(self) -> str:
        raise ValueError


def fail_mutely() -> None:
    raise Mute


def leave() -> None:
    raise SystemExit(3)


def count(path: str) -> int:
    """Add a line to a file; return how many it has."""
    with open(path, "a+") as file:
        file.write("x\n")
        file.seek(0)
        return len(file.readlines())


def fail_twice(path: str) -> int:
    tries = count(path)
    if tries < 3:
        raise Temporary
    return tries


def die(path: str, times: int) -> int:
    tries = count(path)
    if tries <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return tries


def wait_for_ever(path: str) -> None:
    """Say that it runs, as the process that it is; then wait."""
    part = Path(f"{path}.{os.getpid()}")
    part.write_text(str(os.getpid()))
    part.rename(path)
    time.sleep(600)


def wait_once(path: str) -> None:
    """Wait for ever, but for the first one that comes."""
    if count(path) == 1:
        time.sleep(600)


def touch_at_exit(path: str) -> None:
    atexit.register(Path(path).touch)


def asked_inside() -> str:
    """Return what is said of `exec1` in a child."""
    coroutine = exec1(None, add)  # type: ignore[arg-type]
    try:
        coroutine.send(None)
    except UsageError as error:
        return str(error)
    raise AssertionError("not refused")


class Block:
    """Bytes that are pickled out of band."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return Block, (pickle.PickleBuffer(self.content),)


def grown(block: Block) -> tuple[int, Block]:
    view = memoryview(block.content)
    content = bytearray(view)
    content[0] = content[0] + 1
    return len(view), Block(content)


def swapped(argument: Any, size: int) -> tuple[int, Any]:
    """Return the length of an argument, and a value of its kind of another length."""
    if isinstance(argument, Block):
        return memoryview(argument.content).nbytes, Block(bytearray(size))
    filling = "x" if isinstance(argument, str) else b"x"
    return len(argument), type(argument)(filling * size)


def closure_of(number: int) -> Any:
    return lambda more: number + more
