"""The GPUs as a few lines: memory in four parts, how busy each is, and who is on it.

A GPU has one line, and a second one where there is room. The parts of a bar differ by
letter as well as by colour. Where there is no GPU, what is free of cores and memory is
drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from grass.cli.printing.gpu_memory import PARTS, memory_bar, part_letter, silence, size
from grass.cli.printing.quantities import age, in_local_time
from grass.cli.printing.show.unit_bars import folded_lines, worker_lines
from grass.cli.printing.signs import ASCII, Signs
from grass.cli.printing.styled import Styled, cells, cut_styled
from grass.cli.printing.table import Screen
from grass.client.json_codec import Document

Strips = Mapping[tuple[str, str], Sequence[Document]]
"""The history of each GPU, by worker and unit."""

HOUR_S = 3600.0
_LEVELS, _PLAIN_LEVELS = "▁▂▃▄▅▆▇█", ".:-=+*#%@"
_FULL = 100.0
_WIDE, _WIDER = 100, 130
_BUSY_CELLS = 8


class Room(NamedTuple):
    """The cells that the lines may take."""

    width: int
    height: int
    is_roomy: bool
    """Whether a GPU may have a second line."""


def gpu_lines(
    devices: Document,
    strips: Strips,
    room: Room,
    signs: Signs,
    now: datetime,
) -> list[Styled]:
    """Write the GPUs of all workers, or what there is instead, into a room."""
    found = [(one, gpu) for one in devices["workers"] for gpu in one["gpus"]]
    if not found:
        return []
    several = len({worker["name"] for worker, _ in found}) > 1
    roomy = room.is_roomy and 2 * len(found) <= room.height
    lines: list[Styled] = []
    label = max(cells(_label(worker, gpu, several)) for worker, gpu in found)
    for worker, gpu in found:
        name = _label(worker, gpu, several)
        head = Styled((f"{name:<{label}} ", "bold"))
        lines.append(_first(gpu, head, room.width, signs) + _who(gpu, silence(worker)))
        if roomy:
            points = strips.get((worker["name"], gpu["unit"]), ())
            strip = _strip(gpu["unit"], points, room.width, signs, now)
            lines.append(_second(gpu, label, strip, signs))
    lines = _fitted(lines, len(found), room)
    return [cut_styled(line, room.width, signs.ellipsis) for line in lines]


def worker_text(workers: Iterable[Document], screen: Screen) -> list[str]:
    """Write what is free of cores, memory and declared units, with colours."""
    return worker_lines(workers, screen)


def free_text(workers: Sequence[Document], screen: Screen) -> list[str]:
    """Write what is free of everything on a line for each worker."""
    return folded_lines(workers, screen)


def _fitted(lines: list[Styled], gpus: int, room: Room) -> list[Styled]:
    if len(lines) <= room.height:
        return lines
    shown = max(1, room.height - 1)
    more = f"and {gpus - shown} more GPUs: g n shows all"
    return [*lines[:shown], Styled((more, "dim"))]


def _label(worker: Document, gpu: Document, several: bool) -> str:
    return f"{worker['name']} {gpu['unit']}" if several else f"gpu {gpu['unit']}"


def _first(gpu: Document, head: Styled, width: int, signs: Signs) -> Styled:
    """Write the bar and the numbers."""
    bar_cells = 18 if width < _WIDE else 24 if width < _WIDER else 34
    memory = gpu["memory"]
    line = head + memory_bar(memory, bar_cells, signs)
    line += Styled((f" {_used(memory):>5} of {size(memory['total']):<6}", ""))
    line += _busy(gpu, signs)
    if width >= _WIDE:
        line += Styled((_warmth(gpu, signs), "dim"))
    return line


def _used(memory: Document) -> str:
    if memory["jobs"] is None:
        return "?"
    return size(memory["jobs"] + (memory["strangers"] or 0))


def _busy(gpu: Document, signs: Signs) -> Styled:
    share = gpu["utilization"]
    if share is None:
        return Styled((" " * (_BUSY_CELLS + 6), ""))
    full, rest = signs.bar(share / _FULL, _BUSY_CELLS)
    number = (f" {share:>3.0f}% ", "" if share else "dim")
    return Styled((full, "green"), (rest, "dim"), number)


def _warmth(gpu: Document, signs: Signs) -> str:
    degree = "C" if signs is ASCII else "°C"
    warm, power = gpu["temperature"], gpu["power_w"]
    told = "" if warm is None else f"{warm}{degree}"
    return f"{told:>5} {'' if power is None else f'{power:.0f}W':>5} "


def _who(gpu: Document, silent: str) -> Styled:
    """Name the jobs and strangers on a GPU, or say why there is none."""
    if gpu["fault"]:
        return Styled((f" {in_local_time(gpu['fault']['why'])}", "red"))
    told = [(silent, "yellow")] if silent else []
    if gpu["drained"]:
        told.append(("drained", "yellow"))
    told += [(f"{one['job']} {one['name']}", "") for one in gpu["jobs"]]
    told += [(f"{one['command']} (pid {one['pid']})", "yellow") for one in _others(gpu)]
    line = Styled((" ", ""))
    for at, piece in enumerate(told):
        line += Styled((", " if at else "", "dim"), piece)
    return line if told else Styled((" nobody", "dim"))


def _others(gpu: Document) -> list[Document]:
    jobs = {one["job"] for one in gpu["jobs"]}
    return [one for one in gpu["processes"] if one["job"] not in jobs]


def _second(gpu: Document, label: int, strip: Styled, signs: Signs) -> Styled:
    """Write the last hour, the parts of the memory, and the name of the GPU."""
    line = Styled((" " * (label + 1), "")) + strip
    for part, tint in PARTS.items():
        told = gpu["memory"][part]
        if told or part in ("jobs", "free"):
            amount = "?" if told is None else size(told)
            line += Styled((part_letter(part, signs), tint), (f" {part} ", "dim"))
            line += Styled((f"{amount}  ", ""))
    return line + Styled((f"{gpu['name']}", "dim"))


def _strip(
    unit: str, points: Sequence[Document], width: int, signs: Signs, now: datetime
) -> Styled:
    """Draw how busy a GPU was in the last hour; nothing where that is not known."""
    count = 12 if width < _WIDE else 24 if width < _WIDER else 40
    levels = _PLAIN_LEVELS if signs is ASCII else _LEVELS
    shares = list(_shares(unit, points, count, now))
    if all(share is None for share in shares):
        return Styled()
    unknown = " " if signs is ASCII else "·"
    strip = Styled(("last hour ", "dim"))
    for share in shares:
        known = share is not None
        letter = _level(share, levels) if share is not None else unknown
        strip += Styled((letter, "green" if known else "dim"))
    return strip + Styled(("  ", ""))


def _shares(
    unit: str, points: Sequence[Document], count: int, now: datetime
) -> Iterator[float | None]:
    """Return the mean utilization in each of `count` parts of the last hour."""
    parts: list[list[float]] = [[] for _ in range(count)]
    for point in points:
        share = (point["gpus"].get(unit) or {}).get("utilization")
        place = count - 1 - int(age(point["at"], now) / HOUR_S * count)
        if share is not None and 0 <= place < count:
            parts[place].append(share)
    for part in parts:
        yield sum(part) / len(part) if part else None


def _level(share: float, levels: str) -> str:
    highest = len(levels) - 1
    return levels[max(0, min(highest, round(share / _FULL * highest)))]
