"""What a list of an engine says of the marks that were asked about."""

from collections.abc import Iterable, Mapping, Sequence

from grass.model.pools import PilotReport, PilotState


def by_mark(
    listed: Iterable[PilotReport], marks: Sequence[str]
) -> Mapping[str, PilotReport]:
    """Return a report of each mark; those that are not listed are absent."""
    found: dict[str, PilotReport] = {}
    for report in listed:
        known = found.get(report.mark)
        found[report.mark] = report if known is None else _both(known, report)
    absent = {mark: PilotReport(mark=mark, state=PilotState.ABSENT) for mark in marks}
    return absent | {mark: found[mark] for mark in marks if mark in found}


def _both(one: PilotReport, other: PilotReport) -> PilotReport:
    """Merge two jobs with one mark: one of them is what a refused submit left."""
    alive = [report for report in (one, other) if report.state != PilotState.ENDED]
    if len(alive) == 1:
        return alive[0]
    if not alive:
        # Numbers as they grow, of whatever length.
        return max(one, other, key=lambda job: (len(job.engine_id), job.engine_id))
    ids = f"{one.engine_id} and {other.engine_id}"
    return PilotReport(
        mark=one.mark, state=PilotState.UNKNOWN, reason=f"jobs {ids} have one mark"
    )
