"""What is given out on one machine."""

from hypothesis import given
from hypothesis import strategies as st

from grass.worker.core.attempt_table import AllocatedUnits

allocations = st.lists(
    st.dictionaries(
        st.sampled_from(["cpu", "gpu"]),
        st.dictionaries(st.sampled_from("01"), st.integers(1, 6), max_size=2),
        max_size=2,
    ),
    max_size=12,
)
CAPACITY = {"cpu": {"0": 10, "1": 10}, "gpu": {"0": 5}}


@given(allocations, st.randoms(use_true_random=False))
def test_no_unit_is_ever_given_out_beyond_its_capacity(
    wanted: list[dict[str, dict[str, int]]], chance: object
) -> None:
    units = AllocatedUnits()
    units.set_capacity(CAPACITY)
    held: list[dict[str, dict[str, int]]] = []
    for allocation in wanted:
        if units.excess(allocation) is None:
            units.allocate(allocation)
            held.append(allocation)
        elif held:
            units.free(held.pop(0))
        for kind in ("cpu", "gpu"):
            for unit in "01":
                total = sum(one.get(kind, {}).get(unit, 0) for one in held)
                assert total <= CAPACITY[kind].get(unit, 0)
    for allocation in held:
        units.free(allocation)
    assert units.excess(CAPACITY) is None


def test_what_is_held_stays_held_when_the_capacity_changes() -> None:
    units = AllocatedUnits()
    units.set_capacity({"cpu": {"0": 10}})
    units.allocate({"cpu": {"0": 8}})
    units.set_capacity({"cpu": {"0": 5}})
    assert units.excess({"cpu": {"0": 1}}) == "cpu 0"
    units.free({"cpu": {"0": 8}})
    assert units.excess({"cpu": {"0": 5}}) is None
