"""Which GPUs a text means."""

import pytest

from grass.devices.readings import GpuUnit
from grass.devices.visible import chosen_units
from grass.errors import UsageError

UNITS = [
    GpuUnit("0", "A", "GPU-aa11", 1, "GPU-aa11"),
    GpuUnit("1", "A", "GPU-aa22", 1, "GPU-aa22"),
    GpuUnit("2.0", "M", "MIG-b0", 1, "GPU-cc33"),
    GpuUnit("2.1", "M", "MIG-b1", 1, "GPU-cc33"),
]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", "0"),
        ("1,0", "0 1"),
        (" 0 , 1 ", "0 1"),
        ("00", "0"),
        ("0,0", "0"),
        ("GPU-aa22", "1"),
        ("GPU-aa2", "1"),
        ("gpu-AA1", "0"),
        ("MIG-b1", "2.1"),
        ("2.0", "2.0"),
        ("2", "2.0 2.1"),
        ("GPU-cc", "2.0 2.1"),
        ("", ""),
        ("-1", ""),
        ("NoDevFiles", ""),
        ("none", ""),
        ("all", "0 1 2.0 2.1"),
    ],
)
def test_words_mean_units(text: str, units: str) -> None:
    assert list(chosen_units(text, UNITS)) == units.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7", "there is no GPU `7`"),
        ("0,7", "there is no GPU `7`"),
        ("2.9", "there is no GPU `2.9`"),
        ("0,,1", "there is no GPU ``"),
        ("GPU-dd", "there is no GPU `GPU-dd`"),
        ("x", "there is no GPU `x`"),
        ("GPU-aa", "`GPU-aa` is the beginning of 2 uuids"),
    ],
)
def test_a_word_that_means_none_or_several_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_units(text, UNITS)
    assert refused.value.message == message


def test_an_error_says_what_there_is() -> None:
    with pytest.raises(UsageError) as refused:
        chosen_units("7", UNITS[:1])
    assert refused.value.hint == "there are 0 (GPU-aa11)"
    with pytest.raises(UsageError) as refused:
        chosen_units("0", [])
    assert refused.value.hint is not None
    assert "no GPU was found" in refused.value.hint


def test_one_that_went_later_is_no_error() -> None:
    assert chosen_units("0,7", UNITS, missing_ok=True) == ("0",)
