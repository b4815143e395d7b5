"""What a job asked for, was given and uses, thing by thing."""

from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.resources import Allocation, request_from
from grass.queries.usage_documents import usage_rows
from tests.support.building import an_attempt

Numbers = dict[tuple[str, str | None], tuple[float | None, float | None]]


def asked_and_given(request: str, allocation: Allocation) -> Numbers:
    rows = usage_rows(request_from(request), an_attempt(allocation=allocation), None)
    return {(row["what"], row["unit"]): (row["asked"], row["given"]) for row in rows}


def test_each_gpu_has_its_part_of_what_was_asked_for() -> None:
    gpus = {"0": WHOLE, "1": WHOLE}
    memory = {"0": 8 * WHOLE, "1": 12 * WHOLE}
    rows = asked_and_given("{gpu:2, vram:20}", {"gpu": gpus, "vram": memory})
    assert rows["gpu utilization", "0"] == (100, 100)
    assert rows["gpu utilization", "1"] == (100, 100)
    assert rows["gpu memory", "0"] == (8 * GIB, 8 * GIB)
    assert rows["gpu memory", "1"] == (12 * GIB, 12 * GIB)


def test_a_share_of_one_gpu_is_asked_for_as_it_was() -> None:
    rows = asked_and_given(
        "{gpu:0.5}", {"gpu": {"3": WHOLE // 2}, "vram": {"3": 40 * WHOLE}}
    )
    assert rows["gpu utilization", "3"] == (50, 50)
    assert rows["gpu memory", "3"] == (None, 40 * GIB)
