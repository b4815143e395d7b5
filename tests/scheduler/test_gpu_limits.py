"""How many jobs a GPU may have, and GPUs that are too busy for one more."""

from grass.model.gpu_details import GpuDetails

from .lab import Lab, whole

TWO = "{gpu:2,vram:{'0':80,'1':80}}"
A100S = {"0": GpuDetails("A100"), "1": GpuDetails("A100")}


def test_a_gpu_has_no_more_jobs_than_it_may(lab: Lab) -> None:
    lab.worker("w", TWO)
    lab.scheduler.set_jobs_per_gpu(2)
    jobs = [lab.enqueue("{vram:1}") for _ in range(6)]
    assert list(lab.decide()) == jobs[:4]
    said = "needs vram 1G, free 0 of 160G; gpu 0, 1: at most 2 jobs at a time"
    assert str(lab.explain(5)) == f"{said} (`gpu.jobs`)"
    assert list(lab.release(1)) == [5]
    lab.scheduler.set_jobs_per_gpu(None)
    assert list(lab.decide()) == [6]


def test_a_job_that_held_memory_alone_makes_room_for_a_share(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:[80]}")
    lab.scheduler.set_jobs_per_gpu(1)
    first, share = lab.enqueue("{vram:1}"), lab.enqueue("{gpu:0.5,vram:1}")
    assert list(lab.decide()) == [first]
    assert list(lab.release(first)) == [share]


def test_running_jobs_count_when_a_limit_is_set(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:[80]}")
    lab.start("{vram:1}"), lab.start("{vram:1}")
    lab.scheduler.set_jobs_per_gpu(2)
    job = lab.enqueue("{vram:1}")
    assert lab.decide() == {}
    assert list(lab.release(1)) == [job]
    # One that asks for no GPU is not counted.
    lab.worker("v", "{cpu:4}")
    lab.start("{cpu:1}")


def test_a_busy_gpu_takes_no_job_whose_memory_is_looked_up(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.profile("train.py", A100=10)
    lab.scheduler.set_busy("w", frozenset("0"))
    lab.enqueue("{}", learned="train.py")
    assert lab.decide()[1][1] == {"vram": {"1": whole(10)}}
    lab.scheduler.set_busy("w", frozenset("01"))
    job = lab.enqueue("{}", learned="train.py")
    assert lab.decide() == {}
    said = "waits for a GPU that is not busy; gpu 0, 1: too busy (`gpu.busy`)"
    assert str(lab.explain(job)) == said
    assert lab.start("{vram:10}")["vram"] == {"0": whole(10)}
    lab.scheduler.set_busy("w", frozenset("0"))
    assert lab.decide()[job][1] == {"vram": {"1": whole(10)}}
