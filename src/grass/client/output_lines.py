"""Numbered lines of a job's output, and those that match, read in several calls."""

from __future__ import annotations

from grass.client.json_codec import query, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from grass.client.broker_session import BrokerSession
    from grass.client.json_codec import Document

PAGE = 1_000


def output_lines(
    session: BrokerSession,
    job: int | str,
    first: int,
    last: int | None,
    **wanted: object,
) -> Iterator[str]:
    """Read the lines from one to another, or to the end, counted from 1."""
    path = f"/jobs/{quoted(str(job))}/lines"
    while last is None or first <= last:
        count = PAGE if last is None else min(PAGE, last - first + 1)
        asked = query(**{"from": first, "count": count, **wanted})
        lines: list[str] = session.read(path + asked)["lines"]
        if not lines:
            return
        yield from lines
        first += len(lines)


def matching_lines(
    session: BrokerSession, job: int | str, pattern: str, **wanted: object
) -> Iterator[Document]:
    """Read the lines that match a pattern, each with its number as `line`."""
    path, line = f"/jobs/{quoted(str(job))}/search", 1
    while line is not None:
        asked = {"pattern": pattern, "from": line, "limit": PAGE, "count": 0, **wanted}
        found = session.read(path + query(**asked))
        yield from found["matches"]
        line = found["next"]
