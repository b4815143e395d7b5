"""Pages of `show`: workers, queues and jobs; a list of jobs."""

from __future__ import annotations

from grass.cli.printing.page import Page, Section
from grass.cli.printing.show import summary
from grass.cli.printing.show.job_rows import JobTable
from grass.cli.printing.show.unit_bars import folded_lines, worker_lines
from grass.cli.printing.styled import Styled, cells
from grass.cli.printing.table import lines
from grass.cli.printing.wording import IN_ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from grass.cli.printing.show.show_options import ShowOptions
    from grass.cli.printing.table import Screen
    from grass.client.json_codec import Document


def overview_page(wanted: ShowOptions, document: Document, screen: Screen) -> Page:
    """Write the tables, and below them what is left out and the totals."""
    elsewhere = summary.elsewhere(document["daemon"])
    if elsewhere is not None:
        return Page(body=[elsewhere])
    above = []
    if "workers" in document:
        workers = document["workers"]
        above.append(
            Section(worker_lines(workers, screen), folded_lines(workers, screen))
        )
    if "queues" in document:
        above.append(_queues(document["queues"], screen))
    table = JobTable(
        wanted, document.get("jobs", ()), document.get("arrays", ()), screen
    )
    totals = document.get("totals", document["daemon"]["jobs"])
    foot = [Styled((note, "")) for note in summary.notes(document.get("queues", ()))]
    faults = summary.gpu_notes(document.get("workers", ()))
    foot += [Styled((note, "red")) for note in faults]
    if "jobs" in document and not wanted.is_whole:
        foot[:0] = left_out(totals, table.covered)
    foot += _flowed(summary.summary(document["daemon"], totals), screen)
    return _page(above, table, foot, screen)


def listing_page(wanted: ShowOptions, document: Document, screen: Screen) -> Page:
    """Write the table of jobs, and below it how many are shown."""
    table = JobTable(wanted, document["jobs"], document.get("arrays", ()), screen)
    if not table.lines:
        return Page(body=["no such jobs"])
    foot = [Styled((f"{sum(table.covered.values())} shown", ""))]
    if not wanted.is_whole:
        foot[:0] = left_out(document.get("totals", {}), table.covered)
    return _page([], table, foot, screen)


def _page(
    above: list[Section], table: JobTable, foot: list[Styled], screen: Screen
) -> Page:
    return Page(
        above,
        table.lines[:1],
        table.lines[1:],
        [screen.line(line) for line in foot],
        first=table.running,
    )


def _flowed(parts: list[Styled], screen: Screen) -> list[Styled]:
    """Join parts of a sentence, on as many lines as they need."""
    flowed = parts[:1]
    for part in parts[1:]:
        joined = flowed[-1] + Styled(("; ", "dim")) + part
        fits = screen.width is None or cells(str(joined)) <= screen.width
        flowed[-1:] = [joined] if fits else [flowed[-1], part]
    return flowed


def left_out(totals: Mapping[str, int], covered: Mapping[str, int]) -> list[Styled]:
    """Count the jobs that match and have no row, with the option that shows them."""
    left = {state: totals.get(state, 0) - covered.get(state, 0) for state in IN_ORDER}
    told = [f"{count} {state}" for state, count in left.items() if count > 0]
    if not told:
        return []
    number = sum(count for count in left.values() if count > 0)
    return [Styled((f"and {number} more: {', '.join(told)} (`--all` shows them)", ""))]


def _queues(queues: list[Document], screen: Screen) -> Section:
    busy = ", ".join(
        f"{queue['name']} {queue['running']} running {queue['waiting']} waiting"
        + (" (paused)" if queue["paused"] else "")
        for queue in queues
    )
    folded = Styled(("queues", "bold"), (f"  {busy}", ""))
    table = lines(summary.QUEUES, summary.queue_rows(queues), screen)
    return Section(table, [screen.line(folded)])
