"""Many ids written as few selectors."""

from grass.model.id_runs import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def as_ranges(ids: "Iterable[int]") -> list[str]:
    """Write ids as the fewest selectors: `3-9`, `12-12`."""
    return [f"{first}-{last}" for first, last in runs(ids)]


def in_words(ids: "Iterable[int]") -> str:
    """Write ids for people: `3-9, 12`."""
    return ", ".join(
        f"{first}-{last}" if first < last else f"{first}" for first, last in runs(ids)
    )
