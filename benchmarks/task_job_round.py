"""One round of functions as jobs in a fresh process: `task_job_round.py NAME COUNT`.

The daemon of `GRASS_HOME` runs already, and its processes are warm before the clock
runs. Prints one figure.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import grass

MEGABYTES = 100
LOCAL = "local"


def nothing(*_: object) -> None:
    pass


def echo(array: Any) -> Any:
    return array


def durable(count: int) -> float:
    grass.map(nothing, range(200), broker=LOCAL).results()
    began = time.perf_counter()
    grass.map(nothing, range(count), broker=LOCAL).results()
    return count / (time.perf_counter() - began)


def one_after_another(count: int) -> float:
    grass.enqueue(nothing, broker=LOCAL).result()
    began = time.perf_counter()
    for _ in range(count):
        grass.enqueue(nothing, broker=LOCAL).result()
    return (time.perf_counter() - began) / count * 1000


def commands(count: int) -> float:
    from grass.client.client import Client

    with Client(broker=LOCAL) as client:
        client.wait([str(client.enqueue(["true"]))])
        began = time.perf_counter()
        for _ in range(count):
            client.wait([str(client.enqueue(["true"]))])
        return (time.perf_counter() - began) / count * 1000


def array(count: int) -> float:
    import numpy as np

    given = np.ones(MEGABYTES << 17)
    grass.enqueue(nothing, broker=LOCAL).result()
    began = time.perf_counter()
    for number in range(count):
        given[0] = number  # Bytes that the broker has already are not sent again.
        back = grass.enqueue(echo, given, broker=LOCAL).result()
        assert (back[0], back[-1]) == (number, 1)
    return count / (time.perf_counter() - began)


def warm(_count: int) -> float:
    grass.enqueue(nothing, broker=LOCAL).result()
    return 0.0


ROUNDS: dict[str, Callable[[int], float]] = {
    "durable": durable,
    "one-after-another": one_after_another,
    "commands": commands,
    "array": array,
    "warm": warm,
}

if __name__ == "__main__":
    print("figure", ROUNDS[sys.argv[1]](int(sys.argv[2])), flush=True)
