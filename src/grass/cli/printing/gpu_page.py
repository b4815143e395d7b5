"""GPUs as people read them: a bar of the memory, numbers, and who is on each.

The parts of a bar differ by letter, not only by colour. A pipe gets the numbers alone.
"""

from __future__ import annotations

from grass.cli.printing.gpu_memory import PARTS, amounts, memory_bar, part_letter, size
from grass.cli.printing.page import Page
from grass.cli.printing.quantities import in_local_time
from grass.cli.printing.signs import ASCII
from grass.cli.printing.styled import Styled
from grass.cli.printing.table import Fit, TableRow, lines
from grass.cli.printing.wording import owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from grass.cli.printing.table import Cell, Screen
    from grass.client.client import Client
    from grass.client.json_codec import Document

NONE = "no GPU is managed here; `grass doctor` says what there is, and what to do"
HIDDEN = "its processes cannot be named from there; see `grass doctor` on that machine"
ROWS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "WHO")
_BESIDE_BAR, _NARROWEST, _WIDEST, _SMALL = 46, 8, 60, 6
_NAME_COLUMN, _TEMP_COLUMN, _POWER_COLUMN = 1, 4, 5


class GpuPage:
    """Every GPU with all that is known of it."""

    def read(self, client: Client) -> Document:
        """Ask the workers for their GPUs."""
        return client.devices()

    def page(self, document: Document, screen: Screen) -> Page:
        """Write some lines for each GPU."""
        body: list[str] = []
        for worker in document["workers"]:
            for gpu in worker["gpus"]:
                body += [""] if body else []
                body += _lines(worker, gpu, screen)
        return Page(body=body or [NONE])

    def names(self, document: Document) -> Iterator[object]:
        """Return the uuids."""
        for worker in document["workers"]:
            for gpu in worker["gpus"]:
                yield gpu["uuid"]


class GpuRows(GpuPage):
    """One line for each GPU."""

    def page(self, document: Document, screen: Screen) -> Page:
        """Write a table."""
        rows = [
            _row(worker, gpu, screen)
            for worker in document["workers"]
            for gpu in worker["gpus"]
        ]
        if not rows:
            return Page(body=[NONE])
        fit = Fit((0, 2, 3), (_POWER_COLUMN, _TEMP_COLUMN, _NAME_COLUMN))
        head, *body = lines(ROWS, rows, screen, fit=fit)
        return Page(head=[head], body=body)


def _lines(worker: Document, gpu: Document, screen: Screen) -> Iterator[str]:
    yield screen.line(_title(worker, gpu))
    if gpu["fault"]:
        yield screen.line(Styled((f"  {in_local_time(gpu['fault']['why'])}", "red")))
    if screen.width is not None:
        width = max(_NARROWEST, min(_WIDEST, screen.width - _BESIDE_BAR))
        bar = memory_bar(gpu["memory"], width, screen.signs)
        yield screen.line(Styled(("  ", "")) + bar + Styled((_beside(gpu, screen), "")))
        yield screen.line(Styled(("  ", "")) + _legend(gpu, screen))
    else:
        yield screen.line(Styled((f"  {_beside(gpu, screen).strip()}", "")))
        yield screen.line(Styled((f"  {amounts(gpu['memory'])}", "")))
    rows = [*_people(gpu)]
    if rows:
        # The first line would be a heading, which says nothing here.
        _, *shown = lines([""] * len(rows[0]), rows, screen, fit=Fit((0, 1, 3)))
        yield from shown
    if gpu["pids_hidden"]:
        yield screen.line(Styled((f"  {HIDDEN}", "dim")))


def _title(worker: Document, gpu: Document) -> Styled:
    drained = Styled(("  drained", "yellow")) if gpu["drained"] else Styled()
    return (
        Styled((f"{worker['name']} gpu {gpu['unit']}", "bold"))
        + drained
        + Styled((f"  {gpu['name']}", ""), (f"  {gpu['uuid']}", "dim"))
    )


