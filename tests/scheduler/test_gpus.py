"""Which GPUs a job gets: models, policies, and those that are near each other."""

from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from grass.model.gpu_details import FAR, GpuDetails
from grass.model.resources import Allocation, request_from
from grass.scheduler.nearness import nearest_first

from .lab import Lab, whole

TWO_SORTS = "{gpu:3,vram:{'0':80,'1':80,'2':15}}"
MODELS = {
    "0": GpuDetails("NVIDIA A100-SXM4-80GB"),
    "1": GpuDetails("NVIDIA A100-SXM4-80GB"),
    "2": GpuDetails("Tesla T4"),
}
QUADS = {"0123": 0, "4567": 0}
"""Eight GPUs in two groups that NVLink connects."""


def eight(
    groups: dict[str, int], apart: int = 3, cores: int = 0
) -> dict[str, GpuDetails]:
    """Describe eight GPUs: those of a group are near, all others are apart."""
    found = {}
    for group, distance in groups.items():
        for unit in group:
            side = frozenset(str(int(group[0]) + core) for core in range(cores))
            to = {other: apart for other in "01234567" if other != unit}
            to |= {other: distance for other in group if other != unit}
            found[unit] = GpuDetails("H100", to, side)
    return found


def on(allocation: Allocation) -> str:
    """Return the GPUs of an allocation."""
    return "".join(sorted(allocation["gpu"]))


def test_only_gpus_of_the_named_model_are_given(lab: Lab) -> None:
    lab.worker("w", TWO_SORTS, gpus=MODELS)
    assert on(lab.start("{gpu:1}", gpu_model="t4")) == "2"
    assert on(lab.start("{gpu:1}", gpu_model="A100|H100")) == "0"
    assert lab.start("{vram:8}", gpu_model="A100") == {"vram": {"1": whole(8)}}


def test_a_job_waits_for_its_model_while_another_is_free(lab: Lab) -> None:
    lab.worker("w", TWO_SORTS, gpus=MODELS)
    first = lab.enqueue("{gpu:1}", gpu_model="T4")
    second = lab.enqueue("{gpu:1}", gpu_model="T4")
    assert list(lab.decide()) == [first]
    assert str(lab.explain(second)) == "needs gpu 1 of model `T4`, free 0 of 1"
    assert lab.explain(second).holders == (first,)
    assert on(lab.start("{gpu:1}")) == "0"
    assert list(lab.release(3)) == []
    assert list(lab.release(first)) == [second]


def test_a_release_of_another_model_does_not_examine_those_that_wait(lab: Lab) -> None:
    lab.worker("w", TWO_SORTS, gpus=MODELS)
    lab.start("{gpu:1}", gpu_model="T4")
    other = lab.enqueue("{gpu:1}", gpu_model="A100")
    lab.decide()
    waiting = lab.enqueue("{gpu:1}", gpu_model="T4")
    lab.decide()
    index = lab.scheduler._dispatch.index
    worker = lab.scheduler._fleet.worker("w")
    lab.scheduler.release(other)
    assert index.best_startable(worker, {"gpu": ["0"]}) is None
    assert lab.decide() == {}
    assert list(lab.release(1)) == [waiting]


def test_a_model_chooses_the_worker(lab: Lab) -> None:
    lab.worker("a", "{gpu:1}", gpus={"0": GpuDetails("Tesla T4")})
    lab.worker("b", "{gpu:1}", gpus={"0": GpuDetails("NVIDIA H100")})
    lab.worker("c", "{gpu:1}")
    job = lab.enqueue("{gpu:1}", gpu_model="h100")
    assert lab.decide()[job][0] == "b"


