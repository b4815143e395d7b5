"""The list of planted bugs, each a small change to the real code."""

from collections.abc import Callable

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Plant] = {}


def bug(name: str) -> Callable[[Plant], Plant]:
    """Put a bug on the list."""

    def listed(plant: Plant) -> Plant:
        BUGS[name] = plant
        return plant

    return listed
