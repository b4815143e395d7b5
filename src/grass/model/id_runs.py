"""Ids that follow on each other, as pairs of the first and the last."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def runs(ids: "Iterable[int]") -> list[tuple[int, int]]:
    """Join ids that follow on each other."""
    joined: list[tuple[int, int]] = []
    for one in sorted(ids):
        if joined and joined[-1][1] + 1 == one:
            joined[-1] = (joined[-1][0], one)
        else:
            joined.append((one, one))
    return joined
