"""One round of tasks in a fresh process: `task_round.py CONTENDER COUNT`.

Prints one figure. Processes are started before the clock runs, for everybody.
"""

import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

MEGABYTES = 100


def nothing() -> None:
    pass


async def nothing_async() -> None:
    pass


def echo(array: Any) -> Any:
    return array


def grass_async(count: int) -> float:
    import grass

    async def main() -> float:
        began = time.perf_counter()
        async with grass.open_waitgroup() as wg:
            for _ in range(count):
                wg.submit(grass.Memory(0.001), nothing_async)
        return count / (time.perf_counter() - began)

    return float(grass.run_combine(main, [], grass.Memory(1), backend="asyncio"))


def grain_async(count: int) -> float:
    from grain.combine import open_waitgroup, run
    from grain.resource import Memory

    took: list[float] = []

    async def main() -> None:
        began = time.perf_counter()
        async with open_waitgroup() as wg:
            for _ in range(count):
                wg.submit(Memory(0.001), nothing_async)
        took.append(time.perf_counter() - began)

    run(main, [], Memory(1), config_file=False)
    return count / took[0]


def grass_sync(count: int) -> float:
    import grass

    async def submit(many: int) -> None:
        async with grass.open_waitgroup() as wg:
            for _ in range(many):
                wg.submit(grass.Cores(1), nothing)

    async def main() -> float:
        await submit(2)
        began = time.perf_counter()
        await submit(count)
        return count / (time.perf_counter() - began)

    return float(grass.run_combine(main, [], grass.Cores(2), backend="asyncio"))


def pool_sync(count: int) -> float:
    with ProcessPoolExecutor(2) as pool:
        for one in [pool.submit(nothing) for _ in range(2)]:
            one.result()
        began = time.perf_counter()
        for one in [pool.submit(nothing) for _ in range(count)]:
            one.result()
        return count / (time.perf_counter() - began)


def ray_sync(count: int) -> float:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    remote = ray.remote(nothing)
    ray.get([remote.remote() for _ in range(2)])
    began = time.perf_counter()
    ray.get([remote.remote() for _ in range(count)])
    return count / (time.perf_counter() - began)


def dask_sync(count: int) -> float:
    from dask.distributed import Client, LocalCluster

    def one(_number: int) -> None:
        pass

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.gather(client.map(one, range(2), pure=False))
        began = time.perf_counter()
        client.gather(client.map(one, range(count), pure=False))
        return count / (time.perf_counter() - began)


def grass_array(count: int) -> float:
    import numpy as np

    import grass

    async def main() -> float:
        array = np.ones(MEGABYTES << 17)
        await grass.exec1(grass.Cores(1), nothing)
        began = time.perf_counter()
        for _ in range(count):
            back = await grass.exec1(grass.Cores(1), echo, array)
            assert back[-1] == 1
        return count / (time.perf_counter() - began)

    return float(grass.run_combine(main, [], grass.Cores(2), backend="asyncio"))


def pool_array(count: int) -> float:
    import numpy as np

    array = np.ones(MEGABYTES << 17)
    with ProcessPoolExecutor(2) as pool:
        pool.submit(nothing).result()
        began = time.perf_counter()
        for _ in range(count):
            assert pool.submit(echo, array).result()[-1] == 1
        return count / (time.perf_counter() - began)


def grass_pending(count: int) -> float:
    import grass

    size = 0.0

    async def main() -> None:
        nonlocal size
        async with grass.open_waitgroup() as wg:
            held = asyncio.Event()
            wg.submit(grass.Cores(1), held.wait)
            await asyncio.sleep(0)
            gc.collect()
            tracemalloc.start()
            for _ in range(count):
                wg.submit(grass.Cores(1), nothing_async)
            for _ in range(3):
                await asyncio.sleep(0)
            size = tracemalloc.get_traced_memory()[0] / count
            tracemalloc.stop()
            held.set()

    grass.run_combine(main, [], grass.Cores(1), backend="asyncio")
    return size


CONTENDERS: dict[str, Callable[[int], float]] = {
    "grass-async": grass_async,
    "grain-async": grain_async,
    "grass-sync": grass_sync,
    "pool-sync": pool_sync,
    "ray-sync": ray_sync,
    "dask-sync": dask_sync,
    "grass-array": grass_array,
    "pool-array": pool_array,
    "grass-pending": grass_pending,
}

if __name__ == "__main__":
    print("figure", CONTENDERS[sys.argv[1]](int(sys.argv[2])), flush=True)