def test_a_model_that_comes_later_is_found(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    job = lab.enqueue("{gpu:1}", gpu_model="T4")
    assert lab.decide() == {}
    lab.worker("w", "{gpu:1}", gpus={"0": GpuDetails("Tesla T4")})
    assert list(lab.decide()) == [job]


@pytest.mark.parametrize(
    ("request_", "model", "said"),
    [
        (
            "{gpu:1}",
            "V100",
            "no GPU of queue `default` matches `V100`",
        ),
        (
            "{gpu:2}",
            "T4",
            (
                "gpu: asked 2, the most any worker of queue `default` has is 1"
                " that match `T4`"
            ),
        ),
        (
            "{vram:100}",
            None,
            "vram: asked 100G, the largest GPU of queue `default` has 80G",
        ),
        (
            "{vram:40}",
            "T4",
            "vram: asked 40G, the largest GPU that matches `T4` has 15G",
        ),
        (
            "{gpu:1,vram:100}",
            None,
            "vram: asked 100G, the largest GPU of queue `default` has 80G",
        ),
        (
            "{gpu:0.5,vram:100}",
            "a100",
            "vram: asked 100G, the largest GPU that matches `a100` has 80G",
        ),
        ("{gpu:2,vram:100}", None, None),
        ("{gpu:2}", "a100", None),
    ],
)
def test_what_no_gpu_could_meet_is_answered_with_a_list_of_them(
    lab: Lab, request_: str, model: str | None, said: str | None
) -> None:
    lab.worker("w", TWO_SORTS, gpus=MODELS)
    asked = request_from(request_)
    listed = "; there are 2 NVIDIA A100-SXM4-80GB of 80G, 1 Tesla T4 of 15G"
    text = lab.scheduler.never_fits("default", asked, gpu_model=model)
    assert text == (None if said is None else said + listed)


def test_shares_pack_and_memory_alone_spreads(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':80,'1':80}}")
    assert [on(lab.start("{gpu:0.25}")) for _ in range(2)] == ["0", "0"]
    units = [list(lab.start("{vram:4}")["vram"]) for _ in range(3)]
    assert units == [["1"], ["1"], ["1"]]
    lab.worker("v", "{gpu:2,vram:{'0':80,'1':80}}")
    job = lab.enqueue("{vram:4}")
    assert lab.decide()[job][0] == "v"


def test_a_policy_decides_otherwise(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':80,'1':80}}")
    assert [on(lab.start("{gpu:0.25}", policy="spread")) for _ in "ab"] == ["0", "1"]
    packed = [lab.start("{vram:4}", policy="pack")["vram"] for _ in range(3)]
    assert packed == [{"0": whole(4)}] * 3


def test_spreading_takes_the_worker_with_most_free(lab: Lab) -> None:
    lab.worker("a", "{cpu:4}")
    lab.worker("b", "{cpu:4}")
    jobs = [lab.enqueue("{cpu:1}", policy="spread") for _ in range(4)]
    started = lab.decide()
    assert [started[job][0] for job in jobs] == ["a", "b", "a", "b"]


def test_several_gpus_are_those_that_are_nearest(lab: Lab) -> None:
    lab.worker("w", "{gpu:8}", gpus=eight(QUADS))
    lab.start("{gpu:1}")
    assert on(lab.start("{gpu:4}")) == "4567"


def test_the_gpus_left_over_stay_near_each_other(lab: Lab) -> None:
    lab.worker("w", "{gpu:8}", gpus=eight(QUADS))
    lab.scheduler.occupy("a", "w", {"gpu": {"0": whole(1)}})
    lab.scheduler.occupy("b", "w", {"gpu": {"4": whole(1), "5": whole(1)}})
    assert on(lab.start("{gpu:2}")) == "67"
    assert on(lab.start("{gpu:3}")) == "123"


def test_gpus_that_bring_memory_are_near_too(lab: Lab) -> None:
    memory = ",".join(f"'{unit}':80" for unit in range(8))
    lab.worker("w", f"{{gpu:8,vram:{{{memory}}}}}", gpus=eight(QUADS))
    lab.start("{vram:40}", policy="pack")
    assert on(lab.start("{gpu:4}")) == "4567"
    assert on(lab.start("{gpu:2,vram:20}")) == "01"
    assert on(lab.start("{gpu:1.5}")) == "23"


def test_far_gpus_are_better_than_none(lab: Lab) -> None:
    lab.worker("w", "{gpu:8}", gpus=eight(QUADS))
    for unit in "01245":
        lab.scheduler.occupy(unit, "w", {"gpu": {unit: whole(1)}})
    assert on(lab.start("{gpu:3}")) == "367"


def hold(lab: Lab, units: str) -> None:
    for unit in units:
        lab.scheduler.occupy(unit, "w", {"gpu": {unit: whole(1)}})


def test_gpus_that_are_reserved_are_nearest_too() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{gpu:8}", gpus=eight({"05": 0, "14": 0, "27": 0, "36": 0}))
    hold(lab, "01234567")
    large, first, second = map(lab.enqueue, ("{gpu:2}", "{gpu:1}", "{gpu:1}"))
    assert list(lab.release("3")) == [first]
    assert lab.explain(large).reserved_on == "w"
    assert list(lab.release("0")) == [second]
    lab.enqueue("{gpu:1}")
    assert lab.release("6") == {}
    assert on(lab.release(first)[large][1]) == "36"


def test_gpus_that_are_free_are_reserved_before_near_ones() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{gpu:8}", gpus=eight(QUADS))
    hold(lab, "01567")
    large, small = lab.enqueue("{gpu:4}"), lab.enqueue("{gpu:1}")
    assert on(lab.decide()[small][1]) == "2"
    assert lab.release("0") == {}
    assert on(lab.release("1")[large][1]) == "0134"


def test_cores_are_of_the_side_of_the_gpus(lab: Lab) -> None:
    lab.worker("w", "{gpu:8,cpu:8}", gpus=eight(QUADS, cores=4))
    lab.scheduler.occupy("a", "w", {"gpu": {"0": whole(1)}})
    taken = lab.start("{gpu:4,cpu:3}")
    assert (on(taken), "".join(taken["cpu"])) == ("4567", "456")
    assert "".join(lab.start("{cpu:1}")["cpu"]) == "0"
    far = lab.start("{gpu:1,cpu:4}")
    assert (on(far), "".join(sorted(far["cpu"]))) == ("1", "1237")


@settings(max_examples=60)
@given(
    count=st.integers(2, 5),
    units=st.integers(3, 8),
    levels=st.lists(st.integers(0, FAR), min_size=28, max_size=28),
)
def test_no_set_of_gpus_is_nearer_than_the_chosen_one(
    count: int, units: int, levels: list[int]
) -> None:
    names = [str(unit) for unit in range(units)]
    apart = dict(zip(combinations(names, 2), levels, strict=False))
    gpus = {
        one: GpuDetails(
            "x",
            {b if a == one else a: n for (a, b), n in apart.items() if one in (a, b)},
        )
        for one in names
    }
    free = dict.fromkeys(names, whole(1))
    chosen = nearest_first(free, free, count * whole(1), gpus)

    def total(some: tuple[str, ...]) -> int:
        return sum(apart[pair] for pair in combinations(sorted(some), 2))

    least = min(map(total, combinations(names, count)), default=0)
    if count < units:
        assert len(chosen) == count
        assert total(tuple(chosen)) == least
    else:
        assert chosen == {}


def test_of_more_gpus_than_are_combined_a_near_set_is_found_too() -> None:
    names = [str(unit) for unit in range(16)]
    boards = [names[:7], names[7:]]
    gpus = {
        one: GpuDetails("x", {other: 0 for other in board if other != one})
        for board in boards
        for one in board
    }
    free = dict.fromkeys(names, whole(1))
    assert list(nearest_first(free, free, whole(8), gpus)) == names[7:15]
