"""What a worker tells of its GPUs when it is asked."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from grass.devices.readings import GpuProcess, GpuReading
from grass.link.messages import Devices, ReadDevices
from grass.worker.core.usage.samples import AttemptUse, Sample
from grass.worker.shell.device_reader import DeviceReader

GIB = 2**30
JOB = f"{'a' * 16}.7.1"


def reading(*processes: GpuProcess, used: int = 0, hidden: bool = False) -> GpuReading:
    return GpuReading(
        unit="0",
        name="card",
        uuid="GPU-0",
        memory=80 * GIB,
        used=used,
        utilization=5,
        temperature=40,
        power_w=100.0,
        power_limit_w=700.0,
        processes=processes,
        fault=None,
        pids_hidden=hidden,
    )


def told(sample: Callable[[], Awaitable[Sample]]) -> list[Devices]:
    """Ask once; return the answers."""

    async def story() -> list[Devices]:
        answers: list[Devices] = []
        async with asyncio.TaskGroup() as group:
            DeviceReader(sample, answers.append, group.create_task).read(ReadDevices(3))
        return answers

    return asyncio.run(story())


def told_of(gpu: GpuReading, uses: dict[str, AttemptUse]) -> Devices:
    async def sample() -> Sample:
        return Sample(1.0, (gpu,), uses)

    (answer,) = told(sample)
    return answer


def test_a_process_belongs_to_the_attempt_that_the_sampler_found() -> None:
    """As that of a guest, which has no marker."""
    own, other = os.getpid(), os.getppid()
    gpu = reading(GpuProcess(own, 4 * GIB, 50), GpuProcess(other, GIB), used=5 * GIB)
    use = AttemptUse(frozenset({own}), 0, 0.0, {"0": 4 * GIB})
    answer = told_of(gpu, {JOB: use})
    assert answer.number == 3
    (told_gpu,) = answer.gpus
    assert told_gpu.memory == 80 * GIB
    assert told_gpu.attempts == {JOB: 4 * GIB}
    assert [one.attempt for one in told_gpu.users] == [JOB, ""]
    assert told_gpu.users[0].utilization == 50
    assert all(one.user and one.command for one in told_gpu.users)


def test_without_pids_what_an_attempt_uses_is_known_by_difference() -> None:
    gpu = reading(used=9 * GIB, hidden=True)
    (told_gpu,) = told_of(gpu, {JOB: AttemptUse(frozenset(), 0, 0.0, {"0": GIB})}).gpus
    assert told_gpu.pids_hidden
    assert (told_gpu.attempts, told_gpu.users) == ({JOB: GIB}, [])


def test_a_process_that_has_ended_has_no_name() -> None:
    gone = GpuProcess(2**22 + 1, GIB)
    (told_gpu,) = told_of(reading(gone, used=GIB), {}).gpus
    (user,) = told_gpu.users
    assert (user.pid, user.user, user.command) == (gone.pid, "", "")


def test_a_look_that_fails_leaves_the_worker_alone() -> None:
    async def sample() -> Sample:
        raise ValueError

    assert told(sample) == []
