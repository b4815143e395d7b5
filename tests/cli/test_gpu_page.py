"""How the memory of a GPU is drawn."""

import pytest

from grass.cli.printing.gpu_memory import PARTS, memory_bar, size
from grass.cli.printing.signs import ASCII, UNICODE

GIB = 2**30


@pytest.mark.parametrize(
    ("sizes", "drawn"),
    [
        ((0, 0, 0, 80), ".........."),
        ((40, 24, 0, 16), "#####+++.."),
        ((80, 0, 0, 0), "##########"),
        ((1, 1, 1, 77), "#+x......."),
        ((77, 1, 1, 1), "#######+x."),
        ((0, 0, 0, 0), ".........."),
    ],
)
def test_a_part_is_never_nothing_and_a_bar_is_as_wide_as_asked(
    sizes: tuple[int, ...], drawn: str
) -> None:
    memory = dict(zip(PARTS, (one * GIB for one in sizes), strict=True))
    memory["total"] = sum(memory.values())
    assert str(memory_bar(memory, 10, ASCII)) == drawn
    assert len(str(memory_bar(memory, 34, UNICODE))) == 34


def test_what_is_not_known_is_drawn_as_free() -> None:
    memory = {"jobs": None, "reserved": 8 * GIB, "strangers": None, "free": None}
    memory["total"] = 80 * GIB
    assert str(memory_bar(memory, 10, ASCII)) == "+........."


def test_what_nobody_can_have_is_not_drawn_as_free() -> None:
    memory = {"jobs": 8 * GIB, "reserved": 0, "strangers": 0, "free": 0}
    memory["total"] = 80 * GIB
    assert str(memory_bar(memory, 10, ASCII)) == "#---------"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (512 << 20, "512M"), (8 * GIB, "8G"), (int(79.42 * GIB), "79.4G")],
)
def test_sizes_are_short(number: int, text: str) -> None:
    assert size(number) == text
