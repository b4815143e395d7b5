"""Capacities and requests, as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.amount_text import WHOLE
from grass.model.resources import (
    MOST_UNITS,
    RESERVED_KINDS,
    capacity_from,
    check_name,
    request_from,
    request_json,
    request_text,
    unit_order,
    units_json,
)


def test_a_number_is_that_many_units_of_one() -> None:
    assert capacity_from("{gpu:4}") == {"gpu": dict.fromkeys("0123", WHOLE)}
    assert capacity_from("{gpu:2.0}") == {"gpu": dict.fromkeys("01", WHOLE)}


def test_a_list_is_one_unit_per_entry() -> None:
    assert capacity_from("{ram:[512]}") == {"ram": {"0": 512 * WHOLE}}
    assert capacity_from("{ram:['8G', 16]}") == {
        "ram": {"0": 8 * WHOLE, "1": 16 * WHOLE}
    }


def test_an_object_names_its_units() -> None:
    assert capacity_from("{gpu:{'2':1,'4':0.5}}") == {"gpu": {"2": WHOLE, "4": 5000}}


def test_a_capacity_may_also_come_as_a_document() -> None:
    assert capacity_from({"gpu": 1}) == {"gpu": {"0": WHOLE}}


def test_no_units_at_all_are_a_capacity_too() -> None:
    assert capacity_from("{}") == {}
    assert capacity_from("{gpu:0}") == {"gpu": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{gpu:2.5}", r"whole number of units, not 2.5 \(for one unit of 2.5 write"),
        ("{gpu:-1}", "whole number of units"),
        ("{gpu:true}", "whole number of units"),
        ("{gpu:'4'}", "whole number of units"),
        ("{gpu:null}", "whole number of units"),
        ("{gpu:NaN}", "whole number of units"),
        ("{gpu:Infinity}", "whole number of units"),
        ("{gpu:5000}", "more than 4096"),
        ("{gpu:[0]}", "amount of 0"),
        ("{gpu:{'0':0.00001}}", "amount of 0"),
        ("{gpu:{'0':-1}}", "cannot be negative"),
        ("{gpu:{'a b':1}}", "not a name for a unit"),
        ("{'g pu':1}", "not a resource kind"),
        ("{'1gpu':1}", "not a resource kind"),
        ("{'':1}", "not a resource kind"),
        ("{home:1}", "reserved"),
        ("[4]", "must be an object"),
    ],
)
def test_a_wrong_capacity_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        capacity_from(text)


def test_a_number_too_long_to_print_is_refused_all_the_same() -> None:
    with pytest.raises(UsageError):
        capacity_from("{gpu:0x" + "f" * 6000 + "}")
    with pytest.raises(UsageError):
        request_from("{gpu:0x" + "f" * 6000 + "}")
    with pytest.raises(UsageError):
        capacity_from("{gpu:" + "1" * 5000 + "}")


def test_too_many_named_units_are_refused() -> None:
    with pytest.raises(UsageError, match="4097 units"):
        capacity_from({"gpu": [1] * (MOST_UNITS + 1)})


def test_a_request_is_sorted_and_holds_nothing_that_is_zero() -> None:
    asked = request_from("{ram:'8G', gpu:0.5, cpu:0}")
    assert asked == (("gpu", 5000), ("ram", 8 * WHOLE))
    assert asked == request_from("{gpu:.5, ram:8}")
    assert request_from("{cpu:0}") == ()


def test_names_are_case_sensitive() -> None:
    assert request_from("{GPU:1, gpu:2}") == (("GPU", WHOLE), ("gpu", 2 * WHOLE))


@pytest.mark.parametrize("kind", sorted(RESERVED_KINDS))
def test_reserved_words_are_no_kinds(kind: str) -> None:
    with pytest.raises(UsageError, match="reserved"):
        request_from({kind: 1})


@pytest.mark.parametrize(
    "value", ["{gpu:'8G'}", "{gpu:[1]}", "{gpu:-1}", "{gpu:1e400}"]
)
def test_a_wrong_request_is_refused(value: str) -> None:
    with pytest.raises(UsageError):
        request_from(value)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True).filter(
            lambda kind: kind not in RESERVED_KINDS
        ),
        st.integers(1, 10**9).map(lambda amount: amount / WHOLE),
        max_size=4,
    )
)
def test_a_request_reads_back_from_its_document(given_: dict[str, float]) -> None:
    asked = request_from(given_)
    assert request_from(request_json(asked)) == asked


def test_a_request_is_written_in_words() -> None:
    assert request_text(request_from("{ram:8, gpu:0.5}")) == "gpu 0.5, ram 8G"
    assert units_json({"gpu": {"1": 5000}}) == {"gpu": {"1": 0.5}}


def test_units_sort_as_people_count() -> None:
    names = ["10", "b", "2", "a", "0"]
    assert sorted(names, key=unit_order) == ["0", "2", "10", "a", "b"]


@pytest.mark.parametrize("name", ["q1", "A.b-c_d", "_x", "x" * 128])
def test_good_names_of_queues_pass(name: str) -> None:
    assert check_name(name, "queue") == name


@pytest.mark.parametrize("name", ["", "1q", "a b", "a/b", "é", "q\n", "x" * 129, "-q"])
def test_bad_names_of_queues_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="queue name"):
        check_name(name, "queue")
