"""Finding the last lines of a file that can only be read from an offset on.

A worker answers with a piece of a file, not with its size: where that is not known, it
is found by probing twice as far each time and then halving, so a file of any length
takes a few dozen small reads. Lines are then counted backwards, a piece at a time. A
line without end is not looked for in a file of gigabytes: it begins in its middle.
"""

from collections.abc import Awaitable, Callable

PIECE = 32 * 1024
LONGEST_LINE = 1024 * 1024
"""How far back the beginning of one line is looked for."""

Read = Callable[[int, int], Awaitable[bytes]]
"""An offset and a length in, what is there out; nothing beyond the end."""


async def find_end(read: Read, begin: int) -> int:
    """Return where a file ends that has at least `begin` bytes."""
    within, beyond = begin, begin + PIECE
    while await read(beyond - 1, 1):
        within, beyond = beyond, beyond + 2 * (beyond - begin)
    # Everything below `within` is there, nothing from `beyond` on.
    while beyond - within > PIECE:
        middle = (within + beyond) // 2
        if await read(middle - 1, 1):
            within = middle
        else:
            beyond = middle
    return within + len(await read(within, beyond - within))


async def find_lines(read: Read, begin: int, end: int, lines: int) -> int:
    """Return where the last lines before `end` begin, not going below `begin`.

    Of a line that is too long only its end counts.
    """
    if lines == 0:
        return end
    # The newline that ends the last line begins no further one.
    place, left = end, lines
    last = await read(end - 1, 1) if end > begin else b""
    if last == b"\n":
        place -= 1
    newline = place
    while place > begin:
        if newline - place >= LONGEST_LINE:
            return place
        start = max(begin, place - PIECE)
        piece = await read(start, place - start)
        found = piece.count(b"\n")
        if found >= left:
            return start + _nth_from_end(piece, left) + 1
        if found:
            newline = start + piece.index(b"\n")
        left -= found
        place = start
    return begin


def _nth_from_end(piece: bytes, number: int) -> int:
    place = len(piece)
    for _ in range(number):
        place = piece.rindex(b"\n", 0, place)
    return place