def _beside(gpu: Document, screen: Screen) -> str:
    """Write what stands beside the bar: size, utilisation, temperature, power."""
    told = [f"  {size(gpu['memory']['total']):>6}"]
    if gpu["utilization"] is not None:
        told.append(f"{gpu['utilization']:>3}% busy")
    told += [_warmth(gpu, screen), _power(gpu)]
    return "  ".join(filter(None, told))


def _warmth(gpu: Document, screen: Screen) -> str:
    if gpu["temperature"] is None:
        return ""
    return f"{gpu['temperature']} {'C' if screen.signs is ASCII else '°C'}"


def _power(gpu: Document) -> str:
    if gpu["power_w"] is None:
        return ""
    limit = gpu["power_limit_w"]
    return f"{gpu['power_w']:.0f}{'' if limit is None else f'/{limit:.0f}'} W"


def _legend(gpu: Document, screen: Screen) -> Styled:
    text = Styled()
    for part, tint in PARTS.items():
        told = gpu["memory"][part]
        letter = part_letter(part, screen.signs)
        amount = "?" if told is None else size(told)
        gap = "  " if text.pieces else ""
        text += Styled((gap, ""), (letter, tint), (f" {part} {amount}", ""))
    return text


def _people(gpu: Document) -> Iterator[TableRow]:
    """Return a row for each process, and for each job that has none there."""
    names = {one["job"]: one for one in gpu["jobs"]}
    present = {one["job"] for one in gpu["processes"]}
    for one in gpu["processes"]:
        holder = names.get(one["job"])
        memory = "?" if one["memory"] is None else f"{one['memory'] >> 20} MiB"
        busy = one["utilization"]
        yield _person(
            f"job {one['job']}" if holder else "stranger",
            holder["name"] if holder else one["command"],
            f"pid {one['pid']}",
            one["user"],
            memory + ("" if busy is None else f", {busy}% busy"),
        )
    for holder in gpu["jobs"]:
        if holder["job"] not in present:
            used = f"{holder['used'] >> 20} MiB of " if holder["used"] else ""
            reserved = f"{used}{holder['reserved'] >> 20} MiB reserved"
            who = owner(holder["owner"])
            yield _person(f"job {holder['job']}", holder["name"], "", who, reserved)


def _person(who: str, name: str, pid: str, user: str, memory: str) -> TableRow:
    tint = "yellow" if who == "stranger" else ""
    cells: list[Cell] = [Styled((f"  {who}", tint)), name, pid, user, memory]
    return TableRow(cells)


def _row(worker: Document, gpu: Document, screen: Screen) -> list[Cell]:
    memory = gpu["memory"]
    known = [memory[part] for part in PARTS if part != "free"]
    taken = "?" if None in known else size(sum(known))
    text = f"{taken}/{size(memory['total'])}"
    drawn = Styled((text, ""))
    if screen.width is not None:
        bar = memory_bar(memory, _SMALL, screen.signs)
        drawn = bar + Styled((f" {text}", ""))
    busy = gpu["utilization"]
    return [
        f"{worker['name']}:{gpu['unit']}",
        gpu["name"],
        drawn,
        "" if busy is None else f"{busy}%",
        _warmth(gpu, screen),
        _power(gpu),
        Styled((in_local_time(gpu["fault"]["why"]), "red"))
        if gpu["fault"]
        else _who(gpu),
    ]


def _who(gpu: Document) -> str:
    """Write those who are on a GPU in a few words."""
    jobs = [f"job {one['job']} {size(one['used'])}" for one in gpu["jobs"]]
    others = [
        f"{one['command'] or 'pid ' + str(one['pid'])}"
        f"{' (' + one['user'] + ')' if one['user'] else ''}"
        f" {'?' if one['memory'] is None else size(one['memory'])}"
        for one in gpu["processes"]
        if one["job"] is None
    ]
    return ", ".join(jobs + others)
