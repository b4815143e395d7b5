"""Text that people type: read, or refused in words; never anything else."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.parsing.job_options import moment
from grass.errors import GrassError, UsageError
from grass.model import durations, field_readers, json5, selectors
from grass.model.amount_text import decimal_text
from grass.model.amounts import (
    LARGEST,
    capacity_amount,
    request_amount,
    size_bytes,
)
from grass.model.jobs import arrays, dependencies, placeholders
from grass.model.jobs.commands import safe_file_name
from grass.model.jobs.default_names import default_name
from grass.model.resources import (
    MOST_UNITS,
    capacity_from,
    request_from,
    request_json,
    units_json,
)
from grass.model.times import rfc3339
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import any_text, texts, values

CAPACITIES = texts("{gpu:4}", "{ram:[512,'8G']}", "{gpu:{'2':1,\"4\":0.5}} // two")
REQUESTS = texts("{gpu:0.5}", "{gpu:2.5,ram:'8G'}", "{printer:1,/* x */cpu:0x10,}")


NO_WORDS = object()
"""What no test takes for an answer."""


def read(reader: Callable[..., Any], *given: Any) -> Any:
    """Read something; None where it was refused, and then in a few plain words."""
    with bounded():
        try:
            return reader(*given)
        except GrassError as error:
            return None if error.message else NO_WORDS


@examples(300)
@given(text=texts("{a:1,'b':[1,2],c:{d:\"e\"}}", "{a:+.5e-3,}\n// end"))
def test_json5_is_an_object_or_refused(text: str) -> None:
    value = read(json5.read_object, text, "it")
    assert value is None or isinstance(value, dict)


@pytest.mark.parametrize("opening", ["[", "{a:", "[{a:", "{'a':["])
@pytest.mark.parametrize("depth", [33, 1_000, 15_000])
def test_json5_that_is_nested_too_deep_is_refused(opening: str, depth: int) -> None:
    with bounded(), pytest.raises(UsageError, match=r"deeper than|longer than"):
        json5.read_object("{a:" + opening * depth, "it")


def test_json5_that_is_too_long_is_refused_before_it_is_read() -> None:
    with bounded(0.5, cpu=True), pytest.raises(UsageError, match="longer than"):
        json5.read_object("{" + " " * 10_000_000, "it")


@examples(300)
@given(value=st.one_of(REQUESTS, st.dictionaries(any_text, values, max_size=3)))
def test_a_request_reads_back_as_itself(value: Any) -> None:
    request = read(request_from, value)
    if request is not None:
        assert all(0 < amount <= LARGEST for _, amount in request)
        assert request_from(request_json(request)) == request


@examples(300)
@given(value=st.one_of(CAPACITIES, st.dictionaries(any_text, values, max_size=3)))
def test_a_capacity_reads_back_as_itself(value: Any) -> None:
    capacity = read(capacity_from, value)
    if capacity is not None:
        amounts = [one for units in capacity.values() for one in units.values()]
        assert all(0 < amount <= LARGEST for amount in amounts)
        assert all(len(units) <= MOST_UNITS for units in capacity.values())
        units_json(capacity)


@examples(300)
@given(
    value=st.one_of(values, texts("8G", "0.5", "500MiB", "1e3T")),
    kind=st.sampled_from(["ram", "vram", "gpu"]),
)
def test_an_amount_is_bounded(value: Any, kind: str) -> None:
    for reader in (request_amount, capacity_amount):
        amount = read(reader, value, kind)
        if amount is not None:
            assert 0 <= amount <= LARGEST
            decimal_text(amount)


@examples(200)
@given(text=texts("500M", "10G", "1T", "17", "1.5KiB"))
def test_a_size_is_bounded(text: str) -> None:
    size = read(size_bytes, text)
    assert size is None or 0 <= size < 2**63


@examples(300)
@given(text=texts("7", "3-9", "last", "@p", "name~^a.*b$", "state:failed", "queue:q"))
def test_a_selector_means_one_thing(text: str) -> None:
    selector = read(selectors.read, text)
    if selector is not None:
        means = [selector.ids, selector.project, selector.name, selector.state]
        means += [selector.queue, selector.last or None, selector.unfinished or None]
        assert sum(one is not None for one in means) == 1
        assert selector.kind in selectors.Kind


@examples(150)
@given(pattern=texts("^a.*b$", "(a|b)+c{2,3}", "[^x]\\d\\pL(?i)"), text=any_text)
def test_a_pattern_matches_in_bounded_time_or_is_refused(
    pattern: str, text: str
) -> None:
    with bounded(), contextlib.suppress(ValueError):
        selectors.matches(pattern, text * 20)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(.*)(.*)(.*)(.*)x"])
def test_a_pattern_cannot_take_for_ever(pattern: str) -> None:
    with bounded(1.0, cpu=True):
        assert not selectors.matches(pattern, "a" * 5000 + "!")


@examples(200)
@given(
    text=texts("{gpu}", "a{gpu}b{id}", "${gpu} {x} {{gpu}}", "{gpu}{index}"),
    filled=any_text,
)
def test_placeholders_leave_all_else_alone(text: str, filled: str) -> None:
    with bounded():
        done = placeholders.fill(text, {"gpu": filled})
    pieces = re.split(r"(?<!\$)\{gpu\}", text)
    assert done == filled.join(pieces)
    read(placeholders.check, [text], (), ["gpu", "ram"])


@examples(200)
@given(
    asked=st.lists(texts("7", "7:failed", "3-9:any", "last", "1,2:any"), max_size=3),
    last=st.sampled_from([0, 1, 2**53]),
)
def test_dependencies_are_jobs_and_needs(asked: list[str], last: int) -> None:
    found = read(dependencies.read, asked, last)
    for one in found or ():
        assert one.need in dependencies.NEEDS
        assert 0 <= one.first <= one.last <= selectors.LARGEST_ID


@examples(200)
@given(text=texts("1-100", "0-90:10", "1,4,7-9%8", "5"))
def test_an_array_has_members_and_not_too_many(text: str) -> None:
    array = read(arrays.read_array, text)
    if array is not None:
        assert 1 <= len(array.indices) <= arrays.MOST_MEMBERS
        assert array.at_most is None or array.at_most >= 1


def test_an_array_of_many_overlapping_ranges_takes_no_time() -> None:
    text = ",".join(["1-100000"] * 5000)
    with bounded():
        read(arrays.read_array, text)


@examples(200)
@given(text=texts("90", "90s", "10m", "1.5h", "2h30m", "1:30:00", "1-02:00:00"))
def test_a_duration_is_a_finite_number_of_seconds(text: str) -> None:
    length = read(durations.seconds, text)
    assert length is None or 0 <= length <= 100 * 366 * 86400


@examples(300)
@given(
    text=st.one_of(
        texts("22:00", "2030-11-20T08:00", "+2h", "2030-01-31T08:00:00+01:00"),
        st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()),
        st.sampled_from(["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]),
    )
)
def test_a_time_to_begin_at_can_be_written_again(text: str) -> None:
    typed = read(moment, text)
    for asked in (text, typed):
        at = None if asked is None else read(field_readers.begin_at, asked)
        assert at is None or rfc3339(at)


@examples(100)
@given(words=st.lists(texts("python", "A=1", "/bin/x y", "."), max_size=3))
def test_any_command_has_a_name_and_a_folder(words: list[str]) -> None:
    name = default_name(words)
    assert name
    folder = safe_file_name(name)
    assert folder not in ("", ".", "..")
    assert not {"/", "\0"} & set(folder)
