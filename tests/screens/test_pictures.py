"""The pictures on the pages are those of the screens."""

import pytest

from .pictures import GOLDEN, IMAGES, PICTURES, picture


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_the_kept_screen(name: str) -> None:
    screen = (GOLDEN / f"{PICTURES[name]}.txt").read_text()
    kept = (IMAGES / f"{name}.svg").read_text()
    assert kept == picture(screen), "`make screens` writes it anew"
