"""A GPU's memory in four parts: as a bar, and in numbers."""

from __future__ import annotations

from grass.cli.printing.signs import ASCII, NONE
from grass.cli.printing.styled import Styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.printing.signs import Signs
    from grass.client.json_codec import Document

PARTS = {"jobs": "cyan", "reserved": "cyan", "strangers": "yellow", "free": "dim"}
"""The parts in their order, and their colours."""
_LETTERS = {"jobs": "█", "reserved": "▒", "strangers": "▓", "free": "░"}
_PLAIN_LETTERS = {"jobs": "#", "reserved": "+", "strangers": "x", "free": "."}
_GIB, _MIB = 2**30, 2**20


def silence(worker: Document) -> str:
    """Say why a worker's GPUs are not as they are now; empty where they are."""
    if worker["problem"]:
        return str(worker["problem"])
    return "late to answer" if worker["stale"] else ""


def part_letter(part: str, signs: Signs) -> str:
    """Return the letter of which a part's cells are."""
    return (_PLAIN_LETTERS if signs in (ASCII, NONE) else _LETTERS)[part]


def memory_bar(memory: Document, width: int, signs: Signs) -> Styled:
    """Draw a bar of the parts; a little of one is never nothing."""
    sizes = {part: memory[part] or 0 for part in PARTS}
    rest = max(0, memory["total"] - sum(sizes.values()))
    # What nobody has and nobody can have is that of a GPU with a fault.
    out_of_use = memory["free"] == 0 and rest > 0
    sizes["free"] += rest
    cells = _cells(sizes, width)
    drawn = {part: (part_letter(part, signs), tint) for part, tint in PARTS.items()}
    if out_of_use:
        drawn["free"] = ("-", "red")
    return Styled(
        *(
            (letter * cells[part], tint)
            for part, (letter, tint) in drawn.items()
            if cells[part]
        )
    )


def _cells(sizes: dict[str, int], width: int) -> dict[str, int]:
    """Divide the cells of a bar among its parts; what is left over is free."""
    total = sum(sizes.values()) or 1
    cells = {
        part: max(1, round(width * size / total)) if size else 0
        for part, size in sizes.items()
        if part != "free"
    }
    while sum(cells.values()) > width - bool(sizes["free"]):
        largest = max(cells, key=lambda part: cells[part])
        cells[largest] -= 1
    return cells | {"free": width - sum(cells.values())}


def amounts(memory: Document) -> str:
    """Write the parts in numbers."""
    return "  ".join(
        f"{part} {'?' if memory[part] is None else size(memory[part])}"
        for part in PARTS
    )


def size(number: int) -> str:
    """Write a number of bytes: `0`, `512M`, `8G`, `79.4G`.

    It is rounded down, so that a job can have what is shown as free.
    """
    if number < _MIB:
        return "0"
    if number < _GIB:
        return f"{number // _MIB}M"
    return f"{number * 10 // _GIB / 10:.1f}".removesuffix(".0") + "G"
