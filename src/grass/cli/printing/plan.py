"""What `enqueue --dry-run` prints: how many jobs, and how the first would run."""

from __future__ import annotations

from grass.cli.printing.command_text import in_a_row
from grass.cli.printing.table import render, this_screen
from grass.cli.printing.wording import asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

SHOWN = 20
_HEADERS = ("NAME", "QUEUE", "NEEDS", "COMMAND")


def text(plan: Document) -> str:
    """Write a plan as a table of its first jobs."""
    count, jobs = plan["count"], plan["jobs"][:SHOWN]
    rows = [
        [
            job["name"],
            job["queue"],
            asked(job["request"]) or "nothing",
            in_a_row(job),
        ]
        for job in jobs
    ]
    body = render(_HEADERS, rows, this_screen())
    more = f"... and {count - len(jobs):,} more\n" if count > len(jobs) else ""
    jobs_text = "1 job" if count == 1 else f"{count:,} jobs"
    return f"{body}{more}{jobs_text} would be enqueued; nothing was\n"
