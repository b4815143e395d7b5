"""What is given out on one machine."""

from hypothesis import given
from hypothesis import strategies as st

from grass.worker.core.unit_ledger import Ledger

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
    ledger = Ledger()
    ledger.set_capacity(CAPACITY)
    held: list[dict[str, dict[str, int]]] = []
    for allocation in wanted:
        if ledger.excess(allocation) is None:
            ledger.hold(allocation)
            held.append(allocation)
        elif held:
            ledger.release(held.pop(0))
        for kind in ("cpu", "gpu"):
            for unit in "01":
                total = sum(one.get(kind, {}).get(unit, 0) for one in held)
                assert total <= CAPACITY[kind].get(unit, 0)
    for allocation in held:
        ledger.release(allocation)
    assert ledger.excess(CAPACITY) is None


def test_what_is_held_stays_held_when_the_capacity_changes() -> None:
    ledger = Ledger()
    ledger.set_capacity({"cpu": {"0": 10}})
    ledger.hold({"cpu": {"0": 8}})
    ledger.set_capacity({"cpu": {"0": 5}})
    assert ledger.excess({"cpu": {"0": 1}}) == "cpu 0"
    ledger.release({"cpu": {"0": 8}})
    assert ledger.excess({"cpu": {"0": 5}}) is None
