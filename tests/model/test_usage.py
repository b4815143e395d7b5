"""What was used at most."""

from hypothesis import given
from hypothesis import strategies as st

from grass.model.usage.attempt_usage import ResourceUse, UnitUse, is_within, most

number = st.none() | st.integers(0, 3)
unit_uses = st.builds(UnitUse, number, number)
uses = st.builds(
    ResourceUse,
    st.integers(0, 3),
    number,
    st.dictionaries(st.sampled_from(["0", "1"]), unit_uses),
    st.sampled_from(["", "by difference"]),
)


@given(uses, uses)
def test_what_is_within_the_most_does_not_raise_it(
    one: ResourceUse, use: ResourceUse
) -> None:
    assert is_within(use, one) == (most([one, use]) == one)
