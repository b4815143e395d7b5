"""Holders of ranges of ids, beside a plain list of them."""

from hypothesis import given
from hypothesis import strategies as st

from grass.model.id_runs import merged_runs
from grass.model.range_index import RangeIndex, entries

runs = st.lists(
    st.tuples(st.integers(1, 80), st.integers(0, 40)), min_size=1, max_size=4
).map(lambda pairs: merged_runs((first, first + more) for first, more in pairs))


@given(st.lists(runs, max_size=8), st.sets(st.integers(0, 7)))
def test_the_holders_of_an_id_are_those_whose_ranges_have_it(
    named: list[list[tuple[int, int]]], forgotten: set[int]
) -> None:
    index = RangeIndex()
    for holder, of_holder in enumerate(named):
        index.add(of_holder, holder)
    for holder in forgotten & set(range(len(named))):
        index.discard(named[holder], holder)
    left = {holder: of for holder, of in enumerate(named) if holder not in forgotten}
    for number in range(125):
        holders = [
            holder
            for holder, of_holder in left.items()
            if any(first <= number <= last for first, last in of_holder)
        ]
        assert sorted(index.holders(number)) == holders
        assert (number in index) == bool(holders)
    assert bool(index) == bool(left)


def test_a_long_range_has_few_entries() -> None:
    assert entries([(1, 100_000)]) <= 34
    assert entries([(1, 2**53)]) <= 108
    assert entries([(number, number) for number in range(1, 100, 2)]) == 50
